//! The rules that code checks on the answers of a run, for programs.
//!
//! The input is a setup. The output is each rule, and the words of the task that state it, if the task does. A rule that the program sets
//! for its own forms is not among them.

use serde::Serialize;
use serde_json::Value;

use protocol::text::find_demands;
use protocol::{ProtocolParams as _, RunSetup};

/// A rule that code checks on every answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CheckedRule {
    /// The rule as a roleset states it: its `kind`, with its bounds or its text.
    #[serde(flatten)]
    pub form: Value,
    /// The rule in words.
    pub rule: String,
    /// The words of the task that state it; `None` for a rule of a flag, a roleset or a request.
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{find_roleset, load_roleset};
    use protocol::Task;
    use protocol::text::Constraint;

    #[test]
    fn rules_have_the_words_of_their_task() {
        let (roleset, packs) = load_roleset(&find_roleset("question", &[]).unwrap()).unwrap();
        let prompt = "Describe Rome in exactly one sentence.".to_owned();
        let mut setup = roleset.setup("question", &packs, Task { prompt, ..Task::default() }, 1);
        setup
            .params
            .constraints_mut()
            .unwrap()
            .extend([Constraint::parse("sentences=1").unwrap(), Constraint::parse("words=..40").unwrap()]);
        let stated: Vec<_> = checked_rules(&setup).into_iter().map(|rule| (rule.rule, rule.words)).collect();
        let words = Some("in exactly one sentence".to_owned());
        assert_eq!(stated, [("exactly 1 sentence".to_owned(), words), ("at most 40 words".to_owned(), None)]);
    }
}
