//! The dual stop: the only place where agreement of `pair` is decided.

use super::agent::{AgentState, Position, ProposedText};
use crate::contract::{How, Outcome};
use crate::text::Status;

/// Returns the agreement between the positions of the two agents, if there is one.
///
/// Both must have status SOLVED, carry the marker, and stand for texts with one canonical form and
/// one digest. The text is shown in the first agent's layout.
///
/// The agreement is independent if both agents had declared this text final in their blind drafts. A draft that its author did not declare
/// final is a guess, and two equal guesses are worth little.
pub(super) fn reached(seats: &[AgentState; 2], proposals: &[ProposedText]) -> Option<Outcome> {
    let (first, second) = (declared(&seats[0])?, declared(&seats[1])?);
    let text = |position: &Position| proposals.get(position.proposal?).map(|p| &p.answer);
    let (mine, yours) = (text(first)?, text(second)?);
    if mine.canonical != yours.canonical {
        return None;
    }
    let was_blind = seats.iter().all(|seat| {
        let committed = seat.blind.first().and_then(Option::as_ref).filter(|_| seat.blind_final);
        committed.is_some_and(|draft| draft.canonical == mine.canonical)
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
fn declared(seat: &AgentState) -> Option<&Position> {
    let position = seat.position.as_ref()?;
    let envelope = &position.envelope;
    let declares = envelope.status == Status::Solved && envelope.has_solved_marker();
    declares.then_some(position)
}
