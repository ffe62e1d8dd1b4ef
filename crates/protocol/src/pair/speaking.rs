//! The state of a turn: one agent has the floor, and writes its envelope.
//!
//! The input is the way in which the agent has the floor, and its replies. The output is requests, and at last the end of the turn, or a
//! comparison that its envelope has yet to pass. No position changes here.

use super::agent::{Better, Floor};
use super::envelope_draft::EnvelopeDraft;
use super::talk::Talk;
use super::transition::Transition;
use crate::contract::{Action, CallId, Reply, Step};
use crate::turn::TurnProgress;

/// Asks for the first reply of a turn of `mover`, in the round that has begun.
pub(super) fn begin(talk: &mut Talk, mover: usize, floor: Floor) -> (EnvelopeDraft, Vec<Action>) {
    let call = talk.call(mover, Step::Think);
    let seat = &mut talk.seats[mover];
    let draft = match floor {
        Floor::Alone => {
            // The agent alternates between its peer's method and its own: an error that one method misses repeatedly, another may see.
            seat.solo_attempts += 1;
            // The agent's next words are in a conversation that knows nothing of the talk before them.
            seat.floor = floor;
            let method = if seat.solo_attempts % 2 == 1 { 1 - mover } else { mover };
            EnvelopeDraft::from_nothing(talk, call, method)
        }
        Floor::InSight | Floor::LastWord => {
            let is_first = seat.floor == Floor::Alone;
            seat.floor = seat.floor.max(floor);
            EnvelopeDraft::from_talk(talk, call, is_first)
        }
    };
    let ask = draft.ask(talk);
    (draft, vec![Action::Ask(ask)])
}

/// Takes a reply. An acceptance does not count yet if the texts are still to be compared. Returns `None` if the reply is not to the open
/// call.
pub(super) fn take_reply(
    draft: &mut EnvelopeDraft,
    talk: &mut Talk,
    call: CallId,
    reply: &Reply,
) -> Option<Transition> {
    if call != draft.call() {
        return None;
    }
    let mover = call.agent;
    let accepted = match draft.reply(talk, reply) {
        TurnProgress::Ask(ask) => return Some(Transition::Stay(vec![Action::Ask(ask)])),
        TurnProgress::Valid(accepted) => accepted,
        TurnProgress::Failed => return Some(Transition::FailTurn(mover)),
    };
    let review = talk.review(mover, draft.is_blind());
    let answer = accepted.answer.as_ref();
    let (Some(own), Some(other)) = (review.answer_given_up_for(answer), answer) else {
        return Some(Transition::EndTurn { mover, accepted });
    };
    Some(match review.comparison_with(other) {
        None => {
            let (own, other) = (own.clone(), other.clone());
            Transition::Compare { mover, accepted, own, other }
        }
        Some(Better::Own) => Transition::KeepOwnText(mover),
        Some(Better::Neither | Better::Other) => Transition::EndTurn { mover, accepted },
    })
}
