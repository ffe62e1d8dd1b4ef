//! Votes that come when the decision is known already: they are asked for, and are in its record.

use std::ops::ControlFlow;
use std::sync::Arc;

use crypto::Signature;
use futures_util::FutureExt as _;
use quorum::node_machine::NodeAction;
use quorum::{Commit, NodeId, Opinion, Packet, RosterSigner, Signed, SignedMessage, Signer as _, Statement};

use super::{
    LEADER, NodeGroup, PATIENCE, Transport, TransportKind, Wire, approve, block_on, change, key, reject,
};

/// Puts what a reviewer has signed into the leader's inbox.
fn comes(house: &NodeGroup, wire: &Wire, by: usize, statement: Statement, opinion: Option<Opinion>) {
    let party = NodeId::Reviewer(by);
    let (_, seal) = RosterSigner::new(key(party), Arc::clone(&house.membership)).unwrap();
    let signed = Signed { by, sequence: 1, signature: seal.sign(1, &statement), statement };
    let opinion = opinion.map(|opinion| Arc::new(opinion.into()));
    let packet = Packet::Message(SignedMessage { opinion, ..SignedMessage::alone(signed) });
    let Transport::Channels(_, doors) = &wire.line else { unreachable!() };
    doors[&(LEADER, party)].try_send(house.membership.write(&packet).into()).unwrap();
}

#[test]
fn late_vote_is_requested_and_kept() {
    let house = NodeGroup::new();
    let mut wires = block_on(house.wires(TransportKind::Channels));
    let (mut inbox, wire) = wires.remove(&LEADER).unwrap();
    let (change, other) = (change(1), change(2));
    let mut leader = house.peer(LEADER);
    leader.submit(change.clone()).unwrap();
    for by in 0..3 {
        comes(&house, &wire, by, Statement::Commit(Commit { view: 0, value: change.value() }), None);
    }
    let until_decided = |want: &NodeAction<Signature>| {
        if matches!(want, NodeAction::Tell(..)) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    block_on(leader.run(&mut inbox, &wire, &(), PATIENCE, until_decided)).unwrap();
    assert_eq!(leader.ended(change.digest()), Some(1));
    let (mut asked, _) = wires.remove(&NodeId::Reviewer(1)).unwrap();
    // What was said before the decision.
    drop(asked.take(64).now_or_never());
    let answers = async {
        let is_question = |(_, text): &(NodeId, String)| {
            matches!(house.membership.read(text, |_, _| true), Ok(Some(Packet::Have(0))))
        };
        while !asked.take(64).await.iter().any(is_question) {}
        // No one has asked for a decision on the second.
        for (by, change, opinion) in [(3, &other, approve()), (0, &change, approve()), (3, &change, reject())]
        {
            let (value, vote) = (change.value(), opinion.vote());
            let statement = Statement::Prepare { opinion: Some(opinion.digest()), value, view: 0, vote };
            comes(&house, &wire, by, statement, Some(opinion));
        }
    };
    let hears = leader.hear_votes(&change, &[0, 3], &mut inbox, &wire);
    block_on(async { tokio::join!(hears, answers) }).0.unwrap();
    drop(leader);
    let votes = house.peer(LEADER).proof_of(1, change.value()).unwrap().votes;
    let of: Vec<(usize, &Opinion)> =
        votes.iter().map(|vote| (vote.signed.by, &vote.opinion.as_ref().unwrap().opinion)).collect();
    assert_eq!(of, [(0, &approve()), (3, &reject())], "its dissent is in its record");
    assert!(house.peer(LEADER).proof_of(1, other.value()).unwrap().votes.is_empty());
}
