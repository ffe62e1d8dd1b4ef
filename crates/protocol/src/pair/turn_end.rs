//! The result of a turn that is over.
//!
//! The input is the talk, and the envelope with which a turn of one agent ended. The output is the talk with the agent's new position and
//! its idle moves. The next agent to have the floor and the question of agreement are never decided here.

use super::agent::Position;
use super::check::AcceptedEnvelope;
use super::prompt;
use super::talk::Talk;
use crate::contract::Role;

/// Records a turn of `mover` that ended with a valid envelope.
pub(super) fn record_envelope(talk: &mut Talk, mover: usize, accepted: AcceptedEnvelope) {
    talk.seats[mover].failed_in_a_row = 0;
    // An answer that was found once more may tip the scales the next time, so the turn is not an idle move either.
    if is_outvoted(talk, mover, &accepted) {
        talk.remark =
            Some("its earlier answer stands: the new one is no more than half of what it has found");
        return;
    }
    let before = talk.seats[mover].position.clone();
    talk.take_position(mover, accepted);
    if is_same_move(before.as_ref(), talk.seats[mover].position.as_ref()) {
        talk.seats[mover].idle += 1;
    } else {
        talk.seats.iter_mut().for_each(|seat| seat.idle = 0);
    }
}

/// Returns true if nothing that can bring the talk forward differs between two positions of an agent: its status, its text and its
/// requests. While it has no text, its message counts too.
fn is_same_move(before: Option<&Position>, after: Option<&Position>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before.is_none() && after.is_none() };
    before.envelope.status == after.envelope.status
        && before.proposal == after.proposal
        && before.envelope.needs_from_peer == after.envelope.needs_from_peer
        && (after.proposal.is_some() || before.envelope.public_message == after.envelope.public_message)
}

/// Records a turn of `mover` that ended with an acceptance, which does not count because its own text came out better.
pub(super) fn record_kept_text(talk: &mut Talk, mover: usize) {
    let seat = &mut talk.seats[mover];
    seat.conversation.push(Role::User, prompt::acceptance_refused());
    seat.failed_in_a_row = 0;
    seat.idle += 1;
    talk.remark = Some("its own text stands: compared once more, it came out better");
}

/// Records an answer that was found where no text is taken over, and returns whether the answer held before outvotes it.
///
/// An answer gives way only to one that makes up more than half of all that its author has found. A single slip is not a reason, since
/// among many attempts there is always one. An agent that finds another answer each time knows no answer.
fn is_outvoted(talk: &mut Talk, agent: usize, accepted: &AcceptedEnvelope) -> bool {
    let Some(found) = &accepted.answer else { return false };
    if !talk.nothing_is_taken_over() {
        return false;
    }
    talk.keep_declared(agent, accepted);
    let seat = &mut talk.seats[agent];
    seat.solo_answers.push(found.clone());
    let held = seat.last_answer.as_ref();
    held.is_some_and(|held| held.canonical != found.canonical) && !seat.has_mostly_found(found)
}
