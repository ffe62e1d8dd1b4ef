//! What is known about a run at any moment: blind vote, standings, dissent, losses.

use serde::Serialize;

use super::agent::{AgentState, Answer, blind_vote};
use super::state::Pair;
use crate::crypto::Digest;
use crate::protocol::contract::{AgentReport, Degraded, DegradedKind, Dissent, Outcome, Report};
use crate::protocol::turn::{ArbiterChoice, no_choice};

/// What only `pair` has.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PairSection {
    /// What the arbiter chose, if one was asked and chose.
    pub arbiter: Option<ArbiterChoice>,
}

impl Pair {
    /// Makes the report; see [`crate::protocol::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<PairSection> {
        let agreed = match &self.outcome {
            Some(Outcome::Agreed { sha256, .. }) => Some(*sha256),
            Some(_) | None => None,
        };
        Report {
            rounds: self.round,
            blind_vote: blind_vote(&self.seats),
            agents: self.seats.iter().zip(&self.setup.agents).map(|(s, a)| self.agent(s, &a.name)).collect(),
            dissent: self.dissent(agreed),
            degraded: self.degraded(),
            section: PairSection { arbiter: self.arbiter_choice() },
        }
    }

    fn degraded(&self) -> Vec<Degraded> {
        let mut found = Vec::new();
        for (seat, agent) in self.seats.iter().zip(&self.setup.agents) {
            let mut add = |kind, detail| found.push(Degraded { kind, detail });
            if seat.blind.first().is_some_and(Option::is_none) {
                add(DegradedKind::BlindDraftMissing, format!("{} committed to no blind draft", agent.name));
            }
            if seat.failed_turns > 0 {
                let turns = seat.failed_turns;
                add(
                    DegradedKind::FailedTurn,
                    format!("{} wrote no valid envelope in {turns} of its turns", agent.name),
                );
            }
        }
        found.extend(self.setup.arbiter.iter().filter(|_| self.arbiter_failed).map(no_choice));
        found
    }

    fn arbiter_choice(&self) -> Option<ArbiterChoice> {
        let (index, reason) = self.arbiter_choice.as_ref()?;
        Some(ArbiterChoice::new(Some(&self.proposals[*index].answer), reason.clone()))
    }

    fn agent(&self, seat: &AgentState, name: &str) -> AgentReport {
        let answer = seat.stands_for().map(|index| &self.proposals[index].answer);
        AgentReport {
            name: name.to_owned(),
            status: seat.status(),
            text: answer.map(|a| a.shown.clone()),
            sha256: answer.map(|a| a.canonical.digest),
            changes: seat.changes,
            repairs: seat.repairs,
            failed_turns: seat.failed_turns,
        }
    }

    /// Returns every answer other than the agreed one: held to the end, or given up since the
    /// blind draft.
    fn dissent(&self, agreed: Option<Digest>) -> Vec<Dissent> {
        let mut found = Vec::new();
        for (seat, agent) in self.seats.iter().zip(&self.setup.agents) {
            let mut add = |stage, answer: &Answer, why: String| {
                let sha256 = answer.canonical.digest;
                if Some(sha256) != agreed {
                    let (agent, text) = (agent.name.clone(), answer.shown.clone());
                    found.push(Dissent { agent, stage, text, sha256, why });
                }
            };
            let last = seat.position.as_ref();
            let standing = last.and_then(|p| p.proposal).map(|index| &self.proposals[index].answer);
            if let (Some(position), Some(answer)) = (last, standing) {
                add("final", answer, position.envelope.public_message.clone());
            }
            let blind = seat.blind.first().and_then(Option::as_ref);
            if let Some(draft) = blind.filter(|d| standing.is_none_or(|s| s.canonical != d.canonical)) {
                add("blind", draft, seat.why_given_up.clone());
            }
        }
        found
    }
}
