//! Who is heard, and what of it is remembered.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use consensus::approval::node::{Addresses, Carrier as _, Connections, Inbox, Node, listen};
use crypto::SecretKey;
use quorum::node_machine::NodeAction;
use quorum::{
    CHANGE_BYTES_MAX, Change, NodeId, PACKET_BYTES_MAX, Packet, RosterSigner, Signed, SignedMessage,
    Signer as _, Statement,
};

use super::{Fixed, LEADER, NodeGroup, PATIENCE, Transport, TransportKind, approve, block_on, change, key};

#[test]
fn stranger_is_neither_heard_nor_answered() {
    let house = NodeGroup::new();
    block_on(async {
        let me = NodeId::Reviewer(0);
        let (mut inbox, _, address) = listen("127.0.0.1:0", &key(me), &house.membership).await.unwrap();
        let places = |port: &str| -> Addresses {
            house.parties().iter().map(|party| (format!("{party:?}"), format!("127.0.0.1:{port}"))).collect()
        };
        let at = places(&address.port().to_string());
        // A stranger with a key that the roster does not have; a member of the roster; and the same member at another's door.
        let stranger = SecretKey::from_seed(&[99; 32]);
        let packet: Arc<str> = "{\"have\":7}".into();
        Connections::open(&stranger, LEADER, &house.membership, &at).unwrap().send(me, &packet);
        let known = Connections::open(&key(LEADER), LEADER, &house.membership, &at).unwrap();
        // This door does not belong to the member who is meant: nothing is said.
        known.send(NodeId::Reviewer(1), &"{\"have\":8}".into());
        known.send(me, &packet);
        assert_eq!(inbox.take(9).await, [(LEADER, packet.to_string())]);
        // Without a key, or without TLS, there is no answer at all.
        let bare = tokio::net::TcpStream::connect(address).await.unwrap();
        bare.writable().await.unwrap();
        bare.try_write(b"POST /v1/posts HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        let mut said = [0; 64];
        let count = loop {
            bare.readable().await.unwrap();
            match bare.try_read(&mut said) {
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                read => break read.unwrap_or(0),
            }
        };
        // An alert of TLS at most.
        assert!(count == 0 || said[0] == 21, "{:?}", &said[..count]);
        known.send(me, &"{\"have\":9}".into());
        assert_eq!(inbox.take(9).await, [(LEADER, "{\"have\":9}".to_owned())]);
    });
}

#[test]
fn malformed_packet_stops_no_party() {
    let house = NodeGroup::new();
    let mut wires = block_on(house.wires(TransportKind::Channels));
    let (mut inbox, wire) = wires.remove(&NodeId::Reviewer(0)).unwrap();
    let Transport::Channels(_, senders) = &wire.line else { unreachable!() };
    let door = senders[&(NodeId::Reviewer(0), NodeId::Reviewer(1))].clone();
    let deep = "[".repeat(100_000);
    for text in ["", "{", "null", "{\"have\":-1}", "{\"letter\":{}}", "{\"unknown\":1}", &deep] {
        door.try_send(text.to_owned().into()).unwrap();
    }
    door.try_send(format!("{{\"have\":{}}}", u64::MAX).into()).unwrap();
    let fixed = Fixed { opinion: approve(), asked: Cell::new(0) };
    let mut peer = house.peer(NodeId::Reviewer(0));
    block_on(async {
        let mut said = BTreeSet::new();
        let heard = tokio::time::timeout(
            Duration::from_millis(300),
            peer.run(&mut inbox, &wire, &fixed, PATIENCE, |want| {
                said.insert(format!("{want:?}"));
                ControlFlow::Continue(())
            }),
        );
        assert!(heard.await.is_err(), "it goes on");
        assert!(said.iter().all(|said| said.contains("Have(0)")), "{said:?}");
    });
    let log = std::fs::metadata(house.place(NodeId::Reviewer(0)).join("journal.jsonl")).unwrap();
    assert_eq!(log.len(), 0, "nothing of it is remembered");
}

#[test]
fn oddly_written_packet_spoils_no_log() {
    let house = NodeGroup::new();
    let me = NodeId::Reviewer(0);
    let seal = RosterSigner::new(key(LEADER), Arc::clone(&house.membership)).unwrap().1;
    let statement = Statement::PrePrepare { value: change(1).value(), view: 0 };
    let signature = seal.sign(1, &statement);
    let message = SignedMessage {
        change: Some(change(1)),
        ..SignedMessage::alone(Signed { by: 0, sequence: 1, statement, signature })
    };
    let plain = house.membership.write(&Packet::Message(message));
    let nested = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let odd = [
        plain.replacen("{\"letter\":{", "{\"letter\":\n{", 1),
        format!("  {plain}"),
        format!("  {plain}"),
        format!("{plain}\n\n"),
        plain.replacen("{\"letter\":{", &format!("{{\"letter\":{{\"grounds\":{nested},"), 1),
        "{\"stable\":{\"payloadType\":\"x\",\"payload\":\"\",\"signatures\":[]}}".to_owned(),
        plain.clone(),
    ];
    let mut wires = block_on(house.wires(TransportKind::Channels));
    let (mut inbox, wire) = wires.remove(&me).unwrap();
    let Transport::Channels(_, doors) = &wire.line else { unreachable!() };
    for text in &odd {
        doors[&(me, LEADER)].try_send(text.clone().into()).unwrap();
    }
    let fixed = Fixed { opinion: approve(), asked: Cell::new(0) };
    let mut peer = house.peer(me);
    let mut votes = 0;
    block_on(peer.run(&mut inbox, &wire, &fixed, PATIENCE, |want| {
        let is_vote =
            matches!(want, NodeAction::Send(_, Packet::Message(message)) if message.opinion.is_some());
        votes += usize::from(is_vote);
        if is_vote { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }))
    .unwrap();
    assert_eq!(votes, 1, "it was understood");
    drop(peer);
    let log = std::fs::read_to_string(house.place(me).join("journal.jsonl")).unwrap();
    assert_eq!(log.matches("\"heard\":{").count(), 1, "and is kept once: {log}");
    house.peer(me);
}

#[test]
fn silent_strangers_keep_nobody_from_being_heard() {
    let house = NodeGroup::new();
    block_on(async {
        let me = NodeId::Reviewer(0);
        let (mut inbox, _, address) = listen("127.0.0.1:0", &key(me), &house.membership).await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(tokio::net::TcpStream::connect(address).await.unwrap());
        }
        let places =
            house.parties().iter().map(|party| (format!("{party:?}"), address.to_string())).collect();
        let connections = Connections::open(&key(LEADER), LEADER, &house.membership, &places).unwrap();
        connections.send(me, &"{\"have\":1}".into());
        assert_eq!(inbox.take(1).await, [(LEADER, "{\"have\":1}".to_owned())]);
    });
}

#[test]
fn talkative_party_is_read_in_turn() {
    block_on(async {
        let (mut inbox, doors) = Inbox::new([NodeId::Reviewer(0), NodeId::Reviewer(1)], 100);
        for number in 0..90 {
            doors[0].1.try_send(number.to_string().into()).unwrap();
        }
        doors[1].1.try_send("a word".to_owned().into()).unwrap();
        let first = inbox.take(2).await;
        assert!(first.contains(&(NodeId::Reviewer(1), "a word".to_owned())), "{first:?}");
        assert_eq!(inbox.take(1000).await.len(), 89);
        drop(doors);
        assert_eq!(inbox.take(1).await, [], "nobody is there any more");
    });
}

/// A packet that is too long is not taken, and a closed connection makes room for another.
#[test]
fn party_has_four_connections_at_most() {
    let house = NodeGroup::new();
    block_on(async {
        let me = NodeId::Reviewer(0);
        let (mut inbox, _, address) = listen("127.0.0.1:0", &key(me), &house.membership).await.unwrap();
        let places =
            house.parties().iter().map(|party| (format!("{party:?}"), address.to_string())).collect();
        let open = || Connections::open(&key(LEADER), LEADER, &house.membership, &places).unwrap();
        let has_failed = async |connections: &Connections| {
            while !connections.unreachable().iter().any(|(party, _)| *party == me) {
                tokio::task::yield_now().await;
            }
        };
        let mut four = Vec::new();
        for number in 0..4 {
            let connections = open();
            connections.send(me, &format!("{{\"have\":{number}}}").into());
            assert_eq!(inbox.take(1).await.len(), 1);
            four.push(connections);
        }
        let fifth = open();
        fifth.send(me, &"{\"have\":5}".into());
        has_failed(&fifth).await;
        // Where one of them is closed, there is room again.
        four.pop();
        let heard = loop {
            fifth.send(me, &"{\"have\":6}".into());
            if let Ok(heard) = tokio::time::timeout(Duration::from_millis(50), inbox.take(1)).await {
                break heard;
            }
        };
        assert_eq!(heard, [(LEADER, "{\"have\":6}".to_owned())]);

        four[0].send(me, &" ".repeat(PACKET_BYTES_MAX + 1).into());
        has_failed(&four[0]).await;
        four[0].send(me, &"{\"have\":7}".into());
        assert_eq!(inbox.take(1).await, [(LEADER, "{\"have\":7}".to_owned())], "the long one is not there");
    });
}

/// The log hardly grows after the most that any decision needs.
#[test]
fn flood_of_proposals_fills_no_disk() {
    let house = NodeGroup::new();
    let me = NodeId::Reviewer(0);
    let mut wires = block_on(house.wires(TransportKind::Channels));
    let (mut inbox, wire) = wires.remove(&me).unwrap();
    let Transport::Channels(_, doors) = &wire.line else { unreachable!() };
    let seal = RosterSigner::new(key(LEADER), Arc::clone(&house.membership)).unwrap().1;
    // As many proposals at one place as it likes.
    let flood = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            let change = Change::new(&format!("{number} {}", "x".repeat(CHANGE_BYTES_MAX - 10))).unwrap();
            let statement = Statement::PrePrepare { value: change.value(), view: 0 };
            let signature = seal.sign(1, &statement);
            let message = SignedMessage::alone(Signed { by: 0, sequence: 1, statement, signature });
            let packet = Packet::Message(SignedMessage { change: Some(change), ..message });
            doors[&(me, LEADER)].try_send(house.membership.write(&packet).into()).unwrap();
        }
    };
    let log = house.place(me).join("journal.jsonl");
    let fixed = Fixed { opinion: approve(), asked: Cell::new(0) };
    let mut peer = house.peer(me);
    block_on(async {
        let mut go_on = async |peer: &mut Node| {
            let running = peer.run(&mut inbox, &wire, &fixed, PATIENCE, |_| ControlFlow::Continue(()));
            let _ = tokio::time::timeout(Duration::from_millis(300), running).await;
        };
        flood(0..34);
        go_on(&mut peer).await;
        let full = std::fs::metadata(&log).unwrap().len();
        assert!(full > 64 << 20, "{full}");
        flood(34..50);
        go_on(&mut peer).await;
        let more = std::fs::metadata(&log).unwrap().len() - full;
        assert!(more < 1 << 20, "{more} more");
    });
}
