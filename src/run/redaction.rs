//! The text that a person and a roleset keep from leaving this machine.
//!
//! The input is a request and a roleset, or a run on record. The output is whether redaction is on and the patterns to look for, or the
//! table of the run. Nothing is replaced here.

use std::path::Path;

use super::error::RunError;
use super::request::RedactRequest;
use crate::config::Roleset;
use crate::engine::{Redaction, RunState, Sought};
use crate::journal::REDACTIONS_FILE;

/// Returns whether any text must be kept from leaving this machine.
pub(super) fn redacts(request: &RedactRequest, roleset: &Roleset) -> bool {
    request.is_wanted || roleset.redact || !request.patterns.is_empty() || !roleset.redact_patterns.is_empty()
}

/// Returns the patterns to look for, if redaction is on.
///
/// # Errors
///
/// Returns [`RunError::Usage`] if a pattern is invalid, or an agent's name would be redacted.
pub fn sought(request: &RedactRequest, roleset: &Roleset) -> Result<Option<Sought>, RunError> {
    if !redacts(request, roleset) {
        return Ok(None);
    }
    let patterns = roleset.redact_patterns.iter().chain(&request.patterns).cloned().collect();
    let sought = Sought::new(patterns).map_err(RunError::Usage)?;
    let mut redactor = sought.redactor();
    // Agents know themselves and each other by name, so a name must not be redacted.
    for agent in roleset.agents.iter().chain(&roleset.arbiter) {
        if redactor.redact(&agent.name) != agent.name {
            return Err(RunError::Usage(format!(
                "a pattern of --redact-pattern or `redact_patterns` matches the agent's name `{}`",
                agent.name
            )));
        }
    }
    Ok(Some(sought))
}

/// Returns the table of a redacted run, or `None` for any other run. `dir` is the folder of the run.
///
/// # Errors
///
/// Returns [`RunError::Usage`] if the table cannot be read.
pub(super) fn table(state: &RunState, dir: &Path) -> Result<Option<Redaction>, RunError> {
    let table = state.opened().redacted.then(|| Redaction::load(dir.join(REDACTIONS_FILE))).transpose();
    table.map_err(|why| RunError::Usage(format!("the run needs its table of redactions: {why}")))
}
