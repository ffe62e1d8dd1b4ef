//! What travels: whose it is, for what, and how much of it is read.

use super::*;

#[test]
fn change_with_wrong_digest_is_not_read() {
    let mut cluster = TestCluster::new(4, 1);
    let message = SignedMessage { change: Some(b()), ..propose(&cluster, 0, &a()) };
    cluster.tell(FIRST, &message);
    cluster.tell(FIRST, &SignedMessage { change: None, ..message.clone() });
    cluster.run();
    assert_eq!(cluster.refused, vec![Refused::OtherChange(b().digest()); 4]);
    assert_eq!(cluster.reviews, 0, "nor is one that is not there at all");
}

#[test]
fn nobody_has_two_seats() {
    let chain = Digest::new(b"a repository");
    let mut same_key = roster(4, 1);
    same_key.reviewers[2].key = same_key.reviewers[0].key;
    assert!(matches!(Membership::new(chain, same_key), Err(RosterFault::SameKey(..))));
    let mut voting = roster(4, 1);
    voting.orchestrators[0].key = voting.reviewers[0].key;
    assert!(
        matches!(Membership::new(chain, voting), Err(RosterFault::SameKey(..))),
        "who proposes has no vote"
    );
    let mut same_name = roster(4, 1);
    same_name.reviewers[2].name = same_name.reviewers[0].name.clone();
    assert!(matches!(Membership::new(chain, same_name), Err(RosterFault::SameName(_))));
    assert!(matches!(Membership::new(chain, roster(0, 1)), Err(RosterFault::NoReviewers)));
    assert!(matches!(Membership::new(chain, roster(4, 0)), Err(RosterFault::NoOrchestrators)));
    let weak = serde_json::to_string(&roster(1, 1)).unwrap();
    let weak = weak.replace(&key(NodeId::Reviewer(0)).public().to_string(), &"0".repeat(64));
    assert!(serde_json::from_str::<quorum::Roster>(&weak).is_err());
}

/// Neither another roster nor the signature of a stranger or an orchestrator makes a proof.
#[test]
fn proof_with_stranger_is_refused() {
    let cluster = TestCluster::new(4, 1);
    let commits = |cluster: &TestCluster| -> Vec<_> {
        (0..3).map(|at| cluster.says(NodeId::Reviewer(at), 1, commit(0, a().value())).signed).collect()
    };
    let proof = commits(&cluster);
    let good = cluster.membership.envelope(&proof).unwrap();
    assert_eq!(cluster.membership.open(&good).unwrap().len(), 3);
    let five = TestCluster::new(5, 1);
    let fifth = five.says(NodeId::Reviewer(4), 1, commit(0, a().value())).signed;
    let with_stranger: Vec<_> = commits(&five).into_iter().chain([fifth]).collect();
    let envelope = five.membership.envelope(&with_stranger).unwrap();
    assert_eq!(cluster.membership.open(&envelope), Err(Refused::OtherRoster(five.membership.digest())));
    // The stranger's signature under this roster.
    let text = serde_json::to_string(&good).unwrap();
    let known = key(NodeId::Reviewer(2)).public().id().to_string();
    let stranger = key(NodeId::Reviewer(4)).public().id();
    let bent = serde_json::from_str(&text.replace(&known, &stranger.to_string())).unwrap();
    assert_eq!(cluster.membership.open(&bent), Err(Refused::Stranger(stranger)));
    let orchestrator = key(FIRST).public().id();
    let bent = serde_json::from_str(&text.replace(&known, &orchestrator.to_string())).unwrap();
    assert_eq!(cluster.membership.open(&bent), Err(Refused::NotItsPart(FIRST)));
}

