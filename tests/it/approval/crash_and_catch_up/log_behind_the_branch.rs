//! A reviewer whose log lacks what a branch shows: what it signs, and what it learns.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use consensus::approval::node::{Inbox, Node};
use crypto::Signature;
use quorum::node_machine::NodeAction;
use quorum::{NodeId, Packet, RosterSigner, Sequence, Signed, SignedMessage, Signer as _, Statement};

use super::{
    Fixed, LEADER, NodeGroup, PATIENCE, Transport, TransportKind, Wire, approve, block_on, change, key,
};

const LATE: NodeId = NodeId::Reviewer(3);

/// What the one who proposes says first of a place.
fn proposal(house: &NodeGroup, sequence: Sequence) -> Packet<Signature> {
    let change = change(usize::try_from(sequence).unwrap());
    let seal = RosterSigner::new(key(LEADER), Arc::clone(&house.membership)).unwrap().1;
    let statement = Statement::PrePrepare { value: change.value(), view: 0 };
    let signature = seal.sign(sequence, &statement);
    let message = SignedMessage::alone(Signed { by: 0, sequence, statement, signature });
    Packet::Message(SignedMessage { change: Some(change), ..message })
}

/// Runs it until it has voted, or for a while. Returns at which places it has signed something, and how often it was asked.
fn signed(peer: &mut Node, inbox: &mut Inbox, wire: &Wire) -> (Vec<Sequence>, usize) {
    let fixed = Fixed { opinion: approve(), asked: Cell::new(0) };
    let mut places = Vec::new();
    block_on(async {
        let tell = |want: &NodeAction<Signature>| {
            let NodeAction::Send(_, Packet::Message(message)) = want else {
                return ControlFlow::Continue(());
            };
            places.push(message.signed.sequence);
            if message.opinion.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let running = peer.run(inbox, wire, &fixed, PATIENCE, tell);
        let _ = tokio::time::timeout(Duration::from_millis(600), running).await;
    });
    places.dedup();
    (places, fixed.asked.get())
}

/// A reviewer signs nothing at a place that the branch has decided until others show how, even after a restart.
#[test]
fn held_reviewer_signs_nothing_until_shown() {
    let house = NodeGroup::new();
    let away = [Some(approve()), Some(approve()), Some(approve()), None];
    let (decisions, _) = block_on(house.decide(TransportKind::Channels, &away, &[change(1)]));
    let mut wires = block_on(house.wires(TransportKind::Channels));
    let mut own = wires.remove(&LATE).unwrap();
    let send = |wire: &Wire, packet: &Packet<Signature>| {
        let Transport::Channels(_, doors) = &wire.line else { unreachable!() };
        doors[&(LATE, LEADER)].try_send(house.membership.write(packet).into()).unwrap();
    };
    let mut late = house.peer(LATE);
    assert!(late.is_new());
    late.hold_up_to(1);
    send(&own.1, &proposal(&house, 1));
    assert_eq!(signed(&mut late, &mut own.0, &own.1), (vec![], 0));
    // Nor does it after a restart that holds it again; others have shown by then how it was decided.
    drop(late);
    let mut late = house.peer(LATE);
    late.hold_up_to(1);
    send(&own.1, &proposal(&house, 1));
    send(&own.1, &Packet::Proof(decisions[0].proof.clone()));
    send(&own.1, &proposal(&house, 2));
    assert_eq!(signed(&mut late, &mut own.0, &own.1), (vec![2], 1));
    assert_eq!((late.known(), late.value_at(1)), (1, Some(change(1).value())));
    // One that is not held signs at the first place that is proposed.
    std::fs::remove_dir_all(house.place(LATE)).unwrap();
    drop(late);
    let mut free = house.peer(LATE);
    send(&own.1, &proposal(&house, 1));
    assert_eq!(signed(&mut free, &mut own.0, &own.1), (vec![1], 1));
}
