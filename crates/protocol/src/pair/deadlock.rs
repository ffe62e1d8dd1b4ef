//! The ways out of a talk that has come to a standstill, before it ends without agreement.
//!
//! The input is the talk when both agents have moved and nothing has changed. The output is the next turn, or the end. First each agent
//! works the task out once more, then each has a last word, then an arbiter chooses. Each of these happens once, so the talk ends.

use super::agent::{AgentState, Floor};
use super::talk::{ArbiterVerdict, Talk};
use super::transition::Transition;
use crate::contract::NoAgreement;
use crate::text::Status;

/// Returns true if both agents have moved and nothing changed.
pub(super) fn is_reached(talk: &Talk) -> bool {
    // An agent that works the task out again has two methods to try.
    let tries = if talk.nothing_is_taken_over() { 2 } else { 1 };
    talk.seats.iter().all(|seat| seat.idle >= tries)
}

/// Returns the next way out after a turn of `mover`. Before the talk ends, each agent works the task out once more unseen, which may find
/// its peer's text, or a better one to talk about. Then it has a last word in the conversation that this has begun, where its earlier words
/// no longer hold it.
pub(super) fn way_out(talk: &Talk, mover: usize) -> Transition {
    let order = [1 - mover, mover];
    if let Some(mover) = order.into_iter().find(|&agent| talk.seats[agent].solo_attempts == 0) {
        return Transition::Turn { mover, floor: Floor::Alone };
    }
    if !talk.nothing_is_taken_over()
        && let Some(mover) = order.into_iter().find(|&agent| talk.seats[agent].floor != Floor::LastWord)
    {
        return Transition::Turn { mover, floor: Floor::LastWord };
    }
    let mut candidates: Vec<usize> = talk.seats.iter().filter_map(AgentState::stands_for).collect();
    candidates.dedup_by(|a, b| talk.proposals[*a].answer.canonical == talk.proposals[*b].answer.canonical);
    if candidates.len() == 2 {
        return Transition::Arbitrate(candidates);
    }
    Transition::without_agreement(NoAgreement::Deadlock)
}

/// Returns the transition from the turn of `mover` after an arbiter's choice; `None` if no arbiter has chosen. After the choice, each agent
/// that does not stand for it has one turn.
pub(super) fn after_ruling(talk: &mut Talk, mover: usize) -> Option<Transition> {
    let ArbiterVerdict::Chose { index, heard, .. } = &mut talk.arbiter else { return None };
    heard[mover] = true;
    let (chosen, heard) = (&talk.proposals[*index].answer.canonical, *heard);
    let accepts = talk.seats.each_ref().map(|seat| {
        let text = seat.stands_for().map(|index| &talk.proposals[index].answer.canonical);
        seat.status() == Some(Status::Solved) && text == Some(chosen)
    });
    let has_refused = (0..2).any(|agent| heard[agent] && !accepts[agent]);
    Some(match (0..2).find(|&agent| !heard[agent] && !accepts[agent]) {
        Some(mover) if !has_refused => Transition::Turn { mover, floor: talk.floor() },
        Some(_) | None => Transition::without_agreement(NoAgreement::Deadlock),
    })
}
