//! The seats of a panel: a person's choice of members, in place of the roleset's or in addition to them. The voters of a vote can sit on
//! several models.
//!
//! The input is a request, a roleset and its packs. The output is both with these members. Nothing is read here.

use super::error::RunError;
use super::parameters::refuse;
use super::redaction::redacts;
use super::request::{RedactRequest, SeatRequest};
use crate::config::{Packs, Roleset, Seats, seat, seat_voters};
use protocol::core::Endpoint;
use protocol::{Params, ProtocolParams as _, RunSetup};

impl SeatRequest {
    /// Puts these members into a roleset.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Usage`] if the roleset takes no such request, and [`RunError::Config`] if there are no such members.
    pub fn take(
        &self,
        roleset: &mut Roleset,
        packs: &mut Packs,
        redaction: &RedactRequest,
    ) -> Result<(), RunError> {
        let Self { members, models, copies, personas } = self;
        if !members.is_empty() || copies.is_some() || !personas.is_empty() {
            refuse(roleset, "--members, --self-panel or --persona", Params::has_members)?;
        }
        if let (Params::Vote(_), false) = (&roleset.params, models.is_empty()) {
            return Ok(seat_voters(roleset, models)?);
        }
        if !models.is_empty() {
            let is_vote = |params: &Params| matches!(params, Params::Vote(_));
            refuse(roleset, "--models", |params| params.has_members() || is_vote(params))?;
        }
        let is_redacted = redacts(redaction, roleset);
        seat(roleset, packs, &Seats { members, models, copies: *copies, personas, is_redacted })?;
        Ok(())
    }
}

/// Refuses a vote in which two voters are alike once their models are known. They would count as two, although they are one. Scripts may
/// play any voters.
pub fn require_unlike_voters(setup: &RunSetup, endpoints: &[Endpoint]) -> Result<(), RunError> {
    let Params::Vote(params) = &setup.params else { return Ok(()) };
    let way = |voter: usize| {
        let agent = &setup.agents[voter];
        let endpoint = endpoints.get(voter).filter(|endpoint| !matches!(endpoint, Endpoint::Mock(_)))?;
        Some((&agent.pack, agent.method, endpoint.model()))
    };
    let voters = params.voters(&setup.agents);
    for (place, voter) in voters.iter().enumerate() {
        if let Some(first) =
            voters[..place].iter().find(|other| way(*voter).is_some() && way(**other) == way(*voter))
        {
            let (one, other) = (&setup.agents[*first].name, &setup.agents[*voter].name);
            return Err(RunError::Usage(format!(
                "`{other}` votes as `{one}` does, by the same pack and on the same model; a voter has a pack, a method or a \
                 model of its own"
            )));
        }
    }
    Ok(())
}
