//! The state of a turn: one agent has the floor, and writes its envelope.
//!
//! The input is the way in which the agent has the floor, and its replies. The output is requests, and at last the end of the turn, or a
//! comparison that its envelope has yet to pass. No position changes here.

use super::agent::Floor;
use super::check::Concession;
use super::making::Making;
use super::talk::Talk;
use super::transition::Transition;
use super::turn_end::TurnEnd;
use crate::contract::{Action, CallId, Reply, Step};
use crate::turn::TurnProgress;

/// The state in which one agent has the floor.
#[derive(Clone, Debug)]
pub(super) struct Speaking {
    making: Making,
}

impl Speaking {
    /// Asks for the first reply of a turn of `mover`, in the round that has begun.
    pub(super) fn new(talk: &mut Talk, mover: usize, floor: Floor) -> (Self, Vec<Action>) {
        let call = talk.call(mover, Step::Think);
        let seat = &mut talk.seats[mover];
        let making = match floor {
            Floor::Alone => {
                // The agent alternates between its peer's method and its own: an error that one method misses repeatedly, another may see.
                seat.solo_attempts += 1;
                // The agent's next words are in a conversation that knows nothing of the talk before them.
                seat.floor = floor;
                let method = if seat.solo_attempts % 2 == 1 { 1 - mover } else { mover };
                Making::from_nothing(talk, call, method)
            }
            Floor::InSight | Floor::LastWord => {
                let is_first = seat.floor == Floor::Alone;
                seat.floor = seat.floor.max(floor);
                Making::from_talk(talk, call, is_first)
            }
        };
        let ask = making.ask(talk);
        (Self { making }, vec![Action::Ask(ask)])
    }

    /// Takes a reply. An acceptance does not count yet if the texts are still to be compared. Returns `None` if the reply is not to the
    /// open call.
    pub(super) fn reply(&mut self, talk: &mut Talk, call: CallId, reply: &Reply) -> Option<Transition> {
        if call != self.making.call() {
            return None;
        }
        let mover = call.agent;
        let accepted = match self.making.reply(talk, reply) {
            TurnProgress::Ask(ask) => return Some(Transition::Stay(vec![Action::Ask(ask)])),
            TurnProgress::Valid(accepted) => accepted,
            TurnProgress::Failed => return Some(Transition::EndTurn { mover, ended: TurnEnd::Failed }),
        };
        let review = talk.review(mover, self.making.is_blind());
        Some(match review.concession(accepted.answer.as_ref()) {
            Concession::None => Transition::EndTurn { mover, ended: TurnEnd::Spoke(accepted) },
            Concession::OfTheBetter => Transition::EndTurn { mover, ended: TurnEnd::Kept },
            Concession::Unweighed { own, other } => Transition::Compare { mover, accepted, own, other },
        })
    }
}
