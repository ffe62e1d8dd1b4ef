//! The report of a run, at any moment: the blind vote, the positions, the dissent and the losses.

use serde::Serialize;

use super::agent::{AgentState, Answer, blind_vote};
use super::talk::{ArbiterVerdict, Talk};
use crate::contract::{AgentReport, Degraded, DegradedKind, Dissent, Report};
use crate::turn::{ArbiterChoice, no_choice};
use crypto::Digest;

/// The part of a report that only `pair` has.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PairSection {
    /// The arbiter's choice, if it was asked and chose.
    pub arbiter: Option<ArbiterChoice>,
}

/// Makes the report of a run; see [`crate::Protocol::report`]. `agreed` is the digest of the text that the agents have agreed on,
/// if they have agreed.
pub(super) fn report(talk: &Talk, agreed: Option<Digest>) -> Report<PairSection> {
    let named = talk.seats.iter().zip(&talk.setup.agents);
    Report {
        rounds: talk.round,
        blind_vote: blind_vote(&talk.seats),
        agents: named.map(|(seat, setup)| agent(talk, seat, &setup.name)).collect(),
        dissent: dissent(talk, agreed),
        degraded: degraded(talk),
        section: PairSection { arbiter: arbiter_choice(talk) },
    }
}

fn degraded(talk: &Talk) -> Vec<Degraded> {
    let mut found = Vec::new();
    for (seat, agent) in talk.seats.iter().zip(&talk.setup.agents) {
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
    let has_failed = matches!(talk.arbiter, ArbiterVerdict::Failed);
    found.extend(talk.setup.arbiter.iter().filter(|_| has_failed).map(no_choice));
    found
}

fn arbiter_choice(talk: &Talk) -> Option<ArbiterChoice> {
    match &talk.arbiter {
        ArbiterVerdict::Chose { index, reason, .. } => {
            Some(ArbiterChoice::new(Some(&talk.proposals[*index].answer), reason.clone()))
        }
        ArbiterVerdict::Awaited | ArbiterVerdict::Failed => None,
    }
}

fn agent(talk: &Talk, seat: &AgentState, name: &str) -> AgentReport {
    let answer = seat.stands_for().map(|index| &talk.proposals[index].answer);
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

/// Returns every answer other than the agreed one: held to the end, or given up since the blind draft.
fn dissent(talk: &Talk, agreed: Option<Digest>) -> Vec<Dissent> {
    let mut found = Vec::new();
    for (seat, agent) in talk.seats.iter().zip(&talk.setup.agents) {
        let mut add = |stage, answer: &Answer, why: String| {
            let sha256 = answer.canonical.digest;
            if Some(sha256) != agreed {
                let (agent, text) = (agent.name.clone(), answer.shown.clone());
                found.push(Dissent { agent, stage, text, sha256, why });
            }
        };
        let last = seat.position.as_ref();
        let standing = last.and_then(|p| p.proposal).map(|index| &talk.proposals[index].answer);
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
