//! The seats of a panel: a person's choice of members, in place of the roleset's or in addition to them. The voters of a vote can sit on
//! several models.
//!
//! The input is a request, a roleset and its packs. The output is both with these members. Nothing is read here.

use super::error::RunError;
use super::parameters::require_flag;
use super::redaction::redacts;
use super::request::RedactRequest;
use crate::config::{Packs, Roleset, SeatRequest, seat, seat_voters};
use protocol::core::Endpoint;
use protocol::{Params, ProtocolParams as _, RunSetup};

impl SeatRequest {
    /// Puts these members into a roleset.
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
            require_flag(roleset, "--members, --self-panel or --persona", Params::has_members)?;
        }
        if !models.is_empty() {
            if matches!(roleset.params, Params::Vote(_)) {
                return Ok(seat_voters(roleset, models)?);
            }
            require_flag(roleset, "--models", |params| {
                params.has_members() || matches!(params, Params::Vote(_))
            })?;
        }
        let is_redacted = redacts(redaction, roleset);
        seat(roleset, packs, self, is_redacted)?;
        Ok(())
    }
}

/// Refuses a vote in which two voters are alike once their models are known. They would count as two, although they are one. Scripts may
/// play any voters.
pub fn require_unlike_voters(setup: &RunSetup, endpoints: &[Endpoint]) -> Result<(), RunError> {
    let Params::Vote(params) = &setup.params else { return Ok(()) };
    let mut known = Vec::new();
    for voter in params.voters(&setup.agents) {
        let agent = &setup.agents[voter];
        let model = match endpoints.get(voter) {
            None | Some(Endpoint::Mock { .. }) => continue,
            Some(endpoint) => endpoint.model(),
        };
        let way = (&agent.pack, agent.method, model);
        if let Some((_, one)) = known.iter().find(|(known, _)| *known == way) {
            let other = &agent.name;
            return Err(RunError::Usage(format!(
                "`{other}` votes as `{one}` does, by the same pack and on the same model; a voter has a pack, a method or a \
                 model of its own"
            )));
        }
        known.push((way, &agent.name));
    }
    Ok(())
}
