//! Calls that fail for good: the run continues without their agents, or it is put down.
//!
//! The input is the error of a call, or the record of a loss. A protocol says how many of its agents it needs. A record is durable before
//! anything follows from it, as that of a reply is. Nothing is lost while a run is being put down, because a resumed run calls again.

use std::collections::BTreeSet;

use super::drive::Engine;
use super::error::EngineError;
use super::flight::Flight;
use super::mismatch::Mismatch;
use super::observer::RunEvent;
use super::run_state::RunState;
use crate::journal::{Entry, LostCall};
use crate::provider::ProviderError;
use protocol::core::Endpoint;
use protocol::text::{counted, escape};
use protocol::{CallId, Degraded, DegradedKind, Event, Outcome, Protocol as _};

impl Engine<'_> {
    /// Takes the failure of a call. The run continues without the agent of the call if its protocol does, and is put down otherwise.
    pub(super) async fn take_failure<F>(
        &mut self,
        flight: &mut Flight<'_, F>,
        call: CallId,
        error: &ProviderError,
    ) -> Result<(), EngineError> {
        self.observer.on_event(RunEvent::Failed { call, error });
        let is_borne = error.is_of_server() && self.state.bears_failure(call.agent, error);
        if is_borne && flight.reason.is_none() {
            let lost = LostCall { call, cause: escape::one_line(&error.to_string()) };
            let agent = self.state.agent_name(call.agent);
            self.observer.on_event(RunEvent::Lost { agent, lost: &lost });
            self.record(Entry::Lost(lost))?;
            return Ok(self.log.sync().await?);
        }
        let cause = format!("{}: {error}", self.state.agent_name(call.agent));
        flight.reason = flight.reason.take().or(Some(Outcome::Failed { cause }));
        Ok(())
    }
}

impl RunState {
    /// Returns true if the run continues without this agent, and without all others whose calls would fail as well. So a run whose agents
    /// share a server is put down with none of them lost, and a resumed run has them all.
    fn bears_failure(&self, agent: usize, error: &ProviderError) -> bool {
        let mut lost = self.lost_with(agent);
        if let Some(own) = self.endpoints.get(agent) {
            for (other, endpoint) in self.endpoints.iter().enumerate() {
                if shares_failure(own, endpoint, error) {
                    lost.insert(other);
                }
            }
        }
        self.opened.setup.bears_loss_of(&lost)
    }

    /// Returns the agents that were lost, and this one.
    fn lost_with(&self, agent: usize) -> BTreeSet<usize> {
        self.lost.keys().copied().chain([agent]).collect()
    }

    /// Takes the record of a loss. The reserve stays counted, because the server may have begun to answer.
    pub(super) fn take_lost(&mut self, lost: &LostCall) -> Result<(), Mismatch> {
        let call = lost.call;
        let (_, reserve) = self.owed.get(&call).ok_or(Mismatch::NotOwed(call))?;
        if reserve.is_none() {
            return Err(Mismatch::LostUnasked(call));
        }
        if !self.opened.setup.bears_loss_of(&self.lost_with(call.agent)) {
            return Err(Mismatch::NeededAgent(call));
        }
        self.owed.remove(&call);
        self.lost.entry(call.agent).or_default().push(lost.cause.clone());
        let actions = self.machine.step(&Event::Lost { call, cause: lost.cause.clone() })?;
        self.take_actions(actions);
        Ok(())
    }

    /// Returns the agents that were lost as losses of the result, each with its first cause.
    pub(super) fn lost_members(&self) -> Vec<Degraded> {
        let mut found = Vec::new();
        for (agent, causes) in &self.lost {
            let Some(first) = causes.first() else { continue };
            let (name, calls) = (self.agent_name(*agent), counted(causes.len(), "call"));
            let detail = escape::message(&format!("{name}'s server failed in {calls}: {first}"));
            found.push(Degraded { kind: DegradedKind::MemberLost, detail });
        }
        found
    }
}

/// Returns true if a call to `other` would fail as one to `own` did.
fn shares_failure(own: &Endpoint, other: &Endpoint, error: &ProviderError) -> bool {
    // A script plays each agent as a server of its own.
    if let Endpoint::Mock { .. } = own {
        return false;
    }
    // A server that cannot be reached has none of its models.
    if error.is_of_connection() { own.place() == other.place() } else { error.is_of_all() && own == other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::core::OpenAiEndpoint;

    fn endpoint(url: &str, model: &str) -> Endpoint {
        Endpoint::OpenAi(Box::new(OpenAiEndpoint { model: model.to_owned(), ..OpenAiEndpoint::bare(url) }))
    }

    /// A server that is gone has none of its models, and a model or a request that is refused says nothing about others.
    #[test]
    fn failure_is_shared_as_far_as_it_reaches() {
        let url = "http://127.0.0.1:8000/v1";
        let own = endpoint(url, "small");
        let others =
            [endpoint(url, "small"), endpoint(url, "large"), endpoint("http://127.0.0.1:1/v1", "small")];
        let gone =
            ProviderError::Unreachable { url: url.to_owned(), why: "reset".to_owned(), is_refused: false };
        let absent = ProviderError::Status {
            url: url.to_owned(),
            status: 404,
            message: "no such model".to_owned(),
            hint: "",
            retry_after: None,
        };
        let odd = ProviderError::BadAnswer { url: url.to_owned(), why: "it is empty".to_owned() };
        for (error, shared) in
            [(gone, [true, true, false]), (absent, [true, false, false]), (odd, [false, false, false])]
        {
            assert_eq!(others.each_ref().map(|other| shares_failure(&own, other, &error)), shared, "{error}");
            let script = Endpoint::Mock { script: String::new() };
            assert!(!shares_failure(&script, &script, &error));
        }
    }
}
