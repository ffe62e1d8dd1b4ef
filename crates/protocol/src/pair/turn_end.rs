//! The result of a turn that is over.
//!
//! The input is the talk, and the way in which a turn of one agent ended. The output is the talk with the agent's new position, its
//! failures and its idle moves. The next agent to have the floor and the question of agreement are never decided here.

use super::agent::Position;
use super::check::Accepted;
use super::prompt;
use super::talk::Talk;
use crate::contract::Role;
use crate::text::Status;

/// The way in which a turn ended.
pub(super) enum TurnEnd {
    /// With a valid envelope.
    Spoke(Box<Accepted>),
    /// With an acceptance that its author's own comparison contradicts.
    Kept,
    /// Without a valid envelope.
    Failed,
}

/// The status, text and requests of an agent, and its message while it has no text.
type Standing = (Status, Option<usize>, Vec<String>, Option<String>);

/// Records how a turn of `mover` went.
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
            // An answer that was found once more may tip the scales the next time.
            !is_torn
        }
        TurnEnd::Kept => {
            talk.seats[mover].conversation.push(Role::User, prompt::kept());
            talk.remark = Some("its own text stands: compared once more, it came out better");
            true
        }
        // A failed turn is not a move; two in a row end the talk.
        TurnEnd::Failed => return talk.count_failure(mover),
    };
    talk.seats[mover].failed_in_a_row = 0;
    if standing(talk, mover) != before {
        talk.seats.iter_mut().for_each(|seat| seat.idle = 0);
    } else if is_move {
        talk.seats[mover].idle += 1;
    }
}

/// Returns the values that must differ between two turns of an agent if the talk is to make progress: its status, its text and its
/// requests. While it has no text, its message counts too.
fn standing(talk: &Talk, agent: usize) -> Option<Standing> {
    let Position { envelope, proposal, .. } = talk.seats[agent].position.as_ref()?;
    let message = proposal.is_none().then(|| envelope.public_message.clone());
    Some((envelope.status, *proposal, envelope.needs_from_peer.clone(), message))
}

/// Records an answer that was found where no text is taken over, and returns whether the answer held before outvotes it.
///
/// An answer gives way only to one that makes up more than half of all that its author has found. A single slip is not a reason, since
/// among many attempts there is always one. An agent that finds another answer each time knows no answer.
fn is_outvoted(talk: &mut Talk, agent: usize, accepted: &Accepted) -> bool {
    let Some(found) = accepted.answer.as_ref().filter(|_| talk.nothing_is_taken_over()) else {
        return false;
    };
    talk.keep_declared(agent, accepted);
    let seat = &mut talk.seats[agent];
    seat.solo_answers.push(found.clone());
    let held = seat.last_answer.as_ref();
    held.is_some_and(|held| held.canonical != found.canonical) && !seat.has_mostly_found(found)
}
