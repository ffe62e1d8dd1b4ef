//! The order in which agents speak.

use super::agent::{AgentState, ProposedText, blind_vote};
use crate::text::Status;
use crypto::Hasher;

/// Returns the agent that moves first after the opening.
///
/// If exactly one agent calls for its peer, the peer moves. Otherwise, if exactly one has not declared a text final, that one moves.
/// Otherwise, if more blind drafts agree with one agent's text than with any other, its peer moves, since an agent that moves tends to give
/// in. Otherwise the seed decides. Two agents that both move would swap their answers, and always letting the same one move would favour
/// its peer.
pub(super) fn first_mover(seats: &[AgentState; 2], proposals: &[ProposedText], seed: u64) -> usize {
    match seats.each_ref().map(|seat| seat.position.as_ref().is_some_and(|p| p.envelope.calls_for_peer())) {
        [true, false] => return 1,
        [false, true] => return 0,
        [true, true] | [false, false] => {}
    }
    match seats.each_ref().map(|seat| seat.status() == Some(Status::Solved)) {
        [true, false] => return 1,
        [false, true] => return 0,
        [true, true] | [false, false] => {}
    }
    if let Some(leading) = blind_vote(seats).sha256 {
        let leads = seats.each_ref().map(|seat| {
            let text = seat.stands_for().and_then(|index| proposals.get(index));
            text.is_some_and(|text| text.answer.canonical.digest == leading)
        });
        match leads {
            [true, false] => return 1,
            [false, true] => return 0,
            [true, true] | [false, false] => {}
        }
    }
    draw_mover(seed)
}

/// Returns the agent that has the floor after `mover`'s turn.
///
/// `peer_name` is the name of the other agent. A plain WORKING keeps the floor, at most
/// `solo_turns` times in a row; a failed turn gives it away.
pub(super) fn next_mover(
    seat: &mut AgentState,
    mover: usize,
    peer_name: &str,
    solo_turns: u32,
    failed: bool,
) -> usize {
    let gives = seat.position.as_ref().is_none_or(|p| p.envelope.gives_floor_to(peer_name));
    if failed || gives || seat.solo >= solo_turns {
        seat.solo = 0;
        1 - mover
    } else {
        seat.solo += 1;
        mover
    }
}

fn draw_mover(seed: u64) -> usize {
    let digest = Hasher::default().part(b"first mover").part(&seed.to_be_bytes()).finish();
    usize::from(digest.leading_u64() % 2 == 1)
}
