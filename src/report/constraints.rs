//! The rules that code checks on the answers of a run, for programs.
//!
//! The input is a setup. The output is each rule, and the words of the task that state it, if the task does. A rule that the program sets
//! for its own forms is not among them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use protocol::text::find_demands;
use protocol::{ProtocolParams as _, RunSetup};

/// A rule that code checks on every answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct CheckedRule {
    /// The rule as a roleset states it: its `kind`, with its bounds or its text.
    #[serde(flatten)]
    pub form: Value,
    /// The rule in words.
    pub rule: String,
    /// The words of the task that state it; `None` for a rule of a flag, a roleset or a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// Returns the rules of a run, in their order.
pub fn checked_rules(setup: &RunSetup) -> Vec<CheckedRule> {
    let demands = find_demands(&setup.task.prompt);
    let mut rules = Vec::new();
    for constraint in setup.params.constraints() {
        let Ok(form) = serde_json::to_value(constraint) else { continue };
        let stated = demands.iter().find(|demand| demand.rule == *constraint);
        rules.push(CheckedRule {
            form,
            rule: constraint.to_string(),
            words: stated.map(|demand| demand.words.clone()),
        });
    }
    rules
}
