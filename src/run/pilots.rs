//! The methods of a vote that leaves them open: as the user's own pilot of the model has found.
//!
//! The input is the setup of a run and the models of its agents. The output is the methods whose voters are asked, or `None` if the setup says it
//! or no pilot has found anything.

use super::error::RunError;
use crate::config::{Chosen, FileConfig, Pilot, Pilots, Roleset, RolesetAgent};
use protocol::core::Endpoint;
use protocol::{AgentSetup, Method, Params, RunSetup};

/// The notice of a vote whose methods follow from a pilot.
pub const BY_PILOT: &str =
    "programs are drawn too, since your pilot found them worth it for this model; --modes decides otherwise";

/// Returns the methods that a pilot has found worth their tokens, if the setup leaves them open.
///
/// # Errors
///
/// Returns [`RunError::Config`] if the file of findings cannot be read.
pub fn modes_of_pilot(setup: &RunSetup, endpoints: &[Endpoint]) -> Result<Option<Vec<Method>>, RunError> {
    // What a bank was asked for does not depend on a file elsewhere.
    if endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Bank(_))) {
        return Ok(None);
    }
    of_models(setup, &endpoints.iter().map(Endpoint::model).collect::<Vec<_>>())
}

/// Returns the same before any endpoint is known, by the models that a person names.
///
/// # Errors
///
/// As for [`modes_of_pilot`].
pub fn planned_modes(
    setup: &RunSetup,
    chosen: &Chosen,
    file: &FileConfig,
    roleset: &Roleset,
) -> Result<Option<Vec<Method>>, RunError> {
    if chosen.bank.is_some() || chosen.mock_script.is_some() {
        return Ok(None);
    }
    let models = named_models(chosen, file, roleset);
    of_models(setup, &models.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the model of each agent, and of the arbiter, as a person names it; empty where the server's own model is meant.
pub fn named_models(chosen: &Chosen, file: &FileConfig, roleset: &Roleset) -> Vec<String> {
    let named = |agent: &RolesetAgent| {
        let named = chosen.model.as_ref().or(agent.model.as_ref()).or(file.model.as_ref());
        named.cloned().unwrap_or_default()
    };
    roleset.agents.iter().chain(&roleset.arbiter).map(named).collect()
}

fn of_models(setup: &RunSetup, models: &[&str]) -> Result<Option<Vec<Method>>, RunError> {
    let Params::Vote(params) = &setup.params else { return Ok(None) };
    let writes = |agent: &&AgentSetup| agent.method == Method::Program;
    if params.modes.is_some() || !setup.agents.iter().any(|agent| writes(&agent)) {
        return Ok(None);
    }
    let pilots = Pilots::load()?;
    let kind = setup.canonical.kind;
    let helps = |model: &str| pilots.find(model, kind).is_some_and(Pilot::programs_help);
    let mut of_writers = setup.agents.iter().zip(models).filter(|(agent, _)| writes(agent));
    let all_help = !models.is_empty() && of_writers.all(|(_, model)| helps(model));
    Ok(all_help.then(|| vec![Method::Words, Method::Program]))
}
