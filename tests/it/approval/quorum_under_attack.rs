//! Decisions by quorum under attack: each test is one way to cheat, and what comes of it.

mod local_cluster;
mod messages_that_do_not_count;

use std::sync::Arc;

use consensus::bft::proposer;
use consensus::bft::replica::{Replica, ReplicaAction, ReplicaInput};
use consensus::bft::{
    CHANGE_BYTES_MAX, Change, Commit, Letter, NodeId, OPINION_BYTES_MAX, Opinion, Post, Refused, Registry,
    RosterFault, Seal, Severity, Statement, TooLong, Value, leader,
};
use consensus::crypto::{Digest, Signature};
use serde_json::Value as Json;

use local_cluster::{Court, approve, key, roster};

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

fn propose(court: &Court, view: u32, change: &Change) -> Letter<Signature> {
    let by = NodeId::Orchestrator(leader(1, view, court.orchestrators.len()));
    let letter = court.says(by, 1, Statement::PrePrepare { view, value: change.value() });
    Letter { change: Some(change.clone()), ..letter }
}

/// A court in which the last reviewer is a liar, who does nothing by itself.
fn with_liar() -> Court {
    let mut court = Court::new(4, 1);
    court.liars.insert(LIAR);
    court
}

#[test]
fn a_change_that_all_approve_is_decided_by_each_and_told_once() {
    let mut court = Court::new(4, 1);
    court.submit("the change");
    court.submit("another change");
    court.run();
    assert_eq!(court.told, [(1, a().value()), (2, b().value())]);
    assert_eq!((court.outcome(1), court.outcome(2)), (Some(a().value()), Some(b().value())));
    assert_eq!(court.reviews, 8, "each change is reviewed once by each");
    assert!(court.refused.is_empty() && court.accused.is_empty());
}

#[test]
fn an_orchestrator_who_shows_two_changes_gets_at_most_one_and_is_accused() {
    let mut court = Court::new(4, 2);
    let (first, second) = (propose(&court, 0, &a()), propose(&court, 0, &b()));
    for at in 0..4 {
        let letter = if at < 2 { &first } else { &second };
        court.send(FIRST, NodeId::Reviewer(at), letter.clone());
    }
    court.run();
    assert_eq!(court.outcome(1), None, "neither has three votes");
    court.tell(FIRST, &first);
    court.run();
    assert_eq!(court.accused.len(), 2, "by each that has seen the other");
    assert!(court.accused.iter().all(|(one, other)| one.statement != other.statement && one.by == 1));
    court.expire();
    assert_eq!(court.outcome(1), Some(Value::Nothing));
}

#[test]
fn a_reviewer_who_tells_each_something_else_splits_nobody_and_is_accused() {
    let mut court = with_liar();
    court.opinions[0] = reject();
    court.submit("the change");
    for at in 0..3 {
        let opinion = if at == 0 { approve() } else { reject() };
        let letter = court.says(LIAR, 1, vote(0, &a(), &opinion));
        court.send(LIAR, NodeId::Reviewer(at), letter);
    }
    let other = court.says(LIAR, 1, vote(0, &a(), &approve()));
    court.tell(LIAR, &other);
    court.run();
    assert!(court.accused.iter().all(|(one, other)| one.by == 3 && other.by == 3));
    assert_eq!(court.accused.len(), 2, "by each that has heard both");
    court.expire();
    assert!(court.outcome(1).is_some(), "one way or the other, the same for all");
}

#[test]
fn the_same_commit_many_times_counts_once() {
    let mut court = with_liar();
    court.away.insert(NodeId::Reviewer(2));
    court.submit("the change");
    court.run();
    let letter = court.says(LIAR, 1, commit(0, a().value()));
    for _ in 0..9 {
        court.tell(LIAR, &letter);
    }
    court.run();
    assert!(court.decided.is_empty() && court.accused.is_empty());
    // In one proof it is refused.
    let signed = letter.signed;
    let envelope = court.registry.envelope(&[signed.clone(), signed.clone(), signed]).unwrap();
    let refused = court.registry.open(&envelope).unwrap_err();
    assert_eq!(refused, Refused::Twice(key(LIAR).public().id()));
}

#[test]
fn a_vote_is_not_withdrawn_by_one_that_is_forged() {
    let mut court = with_liar();
    court.opinions[0] = reject();
    court.submit("the change");
    let good = court.says(LIAR, 1, vote(0, &a(), &approve()));
    let mut forged = court.says(LIAR, 1, vote(0, &a(), &reject()));
    forged.signed.signature = good.signed.signature;
    court.tell(LIAR, &good);
    court.tell(LIAR, &forged);
    court.run();
    assert!(court.refused.contains(&Refused::Forged(LIAR)));
    assert_eq!(court.outcome(1), Some(a().value()), "with the vote that is in its name");
}

