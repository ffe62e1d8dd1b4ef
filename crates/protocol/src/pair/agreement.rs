//! How a talk is settled: by the dual stop, or by a lead that brings an agent back to its own earlier answer.
//!
//! The input is the talk, after a turn or after the opening. The output is one of three:
//!
//! - the agreement of `pair`, which only [`find_agreement`] decides,
//! - the talk in which an agent has returned to the leading answer that it has itself declared final,
//! - the end of a talk that can settle no more.
//!
//! The lead counts the answers that both agents have found without sight of each other.

use super::agent::{AgentState, Position, ProposedText};
use super::talk::Talk;
use crate::contract::{BlindVote, How, Lead, NoAgreement, Outcome, VOTES_MAX};
use crate::sampling::CERTAIN;
use crate::text::Status;
use crypto::Digest;

/// The reason why an agent gave up a later answer for the leading one.
const LED: &str = "the answer that was found most often is one that it had found itself";

/// Returns the agreement between the positions of the two agents, if there is one.
///
/// Both must have status SOLVED, carry the marker, and stand for texts with one canonical form and
/// one digest. The text is shown in the first agent's layout.
///
/// The agreement is independent if both agents had declared this text final in their blind drafts. A draft that its author did not declare
/// final is a guess, and two equal guesses are worth little.
pub(super) fn find_agreement(seats: &[AgentState; 2], proposals: &[ProposedText]) -> Option<Outcome> {
    let (first, second) = (declared_position(&seats[0])?, declared_position(&seats[1])?);
    let mine = &proposals.get(first.proposal?)?.answer;
    let yours = &proposals.get(second.proposal?)?.answer;
    if mine.canonical != yours.canonical {
        return None;
    }
    let was_blind = seats.iter().all(|seat| {
        let draft = seat.committed_draft();
        seat.blind_final && draft.is_some_and(|draft| draft.canonical == mine.canonical)
    });
    let how = if was_blind {
        How::Independent
    } else if first.adopted || second.adopted {
        How::Endorsed
    } else {
        How::Converged
    };
    Some(Outcome::Agreed { how, text: mine.shown.clone(), sha256: mine.canonical.digest })
}

/// Returns the agent's position if it declares its text final.
fn declared_position(seat: &AgentState) -> Option<&Position> {
    let position = seat.position.as_ref()?;
    let envelope = &position.envelope;
    let declares = envelope.status == Status::Solved && envelope.has_solved_marker();
    declares.then_some(position)
}

/// Lets each agent return to the leading answer, if it leads clearly, and if the agent has declared it final itself and has found no other
/// answer more often.
///
/// An agent that works a task out again may slip. Its earlier envelope is still its own word.
pub(super) fn follow_lead(talk: &mut Talk) {
    let Some((leader, lead)) = find_lead(talk) else { return };
    if !is_enough(lead) {
        return;
    }
    for agent in 0..2 {
        let seat = &talk.seats[agent];
        if holds(seat, leader) || !finds_most(seat, leader) {
            continue;
        }
        let declared = talk.declared[agent].iter().rev().find(|accepted| {
            accepted.answer.as_ref().is_some_and(|answer| answer.canonical.digest == leader)
        });
        if let Some(accepted) = declared.cloned() {
            talk.take_position(agent, accepted);
            LED.clone_into(&mut talk.seats[agent].why_given_up);
            talk.remark = None;
        }
    }
}

/// Returns the reason to end a talk in which the turns that are left can settle nothing: no answer can lead clearly, and no answer can
/// become that of both agents. An arbiter could settle it all the same.
pub(super) fn find_futility(talk: &Talk) -> Option<NoAgreement> {
    if talk.setup.arbiter.is_some() {
        return None;
    }
    let (_, Lead { leader, runner_up }) = find_lead(talk)?;
    let left = talk.setup.params.max_rounds.saturating_sub(talk.round);
    if left == 0 {
        // The limit on rounds is the reason.
        return None;
    }
    let best = Lead { leader: leader.saturating_add(left), runner_up };
    if best.leader + runner_up > VOTES_MAX || is_enough(best) {
        return None;
    }
    let mut found = talk.seats.iter().flat_map(AgentState::found_alone);
    let can_meet =
        found.any(|answer| talk.seats.iter().all(|seat| can_hold(seat, answer.canonical.digest, left)));
    if can_meet { None } else { Some(NoAgreement::Unsettled) }
}

/// Returns the answer that was found most often, and its lead over the second one. `None` where texts are taken over, and for more
/// answers than the fraction can hold.
fn find_lead(talk: &Talk) -> Option<(Digest, Lead)> {
    if !talk.nothing_is_taken_over() {
        return None;
    }
    let tally = BlindVote::from_drafts(talk.seats.iter().flat_map(AgentState::found_alone).map(Some)).tally;
    let first = tally.first()?;
    let lead = Lead { leader: first.votes, runner_up: tally.get(1).map_or(0, |second| second.votes) };
    if lead.leader + lead.runner_up > VOTES_MAX {
        return None;
    }
    Some((first.sha256, lead))
}

fn is_enough(lead: Lead) -> bool {
    lead.certainty().reaches(CERTAIN)
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
