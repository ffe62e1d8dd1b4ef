//! Decisions by quorum under attack: each test is one way to cheat, and what comes of it.

mod local_cluster;
mod messages_that_do_not_count;

use std::sync::Arc;

use crypto::{Digest, Signature};
use quorum::node_machine::{NodeAction, NodeInput, ReturnReason};
use quorum::replica::Replica;
use quorum::{
    CHANGE_BYTES_MAX, Change, Commit, Membership, NodeId, OPINION_BYTES_MAX, Opinion, Packet, Refused,
    RosterFault, RosterSigner, Severity, SignedMessage, Statement, Value, leader,
};
use serde_json::Value as Json;

use local_cluster::{TestCluster, approve, key, roster};

const LIAR: NodeId = NodeId::Reviewer(3);
const FIRST: NodeId = NodeId::Orchestrator(0);

fn a() -> Change {
    Change::new("the change").unwrap()
}

fn b() -> Change {
    Change::new("another change").unwrap()
}

fn reject() -> Opinion {
    Opinion::Reject { reason: "it loses data".to_owned(), severity: Severity::High }
}

fn abstain() -> Opinion {
    Opinion::Abstain { reason: "too long to read".to_owned() }
}

fn vote(view: u32, change: &Change, opinion: &Opinion) -> Statement {
    Statement::Prepare { view, value: change.value(), vote: opinion.vote(), opinion: Some(opinion.digest()) }
}

fn commit(view: u32, value: Value) -> Statement {
    Statement::Commit(Commit { view, value })
}

fn propose(cluster: &TestCluster, view: u32, change: &Change) -> SignedMessage<Signature> {
    let by = NodeId::Orchestrator(leader(1, view, cluster.orchestrators.len()));
    let message = cluster.says(by, 1, Statement::PrePrepare { view, value: change.value() });
    SignedMessage { change: Some(change.clone()), ..message }
}

/// A cluster in which the last reviewer is a liar, who does nothing by itself.
fn with_liar() -> TestCluster {
    let mut cluster = TestCluster::new(4, 1);
    cluster.liars.insert(LIAR);
    cluster
}

/// Each reviewer reviews each change once and decides on it, and the orchestrator reports each decision once.
#[test]
fn unanimous_change_is_decided_once() {
    let mut cluster = TestCluster::new(4, 1);
    cluster.submit("the change");
    cluster.submit("another change");
    cluster.run();
    assert_eq!(cluster.announced, [(1, a().value()), (2, b().value())]);
    assert_eq!((cluster.outcome(1), cluster.outcome(2)), (Some(a().value()), Some(b().value())));
    assert_eq!(cluster.reviews, 8, "each change is reviewed once by each");
    assert!(cluster.refused.is_empty() && cluster.accused.is_empty());
}

/// Neither of two changes that are shown for one place is decided on, and the place goes to nothing.
#[test]
fn orchestrator_proposing_two_changes_is_accused() {
    let mut cluster = TestCluster::new(4, 2);
    let (first, second) = (propose(&cluster, 0, &a()), propose(&cluster, 0, &b()));
    for at in 0..4 {
        let message = if at < 2 { &first } else { &second };
        cluster.send(FIRST, NodeId::Reviewer(at), message.clone());
    }
    cluster.run();
    assert_eq!(cluster.outcome(1), None, "neither has three votes");
    cluster.tell(FIRST, &first);
    cluster.run();
    assert_eq!(cluster.accused.len(), 2, "by each that has seen the other");
    assert!(cluster.accused.iter().all(|(one, other)| one.statement != other.statement && one.by == 1));
    cluster.expire();
    assert_eq!(cluster.outcome(1), Some(Value::Nothing));
}

/// A reviewer that sends different votes to different reviewers does not split the decision.
#[test]
fn reviewer_voting_both_ways_is_accused() {
    let mut cluster = with_liar();
    cluster.opinions[0] = reject();
    cluster.submit("the change");
    for at in 0..3 {
        let opinion = if at == 0 { approve() } else { reject() };
        let message = cluster.says(LIAR, 1, vote(0, &a(), &opinion));
        cluster.send(LIAR, NodeId::Reviewer(at), message);
    }
    let other = cluster.says(LIAR, 1, vote(0, &a(), &approve()));
    cluster.tell(LIAR, &other);
    cluster.run();
    assert!(cluster.accused.iter().all(|(one, other)| one.by == 3 && other.by == 3));
    assert_eq!(cluster.accused.len(), 2, "by each that has heard both");
    cluster.expire();
    assert!(cluster.outcome(1).is_some(), "one way or the other, the same for all");
}

