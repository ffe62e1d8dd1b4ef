//! The settling of a talk by the lead of one answer among everything that both agents have found without sight of each other.
//!
//! The input is the talk, after an answer was found. The output is the talk in which an agent has returned to the leading answer that it has
//! itself declared final, or the end of a talk that can settle no more. Whether the agents agree is never decided here.

use super::agent::AgentState;
use super::check::Accepted;
use super::talk::Talk;
use crate::contract::{BlindVote, Lead, NoAgreement, VOTES_MAX};
use crate::core::BasisPoints;
use crypto::Digest;

/// The certainty of a lead that is enough, as in a vote.
const ENOUGH: BasisPoints = BasisPoints::of_ten_thousand(9_000);

/// The reason why an agent gave up a later answer for the leading one.
const LED: &str = "the answer that was found most often is one that it had found itself";

/// Lets each agent return to the leading answer, if it leads clearly, and if the agent has declared it final itself and has found no other
/// answer more often.
///
/// An agent that works a task out again may slip. Its earlier envelope is still its own word.
pub(super) fn follow_lead(talk: &mut Talk) {
    let Some((leader, _)) = lead(talk).filter(|(_, lead)| is_enough(*lead)) else { return };
    for agent in 0..2 {
        let seat = &talk.seats[agent];
        if holds(seat, leader) || !finds_most(seat, leader) {
            continue;
        }
        let says_it = |accepted: &&Accepted| {
            accepted.answer.as_ref().is_some_and(|answer| answer.canonical.digest == leader)
        };
        if let Some(accepted) = talk.declared[agent].iter().rev().find(says_it).cloned() {
            talk.take_position(agent, accepted);
            LED.clone_into(&mut talk.seats[agent].why_given_up);
            talk.remark = None;
        }
    }
}

/// Returns the reason to end a talk in which the turns that are left can settle nothing: no answer can lead clearly, and no answer can
/// become that of both agents. An arbiter could settle it all the same.
pub(super) fn futility(talk: &Talk) -> Option<NoAgreement> {
    let (_, Lead { leader, runner_up }) = lead(talk).filter(|_| talk.setup.arbiter.is_none())?;
    let left = talk.setup.params.max_rounds.saturating_sub(talk.round);
    if left == 0 {
        // The limit on rounds is the reason.
        return None;
    }
    let best = Lead { leader: leader.saturating_add(left), runner_up };
    let can_lead = best.leader + runner_up > VOTES_MAX || is_enough(best);
    let can_meet = || {
        let mut found = talk.seats.iter().flat_map(AgentState::found_alone);
        found.any(|answer| talk.seats.iter().all(|seat| can_hold(seat, answer.canonical.digest, left)))
    };
    (!can_lead && !can_meet()).then_some(NoAgreement::Unsettled)
}

/// Returns the answer that was found most often, and its lead over the second one. `None` where texts are taken over, and for more
/// answers than the fraction can hold.
fn lead(talk: &Talk) -> Option<(Digest, Lead)> {
    if !talk.nothing_is_taken_over() {
        return None;
    }
    let tally = BlindVote::from_drafts(talk.seats.iter().flat_map(AgentState::found_alone).map(Some)).tally;
    let votes = |place: usize| tally.get(place).map_or(0, |entry| entry.votes);
    let lead = Lead { leader: votes(0), runner_up: votes(1) };
    let leader = tally.first().filter(|_| lead.leader + lead.runner_up <= VOTES_MAX)?;
    Some((leader.sha256, lead))
}

fn is_enough(lead: Lead) -> bool {
    lead.certainty().reaches(ENOUGH)
}

fn holds(seat: &AgentState, answer: Digest) -> bool {
    seat.last_answer.as_ref().is_some_and(|held| held.canonical.digest == answer)
}

/// Returns the number of times that an agent has found an answer alone.
fn count(seat: &AgentState, answer: Digest) -> usize {
    seat.found_alone().filter(|found| found.canonical.digest == answer).count()
}

/// Returns true if an agent has found this answer, and no other one more often.
fn finds_most(seat: &AgentState, answer: Digest) -> bool {
    let own = count(seat, answer);
    own > 0 && seat.found_alone().all(|other| count(seat, other.canonical.digest) <= own)
}

/// Returns true if an agent stands for this answer, or could find it so often in its share of the turns that are left that it would change
/// to it.
fn can_hold(seat: &AgentState, answer: Digest, left: u32) -> bool {
    let turns = left.div_ceil(2) as usize;
    holds(seat, answer) || 2 * (count(seat, answer) + turns) > seat.found_alone().count() + turns
}
