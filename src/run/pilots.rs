//! The methods of a vote that leaves them open: as the user's own pilot of the model has found.

use super::error::RunError;
use crate::config::{Chosen, FileConfig, Pilot, Pilots, Roleset};
use protocol::core::Endpoint;
use protocol::{Method, Params};

/// The notice of a vote whose methods follow from a pilot.
pub const BY_PILOT: &str =
    "programs are drawn too, since your pilot found them worth it for this model; --modes decides otherwise";

/// Returns the methods that a pilot has found worth their tokens, if the roleset leaves them open.
///
/// Returns [`RunError::Config`] if the file of findings cannot be read.
pub fn modes_of_pilot(roleset: &Roleset, endpoints: &[Endpoint]) -> Result<Option<Vec<Method>>, RunError> {
    // What a bank was asked for does not depend on a file elsewhere.
    if endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Bank { .. })) {
        return Ok(None);
    }
    find_modes(roleset, &endpoints.iter().map(Endpoint::model).collect::<Vec<_>>())
}

/// Returns the same before any endpoint is known, by the models that a person names.
///
/// Fails as [`modes_of_pilot`] does.
pub fn plan_modes(
    chosen: &Chosen,
    file: &FileConfig,
    roleset: &Roleset,
) -> Result<Option<Vec<Method>>, RunError> {
    if chosen.bank.is_some() || chosen.mock_script.is_some() {
        return Ok(None);
    }
    let models = named_models(chosen, file, roleset);
    find_modes(roleset, &models.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the model of each agent, and of the arbiter, as a person names it; empty where the server's own model is meant.
pub fn named_models(chosen: &Chosen, file: &FileConfig, roleset: &Roleset) -> Vec<String> {
    let mut models = Vec::new();
    for agent in roleset.agents.iter().chain(&roleset.arbiter) {
        let named = chosen.model.as_ref().or(agent.model.as_ref()).or(file.model.as_ref());
        models.push(named.cloned().unwrap_or_default());
    }
    models
}

fn find_modes(roleset: &Roleset, models: &[&str]) -> Result<Option<Vec<Method>>, RunError> {
    let Params::Vote(params) = &roleset.params else { return Ok(None) };
    if params.modes.is_some() || !roleset.agents.iter().any(|agent| agent.method == Method::Program) {
        return Ok(None);
    }
    let pilots = Pilots::load()?;
    if models.is_empty() {
        return Ok(None);
    }
    for (agent, model) in roleset.agents.iter().zip(models) {
        let helps = pilots.find(model, roleset.canonical.kind).is_some_and(Pilot::programs_help);
        if agent.method == Method::Program && !helps {
            return Ok(None);
        }
    }
    Ok(Some(vec![Method::Words, Method::Program]))
}