#[test]
fn the_same_commit_many_times_counts_once() {
    let mut cluster = with_liar();
    cluster.away.insert(NodeId::Reviewer(2));
    cluster.submit("the change");
    cluster.run();
    let message = cluster.says(LIAR, 1, commit(0, a().value()));
    for _ in 0..9 {
        cluster.tell(LIAR, &message);
    }
    cluster.run();
    assert!(cluster.decided.is_empty() && cluster.accused.is_empty());
    // In one proof it is refused.
    let signed = message.signed;
    let envelope = cluster.membership.envelope(&[signed.clone(), signed.clone(), signed]).unwrap();
    let refused = cluster.membership.open(&envelope).unwrap_err();
    assert_eq!(refused, Refused::Twice(key(LIAR).public().id()));
}

#[test]
fn forged_vote_withdraws_no_real_vote() {
    let mut cluster = with_liar();
    cluster.opinions[0] = reject();
    cluster.submit("the change");
    let good = cluster.says(LIAR, 1, vote(0, &a(), &approve()));
    let mut forged = cluster.says(LIAR, 1, vote(0, &a(), &reject()));
    forged.signed.signature = good.signed.signature;
    cluster.tell(LIAR, &good);
    cluster.tell(LIAR, &forged);
    cluster.run();
    assert!(cluster.refused.contains(&Refused::Forged(LIAR)));
    assert_eq!(cluster.outcome(1), Some(a().value()), "with the vote that is in its name");
}

#[test]
fn an_old_view_change_takes_nobody_back() {
    let mut cluster = TestCluster::new(4, 1);
    cluster.opinions = vec![abstain(); 4];
    cluster.submit("the change");
    cluster.run();
    assert_eq!(cluster.outcome(1), Some(Value::Nothing), "in the next view");
    let old: Vec<_> = cluster.sent.clone();
    cluster.submit("another change");
    cluster.run();
    let before = format!("{:?}", cluster.reviewers);
    for (from, to, text) in old {
        cluster.packet(from, to, &text);
    }
    cluster.run();
    assert_eq!(format!("{:?}", cluster.reviewers), before, "all of it again changes nothing");
    assert_eq!(cluster.outcome(1), Some(Value::Nothing));
}

/// A reviewer leaves the first view: with a lock on this change, if there is one.
fn leave(
    cluster: &TestCluster,
    at: usize,
    lock: Option<&Change>,
    grounds: &[SignedMessage<Signature>],
) -> SignedMessage<Signature> {
    let statement = Statement::ViewChange { view: 1, lock: lock.map(|change| (0, change.value())) };
    let message = cluster.says(NodeId::Reviewer(at), 1, statement);
    SignedMessage { change: lock.cloned(), grounds: grounds.into(), ..message }
}

/// Whether a fresh reviewer takes the proposal of a change for the second view on these grounds.
fn takes(cluster: &TestCluster, change: &Change, grounds: Vec<SignedMessage<Signature>>) -> bool {
    let (_, seal) = RosterSigner::new(key(NodeId::Reviewer(0)), Arc::clone(&cluster.membership)).unwrap();
    let mut fresh = Replica::new(seal, 0, cluster.membership.quorum(), 1);
    let message = SignedMessage { grounds: grounds.into(), ..propose(cluster, 1, change) };
    let packet = cluster
        .membership
        .read(&cluster.membership.write(&Packet::Message(message)), |_, _| true)
        .unwrap()
        .unwrap();
    fresh.step(NodeInput::Heard(FIRST, packet)).iter().any(|out| {
        matches!(out, NodeAction::Send(_, Packet::Message(message))
            if matches!(message.signed.statement, Statement::Acknowledge { .. }))
    })
}