#[test]
fn an_old_view_change_takes_nobody_back() {
    let mut court = Court::new(4, 1);
    court.opinions = vec![abstain(); 4];
    court.submit("the change");
    court.run();
    assert_eq!(court.outcome(1), Some(Value::Nothing), "in the next view");
    let old: Vec<_> = court.sent.clone();
    court.submit("another change");
    court.run();
    let before = format!("{:?}", court.reviewers);
    for (from, to, text) in old {
        court.post(from, to, &text);
    }
    court.run();
    assert_eq!(format!("{:?}", court.reviewers), before, "all of it again changes nothing");
    assert_eq!(court.outcome(1), Some(Value::Nothing));
}

#[test]
fn a_new_view_begins_with_what_a_quorum_approved_and_with_nothing_else() {
    let mut court = Court::new(4, 1);
    // All vote for the change; nobody hears of the commits.
    court.submit("the change");
    court.run();
    let votes: Vec<_> =
        (0..3).map(|at| court.says(NodeId::Reviewer(at), 1, vote(0, &a(), &approve()))).collect();
    let leave = |court: &Court, at: usize, lock: Option<&Change>, grounds: &[Letter<Signature>]| {
        let statement = Statement::ViewChange { view: 1, lock: lock.map(|change| (0, change.value())) };
        let letter = court.says(NodeId::Reviewer(at), 1, statement);
        Letter { change: lock.cloned(), grounds: grounds.into(), ..letter }
    };
    let locked = leave(&court, 0, Some(&a()), &votes);
    let free: Vec<_> = (1..4).map(|at| leave(&court, at, None, &[])).collect();
    let twice = [votes[0].clone(), votes[0].clone(), votes[0].clone()];
    let others: Vec<_> =
        (0..3).map(|at| court.says(NodeId::Reviewer(at), 1, vote(0, &b(), &reject()))).collect();
    let takes = |court: &Court, change: &Change, grounds: Vec<Letter<Signature>>| {
        let (_, seal) = Seal::new(key(NodeId::Reviewer(0)), Arc::clone(&court.registry)).unwrap();
        let mut fresh = Replica::new(seal, 0, court.registry.quorum(), 1);
        let letter = Letter { grounds: grounds.into(), ..propose(court, 1, change) };
        let post =
            court.registry.read(&court.registry.write(&Post::Letter(letter)), |_, _| true).unwrap().unwrap();
        fresh.step(ReplicaInput::Heard(FIRST, post)).iter().any(|out| {
            matches!(out, ReplicaAction::Send(_, Post::Letter(letter))
                if matches!(letter.signed.statement, Statement::Acknowledge { .. }))
        })
    };
    let with = |first: Letter<Signature>| [vec![first], free.clone()].concat();
    assert!(takes(&court, &a(), with(locked.clone())));
    assert!(!takes(&court, &b(), with(locked.clone())), "the lock is not to be passed over");
    assert!(!takes(&court, &b(), free[..2].to_vec()), "two are no quorum");
    assert!(!takes(&court, &b(), vec![free[0].clone(), free[0].clone(), free[0].clone()]));
    for bad in [
        leave(&court, 0, Some(&b()), &[]),
        leave(&court, 0, Some(&b()), &votes),
        leave(&court, 0, Some(&b()), &others),
        leave(&court, 0, Some(&a()), &twice),
    ] {
        assert!(
            takes(&court, &b(), with(bad.clone())),
            "{bad:?} is a lie, and hides nothing that others say"
        );
        let alone = vec![bad, free[0].clone(), free[1].clone()];
        assert!(!takes(&court, &b(), alone), "and does not count");
    }
}

#[test]
fn a_reviewer_who_helps_and_then_is_silent_stops_nobody() {
    let mut court = with_liar();
    court.opinions[0] = reject();
    court.submit("the change");
    let letter = court.says(LIAR, 1, vote(0, &a(), &approve()));
    court.tell(LIAR, &letter);
    court.run();
    assert_eq!(court.outcome(1), Some(a().value()), "whoever dissents commits too");
}

#[test]
fn with_f_silent_there_is_a_decision_and_with_more_there_is_none_until_they_are_back() {
    let mut court = with_liar();
    court.submit("the change");
    court.run();
    assert_eq!(court.outcome(1), Some(a().value()));
    court.away.insert(NodeId::Reviewer(2));
    court.submit("another change");
    court.run();
    for _ in 0..3 {
        court.expire();
        court.again();
    }
    assert_eq!((court.outcome(2), court.told.len()), (None, 1));
    court.away.clear();
    court.liars.clear();
    for _ in 0..3 {
        court.again();
        court.expire();
    }
    assert!(court.outcome(2).is_some(), "whoever comes back makes it go on");
    assert_eq!(court.outcome(1), Some(a().value()), "and learns what it has missed");
}

