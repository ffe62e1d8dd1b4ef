//! The methods of a vote that leaves them open: as the user's own pilot of the model has found.
//!
//! The input is the setup of a run and its endpoints. The output is the methods whose voters are asked, or `None` if the setup says it
//! or no pilot has found anything.

use super::error::RunError;
use crate::config::Pilots;
use crate::core::Endpoint;
use crate::protocol::{Method, Params, RunSetup};

/// The notice of a vote whose methods follow from a pilot.
pub const BY_PILOT: &str =
    "programs are drawn too, since your pilot found them worth it for this model; --modes decides otherwise";

/// Returns the methods that a pilot has found worth their tokens, if the setup leaves them open.
///
/// # Errors
///
/// Returns [`RunError::Config`] if the file of findings cannot be read.
pub fn modes_of_pilot(setup: &RunSetup, endpoints: &[Endpoint]) -> Result<Option<Vec<Method>>, RunError> {
    let Params::Vote(params) = &setup.params else { return Ok(None) };
    // What a bank was asked for does not depend on a file elsewhere.
    if endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Bank(_))) {
        return Ok(None);
    }
    let writes = |agent: &&crate::protocol::AgentSetup| agent.method == Method::Program;
    if params.modes.is_some() || !setup.agents.iter().any(|agent| writes(&agent)) {
        return Ok(None);
    }
    let pilots = Pilots::load()?;
    let kind = setup.canonical.kind;
    let helps = |endpoint: &Endpoint| {
        pilots.find(endpoint.model(), kind).is_some_and(crate::config::Pilot::programs_help)
    };
    let mut of_writers = setup.agents.iter().zip(endpoints).filter(|(agent, _)| writes(agent));
    let all_help = !endpoints.is_empty() && of_writers.all(|(_, endpoint)| helps(endpoint));
    Ok(all_help.then(|| vec![Method::Words, Method::Program]))
}
