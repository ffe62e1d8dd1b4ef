//! What a person and a roleset want to have left out of what leaves this machine.
//!
//! In: a request and a roleset. Out: whether anything is left out, and what is looked for. Nothing is replaced here.

use super::error::RunError;
use super::request::RedactRequest;
use crate::config::Roleset;
use crate::engine::Sought;
use crate::text::redact::Regions;

/// Whether anything is to be left out of what leaves this machine.
pub(super) fn redacts(request: &RedactRequest, roleset: &Roleset) -> bool {
    let RedactRequest { is_wanted, patterns, regions } = request;
    let is_wanted = *is_wanted || roleset.redact;
    let lists = [patterns, regions, &roleset.redact_patterns, &roleset.redact_regions];
    is_wanted || lists.into_iter().any(|list| !list.is_empty())
}

/// Returns what is looked for, if anything is to be left out.
///
/// # Errors
///
/// [`RunError::Usage`] if a pattern is none, a region has no phone numbers, or an agent's name would be left out.
pub fn sought(request: &RedactRequest, roleset: &Roleset) -> Result<Option<Sought>, RunError> {
    if !redacts(request, roleset) {
        return Ok(None);
    }
    let patterns = roleset.redact_patterns.iter().chain(&request.patterns).cloned().collect();
    let regions = [&request.regions, &roleset.redact_regions];
    let regions = match regions.into_iter().find(|codes| !codes.is_empty()) {
        Some(codes) => Regions::try_from(codes.clone()).map_err(|why| RunError::Usage(why.to_string()))?,
        None => Regions::default(),
    };
    let sought = Sought::new(patterns, regions).map_err(RunError::Usage)?;
    let mut redactor = sought.redactor();
    // By its name an agent is told who it is, and whom it talks to.
    for agent in roleset.agents.iter().chain(&roleset.arbiter) {
        if redactor.redact(&agent.name) != agent.name {
            return Err(RunError::Usage(format!(
                "a pattern of --redact-pattern or `redact_patterns` finds the agent's name `{}`",
                agent.name
            )));
        }
    }
    Ok(Some(sought))
}