#[test]
fn what_was_said_elsewhere_counts_for_nothing_here() {
    let cluster = TestCluster::new(4, 1);
    let other = Membership::new(Digest::new(b"another repository"), roster(4, 1)).unwrap();
    let signed = cluster.says(NodeId::Reviewer(0), 1, commit(0, a().value())).signed;
    let envelope = cluster.membership.envelope(&[signed]).unwrap();
    assert_eq!(other.open(&envelope), Err(Refused::OtherChain(cluster.membership.chain())));
    // Another place, another view, another kind of statement, another spelling.
    let read: Json = serde_json::to_value(&envelope).unwrap();
    let payload = String::from_utf8(envelope.payload().unwrap()).unwrap();
    for (from, to, why) in [
        ("\"sequence\":1", "\"sequence\":2", Refused::Forged(NodeId::Reviewer(0))),
        ("\"view\":0", "\"view\":1", Refused::Forged(NodeId::Reviewer(0))),
        ("\"view\":0", "\"view\": 0", Refused::NotCanonical),
        ("\"view\":0", "\"note\":1,\"view\":0", Refused::NotCanonical),
        ("\"sequence\":1", "\"sequence\":9007199254740993", Refused::NotCanonical),
    ] {
        let bent = payload.replace(from, to);
        assert_ne!(bent, payload);
        let signatures = envelope.signatures().unwrap();
        let bent = crypto::dsse::DsseEnvelope::new(envelope.payload_type(), bent.as_bytes(), &signatures);
        assert_eq!(cluster.membership.open(&bent), Err(why), "{to}");
    }
    let text = read.to_string().replace("in-toto", "something");
    let bent = serde_json::from_str(&text).unwrap();
    assert!(matches!(cluster.membership.open(&bent), Err(Refused::Unreadable(_))));
}

#[test]
fn one_wrong_signature_spoils_its_own_statement_alone() {
    let mut cluster = TestCluster::new(7, 1);
    cluster.away.extend((0..7).map(NodeId::Reviewer));
    let value = a().value();
    let mut messages: Vec<_> =
        (1..7).map(|at| cluster.says(NodeId::Reviewer(at), 1, commit(0, value))).collect();
    messages[2].signed.signature = messages[0].signed.signature;
    cluster.away.clear();
    for (at, message) in messages.into_iter().enumerate() {
        cluster.send(NodeId::Reviewer(at + 1), NodeId::Reviewer(0), message);
    }
    cluster.run();
    assert_eq!(cluster.refused, [Refused::Forged(NodeId::Reviewer(3))]);
    assert_eq!(cluster.decided.get(&(0, 1)), Some(&value), "five of seven are a quorum");
}

#[test]
fn long_opinions_prevent_no_decision() {
    let mut cluster = with_liar();
    cluster.opinions[2] = reject();
    cluster.submit("the change");
    let long = |bytes: usize| Opinion::Approve { confidence: 9000, notes: "x".repeat(bytes) };
    // As long as may be read: it counts, and what it says is in no lock.
    let most = long(OPINION_BYTES_MAX);
    let message = cluster.says(LIAR, 1, vote(0, &a(), &most));
    let message = SignedMessage { opinion: Some(Arc::new(most.into())), ..message };
    for at in 0..2 {
        cluster.send(LIAR, NodeId::Reviewer(at), message.clone());
    }
    let more = long(OPINION_BYTES_MAX + 1);
    let too_long = cluster.says(LIAR, 1, vote(0, &a(), &more));
    cluster.send(
        LIAR,
        NodeId::Reviewer(2),
        SignedMessage { opinion: Some(Arc::new(more.into())), ..too_long },
    );
    let other = SignedMessage { opinion: Some(Arc::new(reject().into())), ..message };
    cluster.send(LIAR, NodeId::Reviewer(2), other);
    cluster.run();
    assert!(cluster.refused.contains(&Refused::LongOpinion(OPINION_BYTES_MAX + 1)));
    assert!(cluster.refused.contains(&Refused::OtherOpinion(reject().digest())));
    assert_eq!(cluster.outcome(1), None, "two are locked, and the third has not heard enough");
    cluster.expire();
    assert_eq!(cluster.outcome(1), Some(a().value()), "the next view begins with their lock");
    let longest = cluster.sent.iter().map(|(.., text)| text.len()).max().unwrap();
    assert!(longest < 2 * OPINION_BYTES_MAX, "{longest}");
}