/// A new view begins with what a quorum approved, and a lock without valid grounds does not count.
#[test]
fn new_view_keeps_locked_change() {
    let mut cluster = TestCluster::new(4, 1);
    // All vote for the change; the commits reach no one.
    cluster.submit("the change");
    cluster.run();
    let votes: Vec<_> =
        (0..3).map(|at| cluster.says(NodeId::Reviewer(at), 1, vote(0, &a(), &approve()))).collect();
    let locked = leave(&cluster, 0, Some(&a()), &votes);
    let free: Vec<_> = (1..4).map(|at| leave(&cluster, at, None, &[])).collect();
    let twice = [votes[0].clone(), votes[0].clone(), votes[0].clone()];
    let others: Vec<_> =
        (0..3).map(|at| cluster.says(NodeId::Reviewer(at), 1, vote(0, &b(), &reject()))).collect();
    let with = |first: SignedMessage<Signature>| [vec![first], free.clone()].concat();
    assert!(takes(&cluster, &a(), with(locked.clone())));
    assert!(!takes(&cluster, &b(), with(locked.clone())), "the lock is not to be passed over");
    assert!(!takes(&cluster, &b(), free[..2].to_vec()), "two are no quorum");
    assert!(!takes(&cluster, &b(), vec![free[0].clone(), free[0].clone(), free[0].clone()]));
    for bad in [
        leave(&cluster, 0, Some(&b()), &[]),
        leave(&cluster, 0, Some(&b()), &votes),
        leave(&cluster, 0, Some(&b()), &others),
        leave(&cluster, 0, Some(&a()), &twice),
    ] {
        assert!(
            takes(&cluster, &b(), with(bad.clone())),
            "{bad:?} is a lie, and hides nothing that others say"
        );
        let alone = vec![bad, free[0].clone(), free[1].clone()];
        assert!(!takes(&cluster, &b(), alone), "and does not count");
    }
}

#[test]
fn silence_after_vote_stops_no_decision() {
    let mut cluster = with_liar();
    cluster.opinions[0] = reject();
    cluster.submit("the change");
    let message = cluster.says(LIAR, 1, vote(0, &a(), &approve()));
    cluster.tell(LIAR, &message);
    cluster.run();
    assert_eq!(cluster.outcome(1), Some(a().value()), "whoever dissents commits too");
}

/// With f silent reviewers there is a decision, and with more there is no decision until they are back.
#[test]
fn more_than_f_silent_delay_decision() {
    let mut cluster = with_liar();
    cluster.submit("the change");
    cluster.run();
    assert_eq!(cluster.outcome(1), Some(a().value()));
    cluster.away.insert(NodeId::Reviewer(2));
    cluster.submit("another change");
    cluster.run();
    for _ in 0..3 {
        cluster.expire();
        cluster.again();
    }
    assert_eq!((cluster.outcome(2), cluster.announced.len()), (None, 1));
    cluster.away.clear();
    cluster.liars.clear();
    for _ in 0..3 {
        cluster.again();
        cluster.expire();
    }
    assert!(cluster.outcome(2).is_some(), "whoever comes back makes it go on");
    assert_eq!(cluster.outcome(1), Some(a().value()), "and learns what it has missed");
}

/// A reviewer that votes for and against a change cannot have it both rejected and approved.
#[test]
fn double_voter_gets_one_outcome() {
    let mut cluster = with_liar();
    cluster.opinions[0] = reject();
    cluster.submit("the change");
    let (yes, no) =
        (cluster.says(LIAR, 1, vote(0, &a(), &approve())), cluster.says(LIAR, 1, vote(0, &a(), &reject())));
    for at in 0..3 {
        let message = if at == 1 { &yes } else { &no };
        cluster.send(LIAR, NodeId::Reviewer(at), message.clone());
    }
    cluster.run();
    for _ in 0..3 {
        cluster.expire();
        cluster.again();
    }
    assert!(cluster.outcome(1).is_some(), "one outcome, which the cluster itself compares");
}

#[test]
fn abstentions_and_a_quorum_less_one_approve_nothing() {
    for opinions in [
        vec![abstain(); 4],
        vec![approve(), approve(), abstain(), abstain()],
        vec![approve(), approve(), reject(), abstain()],
    ] {
        let mut cluster = TestCluster::new(4, 1);
        cluster.opinions = opinions;
        cluster.submit("the change");
        cluster.run();
        assert_eq!(cluster.outcome(1), Some(Value::Nothing));
        assert_eq!(cluster.announced, [(1, Value::Nothing)]);
    }
}

