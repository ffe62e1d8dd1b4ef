//! The text that a person and a roleset keep from leaving this machine: the patterns to look for, and the table of a run on record. Nothing
//! is replaced here.

use std::path::Path;

use super::error::RunError;
use super::request::RedactRequest;
use crate::config::Roleset;
use crate::engine::{Redaction, RedactionPolicy, RunState};
use crate::journal::REDACTIONS_FILE;
use protocol::text::CanonicalKind;

/// Returns whether any text must be kept from leaving this machine.
pub(super) fn redacts(request: &RedactRequest, roleset: &Roleset) -> bool {
    request.is_wanted || roleset.redact || !request.patterns.is_empty() || !roleset.redact_patterns.is_empty()
}

/// Returns the patterns to look for, if redaction is on.
///
/// Returns [`RunError::Usage`] if a pattern is invalid, an agent's name would be redacted, or programs are compared by what they do.
pub fn redaction_policy(
    request: &RedactRequest,
    roleset: &Roleset,
) -> Result<Option<RedactionPolicy>, RunError> {
    if !redacts(request, roleset) {
        return Ok(None);
    }
    if roleset.canonical.kind == CanonicalKind::Behaviour {
        return Err(RunError::Usage(
            "a run over programs cannot be redacted, because a program may give back an original in another form".to_owned(),
        ));
    }
    let patterns = roleset.redact_patterns.iter().chain(&request.patterns).cloned().collect();
    let policy = RedactionPolicy::new(patterns).map_err(RunError::Usage)?;
    let mut redactor = policy.redactor();
    // Agents know themselves and each other by name, so a name must not be redacted.
    for agent in roleset.agents.iter().chain(&roleset.arbiter) {
        if redactor.redact(&agent.name) != agent.name {
            return Err(RunError::Usage(format!(
                "a pattern of --redact-pattern or `redact_patterns` matches the agent's name `{}`",
                agent.name
            )));
        }
    }
    Ok(Some(policy))
}

/// Returns the table of a redacted run, or `None` for any other run. `dir` is the folder of the run.
///
/// Returns [`RunError::Usage`] if the table cannot be read.
pub(super) fn load_table(state: &RunState, dir: &Path) -> Result<Option<Redaction>, RunError> {
    if !state.opened().redacted {
        return Ok(None);
    }
    let table = Redaction::load(dir.join(REDACTIONS_FILE));
    table.map(Some).map_err(|why| RunError::Usage(format!("the run needs its table of redactions: {why}")))
}
