//! The rules that a task says in plain words, added to those of its roleset.
//!
//! The input is a task, and the parameters and the canonical form of its run. The output is the added rules, with their words. A
//! given rule is never changed: rules in plain words come after flags and rolesets.

use protocol::text::{CanonicalKind, CanonicalRule, Constraint, SpokenRule, spoken_rules};
use protocol::{Params, ProtocolParams as _};

/// Adds the rules that a task says to the parameters of its run, and returns them.
pub fn add_spoken_rules(task: &str, params: &mut Params, canonical: &CanonicalRule) -> Vec<SpokenRule> {
    let by_line = matches!(canonical.kind, CanonicalKind::Lines | CanonicalKind::Verbatim);
    if canonical.kind != CanonicalKind::Text && !by_line {
        return Vec::new();
    }
    let Some(constraints) = params.constraints_mut() else { return Vec::new() };
    let is_new = |found: &SpokenRule| {
        let same = |given: &Constraint| std::mem::discriminant(given) == std::mem::discriminant(&found.rule);
        // Lines cannot be counted if line breaks do not matter.
        !constraints.iter().any(same) && (by_line || !matches!(found.rule, Constraint::Lines(_)))
    };
    let found: Vec<SpokenRule> = spoken_rules(task).into_iter().filter(is_new).collect();
    constraints.extend(found.iter().map(|found| found.rule.clone()));
    found
}
