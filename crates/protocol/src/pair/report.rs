//! The report of a run, at any moment: the blind vote, the positions, the dissent and the losses.

use serde::Serialize;

use super::agent::{AgentState, Answer, blind_vote};
use super::talk::{ArbiterVerdict, Talk};
use crate::contract::{AgentReport, Degraded, DegradedKind, Dissent, Report};
use crate::sampling::VoteSection;
use crate::turn::{ArbiterChoice, no_choice};
use crypto::Digest;

/// The part of a report that only `pair` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairSection {
    /// The arbiter's choice, if it was asked and chose.
    pub arbiter: Option<ArbiterChoice>,
    /// The blind answers that were counted; `None` in a talk alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<VoteSection>,
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
        section: PairSection { arbiter: arbiter_choice(talk), vote: None },
    }
}

fn degraded(talk: &Talk) -> Vec<Degraded> {
    let mut found = Vec::new();
    for (seat, agent) in talk.seats.iter().zip(&talk.setup.agents) {
        if seat.blind.first().is_some_and(Option::is_none) {
            let detail = format!("{} committed to no blind draft", agent.name);
            found.push(Degraded { kind: DegradedKind::BlindDraftMissing, detail });
        }
        if seat.failed_turns > 0 {
            let turns = seat.failed_turns;
            let detail = format!("{} wrote no valid envelope in {turns} of its turns", agent.name);
            found.push(Degraded { kind: DegradedKind::FailedTurn, detail });
        }
    }
    if let (ArbiterVerdict::Failed, Some(arbiter)) = (&talk.arbiter, &talk.setup.arbiter) {
        found.push(no_choice(arbiter));
    }
    found
}

fn arbiter_choice(talk: &Talk) -> Option<ArbiterChoice> {
    match &talk.arbiter {
        ArbiterVerdict::Chose { index, reason, .. } => {
            Some(ArbiterChoice::new(Some(&talk.proposals[*index].answer), reason.clone()))
        }
        ArbiterVerdict::NotAsked
        | ArbiterVerdict::Asked(_)
        | ArbiterVerdict::Failed
        | ArbiterVerdict::Counted(_) => None,
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
        let last = seat.stands_for().map(|index| &talk.proposals[index].answer);
        if let (Some(position), Some(answer)) = (&seat.position, last) {
            found.push(dissent_of(&agent.name, "final", answer, &position.envelope.public_message));
        }
        if let Some(draft) = seat.committed_draft()
            && last.is_none_or(|last| last.canonical != draft.canonical)
        {
            found.push(dissent_of(&agent.name, "blind", draft, &seat.why_given_up));
        }
    }
    found.retain(|dissent| Some(dissent.sha256) != agreed);
    found
}

fn dissent_of(agent: &str, stage: &'static str, answer: &Answer, why: &str) -> Dissent {
    Dissent {
        agent: agent.to_owned(),
        stage,
        text: answer.shown.clone(),
        sha256: answer.canonical.digest,
        why: why.to_owned(),
    }
}
