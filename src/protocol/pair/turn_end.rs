//! What a turn has brought, once it is over.
//!
//! In: the talk, and how a turn of one agent went. Out: the talk with the agent's new position, its failures and its
//! idle moves. Who has the floor next, and whether there is agreement, is never decided here.

use super::agent::Position;
use super::check::Accepted;
use super::prompt;
use super::talk::Talk;
use crate::protocol::contract::Role;
use crate::text::Status;

/// How a turn went.
pub(super) enum TurnEnd {
    /// With a valid envelope.
    Spoke(Box<Accepted>),
    /// With an acceptance that its author's own comparison does not bear out.
    Kept,
    /// Without a valid envelope.
    Failed,
}

/// An agent's status, text and requests, and its message while it has no text.
type Standing = (Status, Option<usize>, Vec<String>, Option<String>);

/// Takes in how a turn of `mover` went.
pub(super) fn settle(talk: &mut Talk, mover: usize, ended: TurnEnd) {
    let before = standing(talk, mover);
    let is_move = match ended {
        TurnEnd::Spoke(accepted) => {
            let is_torn = is_outvoted(talk, mover, &accepted);
            if is_torn {
                talk.remark =
                    Some("its earlier answer stands: the new one is no more than half of what it has found");
            } else {
                talk.take_position(mover, *accepted);
            }
            // What was found once more may tip the scales the next time.
            !is_torn
        }
        TurnEnd::Kept => {
            talk.seats[mover].conversation.push(Role::User, prompt::kept());
            talk.remark = Some("its own text stands: compared once more, it came out better");
            true
        }
        // A failed turn is no move; two in a row end the talk.
        TurnEnd::Failed => return talk.count_failure(mover),
    };
    talk.seats[mover].failed_in_a_row = 0;
    if standing(talk, mover) != before {
        talk.seats.iter_mut().for_each(|seat| seat.idle = 0);
    } else if is_move {
        talk.seats[mover].idle += 1;
    }
}

/// What must differ between two turns of an agent for the talk to be going anywhere: its status,
/// its text and its requests, and while it has no text its message.
fn standing(talk: &Talk, agent: usize) -> Option<Standing> {
    let Position { envelope, proposal, .. } = talk.seats[agent].position.as_ref()?;
    let message = proposal.is_none().then(|| envelope.public_message.clone());
    Some((envelope.status, *proposal, envelope.needs_from_peer.clone(), message))
}

/// Where no text is taken over, an answer gives way only to one that makes up more than half of all that its author
/// has found: a single slip is no reason, among many attempts there is always one, and an agent that finds another
/// answer each time knows none.
///
/// Notes what was found, and returns whether the answer held before stands against it.
fn is_outvoted(talk: &mut Talk, agent: usize, accepted: &Accepted) -> bool {
    let Some(found) = accepted.answer.as_ref().filter(|_| talk.nothing_is_taken_over()) else {
        return false;
    };
    let seat = &mut talk.seats[agent];
    seat.solo_answers.push(found.clone());
    let held = seat.last_answer.as_ref();
    held.is_some_and(|held| held.canonical != found.canonical) && !seat.has_mostly_found(found)
}