#[test]
fn a_double_voter_cannot_have_it_both_rejected_and_approved() {
    let mut court = with_liar();
    court.opinions[0] = reject();
    court.submit("the change");
    let (yes, no) =
        (court.says(LIAR, 1, vote(0, &a(), &approve())), court.says(LIAR, 1, vote(0, &a(), &reject())));
    for at in 0..3 {
        let letter = if at == 1 { &yes } else { &no };
        court.send(LIAR, NodeId::Reviewer(at), letter.clone());
    }
    court.run();
    for _ in 0..3 {
        court.expire();
        court.again();
    }
    assert!(court.outcome(1).is_some(), "one outcome, which the court itself compares");
}

#[test]
fn abstentions_and_a_quorum_less_one_approve_nothing() {
    for opinions in [
        vec![abstain(); 4],
        vec![approve(), approve(), abstain(), abstain()],
        vec![approve(), approve(), reject(), abstain()],
    ] {
        let mut court = Court::new(4, 1);
        court.opinions = opinions;
        court.submit("the change");
        court.run();
        assert_eq!(court.outcome(1), Some(Value::Nothing));
        assert_eq!(court.told, [(1, Value::Nothing)]);
    }
}

#[test]
fn whoever_starts_again_says_the_same_bytes_and_asks_no_model_twice() {
    let mut court = Court::new(4, 1);
    court.opinions[1] = reject();
    court.submit("the change");
    court.run();
    for at in 0..4 {
        let (_, seal) = Seal::new(key(NodeId::Reviewer(at)), Arc::clone(&court.registry)).unwrap();
        let mut again = Replica::new(seal, at, court.registry.quorum(), 1);
        let mut said = Vec::new();
        for input in &court.inputs[&at] {
            for out in again.step(input.clone()) {
                if let ReplicaAction::Send(_, post) = out {
                    said.push(court.registry.write(&post));
                }
            }
        }
        let mut before: Vec<String> = court
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
    let (_, seal) = Seal::new(key(NodeId::Reviewer(at)), Arc::clone(&court.registry)).unwrap();
    let mut again = Replica::new(seal, at, court.registry.quorum(), 1);
    let is_review = |out: &ReplicaAction<Signature>| matches!(out, ReplicaAction::Review(..));
    for input in &court.inputs[&at] {
        let is_reviewed = matches!(input, ReplicaInput::Reviewed(..));
        let asked = again.resume().iter().any(is_review);
        again.step(input.clone());
        assert_eq!(asked, is_reviewed, "it is asked for, and comes next");
    }
}

#[test]
fn a_flood_of_numbers_that_nobody_has_reached_is_not_remembered() {
    let mut court = with_liar();
    court.submit("the change");
    court.run();
    let size = |court: &Court| format!("{:?}", court.reviewers[0]).len();
    let before = size(&court);
    let template = court.says(LIAR, 1, commit(0, a().value()));
    for number in 0..100_000_u64 {
        // Signatures are not what is attacked here: the letters go in as if they had been checked.
        let mut letter = template.clone();
        let view = u32::try_from(number % 50_000).unwrap() + 17;
        letter.signed.sequence = if number % 2 == 0 { 2 } else { 66 + number * 1_000_003 };
        letter.signed.statement = match number % 3 {
            0 => commit(view, a().value()),
            1 => vote(view, &a(), &approve()),
            _ => Statement::Checkpoint { head: Digest::of(&number.to_le_bytes()) },
        };
        court.reviewers[0].step(ReplicaInput::Heard(LIAR, Post::Letter(letter)));
    }
    assert!(size(&court) < before + 2000, "{} bytes more", size(&court) - before);
    court.submit("another change");
    court.run();
    assert_eq!(court.outcome(2), Some(b().value()), "and the next decision is made");
}

#[test]
fn a_change_is_refused_by_name_or_gets_another_place() {
    let mut court = Court::new(4, 1);
    court.opinions = vec![reject(), reject(), approve(), approve()];
    court.submit("the change");
    court.run();
    let by = [0, 1].into();
    assert_eq!(court.returned, [("the change".to_owned(), proposer::Why::Refused(by))]);
    assert_eq!(court.orchestrators[0].pending(), 0);
    // A place that reviewers have left already goes to nothing, and the change to the next.
    court.opinions = vec![approve(); 4];
    for at in 0..4 {
        let letter = court.says(NodeId::Reviewer(at), 2, Statement::ViewChange { view: 1, lock: None });
        court.send(NodeId::Reviewer(at), FIRST, letter);
    }
    court.run();
    court.submit("another change");
    court.run();
    for _ in 0..3 {
        court.again();
        court.expire();
    }
    assert_eq!(court.outcome(3), Some(b().value()));
    assert!(court.accused.is_empty(), "nobody has proposed twice in a view");
}