/// A copy that was stripped or padded on the way does not keep the whole view change from counting.
#[test]
fn altered_copies_do_not_block_whole_message() {
    let mut cluster = with_liar();
    cluster.submit("the change");
    cluster.away.insert(FIRST);
    let vote_of_liar = cluster.says(LIAR, 1, vote(0, &a(), &approve()));
    cluster.run();
    cluster.away.clear();
    let votes: Vec<_> =
        (0..3).map(|at| cluster.says(NodeId::Reviewer(at), 1, vote(0, &a(), &approve()))).collect();
    let lock = Statement::ViewChange { view: 1, lock: Some((0, a().value())) };
    let whole = |cluster: &TestCluster, at| SignedMessage {
        grounds: votes.clone().into(),
        change: Some(a()),
        ..cluster.says(NodeId::Reviewer(at), 1, lock.clone())
    };
    let locked = whole(&cluster, 0);
    let stripped = SignedMessage { grounds: [].into(), ..locked.clone() };
    let junk: Vec<_> = std::iter::repeat_n(vote_of_liar, 2000).collect();
    let padded = SignedMessage { grounds: [junk, votes.clone()].concat().into(), ..locked.clone() };
    let unlocked = |cluster: &TestCluster, at| SignedMessage {
        grounds: votes.clone().into(),
        ..cluster.says(NodeId::Reviewer(at), 1, Statement::ViewChange { view: 1, lock: None })
    };
    cluster.send(LIAR, FIRST, stripped);
    for at in 1..3 {
        let message = unlocked(&cluster, at);
        cluster.send(LIAR, FIRST, message);
    }
    cluster.send(LIAR, FIRST, padded.clone());
    cluster.send(NodeId::Reviewer(0), FIRST, locked);
    cluster.run();
    assert_eq!(cluster.outcome(1), Some(a().value()), "it is what the next view begins with");
    // What does not belong to a message is not even verified.
    let text = cluster.membership.write(&Packet::Message(padded));
    let Some(Packet::Message(read)) = cluster.membership.read(&text, |_, _| true).unwrap() else {
        panic!("a letter")
    };
    assert!(read.grounds.len() <= 4, "one by each author");
}

/// A change that is too long is refused before a reviewer is asked, and the longest allowed one is decided on.
#[test]
fn too_long_change_is_refused() {
    assert!(Change::new(&"x".repeat(CHANGE_BYTES_MAX)).is_ok());
    assert_eq!(
        Change::new(&"x".repeat(CHANGE_BYTES_MAX + 1)).unwrap_err(),
        Refused::LongChange(CHANGE_BYTES_MAX + 1)
    );
    // The longest there is, of what takes most room, gets through, and in a later view too.
    let mut cluster = TestCluster::new(4, 1);
    let longest = "\u{1}".repeat(CHANGE_BYTES_MAX);
    cluster.submit(&longest);
    cluster.run();
    let value = Change::new(&longest).unwrap().value();
    assert_eq!(cluster.outcome(1), Some(value));
    assert!(cluster.refused.is_empty(), "{:?}", cluster.refused);
}

#[test]
fn unreadable_packet_is_refused_with_reason() {
    let cluster = TestCluster::new(4, 1);
    let long = "x".repeat(quorum::PACKET_BYTES_MAX + 1);
    assert!(matches!(cluster.membership.read(&long, |_, _| true), Err(Refused::TooLong(_))));
    for text in
        ["", "{}", "{\"have\":-1}", "{\"have\":1,\"have\":2}", "{\"letter\":{\"envelope\":{}}}", "[1]"]
    {
        let refused = cluster.membership.read(text, |_, _| true).unwrap_err();
        assert!(matches!(refused, Refused::Unreadable(_)), "{text}: {refused}");
    }
    let deep = format!("{}{}", "{\"letter\":{\"grounds\":[".repeat(500), "]}}".repeat(500));
    assert!(matches!(cluster.membership.read(&deep, |_, _| true), Err(Refused::Unreadable(_))));
}