/// A replica that starts again asks for an opinion only where it has none yet.
#[test]
fn restarted_replica_sends_same_bytes() {
    let mut cluster = TestCluster::new(4, 1);
    cluster.opinions[1] = reject();
    cluster.submit("the change");
    cluster.run();
    for at in 0..4 {
        let (_, seal) =
            RosterSigner::new(key(NodeId::Reviewer(at)), Arc::clone(&cluster.membership)).unwrap();
        let mut again = Replica::new(seal, at, cluster.membership.quorum(), 1);
        let mut said = Vec::new();
        for input in &cluster.inputs[&at] {
            for out in again.step(input.clone()) {
                if let NodeAction::Send(_, packet) = out {
                    said.push(cluster.membership.write(&packet));
                }
            }
        }
        let mut before: Vec<String> = cluster
            .sent
            .iter()
            .filter(|(from, ..)| *from == NodeId::Reviewer(at))
            .map(|(.., text)| text.to_string())
            .collect();
        before.dedup();
        assert_eq!(said, before);
        assert!(again.resume().is_empty(), "all is decided: nothing is to be reviewed");
    }
    // Before its opinion is known it asks for it, and after that it does not.
    let at = 0;
    let (_, seal) = RosterSigner::new(key(NodeId::Reviewer(at)), Arc::clone(&cluster.membership)).unwrap();
    let mut again = Replica::new(seal, at, cluster.membership.quorum(), 1);
    let is_review = |out: &NodeAction<Signature>| matches!(out, NodeAction::Review(..));
    for input in &cluster.inputs[&at] {
        let is_reviewed = matches!(input, NodeInput::Reviewed(..));
        let asked = again.resume().iter().any(is_review);
        again.step(input.clone());
        assert_eq!(asked, is_reviewed, "it is asked for, and comes next");
    }
}

/// Messages for numbers or views that are not reached take almost no memory and do not stop the next decision.
#[test]
fn flood_of_numbers_is_not_remembered() {
    let mut cluster = with_liar();
    cluster.submit("the change");
    cluster.run();
    let size = |cluster: &TestCluster| format!("{:?}", cluster.reviewers[0]).len();
    let before = size(&cluster);
    let template = cluster.says(LIAR, 1, commit(0, a().value()));
    for number in 0..100_000_u64 {
        // Signatures are not what is attacked here: the messages go in as if they had been checked.
        let mut message = template.clone();
        let view = u32::try_from(number % 50_000).unwrap() + 17;
        message.signed.sequence = if number % 2 == 0 { 2 } else { 66 + number * 1_000_003 };
        message.signed.statement = match number % 3 {
            0 => commit(view, a().value()),
            1 => vote(view, &a(), &approve()),
            _ => Statement::Checkpoint { head: Digest::new(&number.to_le_bytes()) },
        };
        cluster.reviewers[0].step(NodeInput::Heard(LIAR, Packet::Message(message)));
    }
    assert!(size(&cluster) < before + 2000, "{} bytes more", size(&cluster) - before);
    cluster.submit("another change");
    cluster.run();
    assert_eq!(cluster.outcome(2), Some(b().value()), "and the next decision is made");
}

/// A refusal names the reviewers who reject, and a change moves on from a place that reviewers have left.
#[test]
fn change_is_refused_or_gets_next_place() {
    let mut cluster = TestCluster::new(4, 1);
    cluster.opinions = vec![reject(), reject(), approve(), approve()];
    cluster.submit("the change");
    cluster.run();
    let by = [0, 1].into();
    assert_eq!(cluster.returned, [("the change".to_owned(), ReturnReason::Refused(by))]);
    assert_eq!(cluster.orchestrators[0].pending(), 0);
    // A place that reviewers have left already goes to nothing, and the change to the next.
    cluster.opinions = vec![approve(); 4];
    for at in 0..4 {
        let message = cluster.says(NodeId::Reviewer(at), 2, Statement::ViewChange { view: 1, lock: None });
        cluster.send(NodeId::Reviewer(at), FIRST, message);
    }
    cluster.run();
    cluster.submit("another change");
    cluster.run();
    for _ in 0..3 {
        cluster.again();
        cluster.expire();
    }
    assert_eq!(cluster.outcome(3), Some(b().value()));
    assert!(cluster.accused.is_empty(), "nobody has proposed twice in a view");
}
