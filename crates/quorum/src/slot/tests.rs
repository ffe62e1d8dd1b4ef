//! The properties of one decision that a reviewer may rely on.

use super::*;
use crate::message::Grounds;

fn four() -> Slot {
    Slot::new(Quorum::new(4).unwrap())
}

fn change(name: &str) -> Value {
    Value::Change(Digest::new(name.as_bytes()))
}

fn first(value: Value) -> SlotInput {
    SlotInput::Proposed(LeaderProposal { view: 0, value, grounds: Grounds::First })
}

fn prepare(from: Reviewer, view: View, value: Value, vote: Vote) -> SlotInput {
    SlotInput::Said(from, SlotMessage::Prepare(Prepare { view, value, vote }))
}

fn commit(from: Reviewer, view: View, value: Value) -> SlotInput {
    SlotInput::Said(from, SlotMessage::Commit(Commit { view, value }))
}

fn said(out: &[SlotAction]) -> Vec<SlotMessage> {
    out.iter()
        .filter_map(|out| if let SlotAction::Say(message) = out { Some(message.clone()) } else { None })
        .collect()
}

fn play(slot: &mut Slot, inputs: impl IntoIterator<Item = SlotInput>) -> Vec<SlotAction> {
    inputs.into_iter().flat_map(|input| slot.step(input)).collect()
}

#[test]
fn change_is_reviewed_and_voted_once() {
    let (mut slot, a) = (four(), Digest::new(b"a"));
    let out = slot.step(first(Value::Change(a)));
    assert_eq!(out, [SlotAction::Acknowledge(0, Value::Change(a)), SlotAction::Review(a)]);
    assert!(slot.step(first(Value::Change(a))).is_empty(), "the same proposal is not news");
    let out = slot.step(SlotInput::Reviewed(a, Vote::Approve));
    assert_eq!(
        said(&out),
        [SlotMessage::Prepare(Prepare { view: 0, value: Value::Change(a), vote: Vote::Approve })]
    );
    assert!(slot.step(SlotInput::Reviewed(a, Vote::Reject)).is_empty(), "the first opinion stays");
}

#[test]
fn dissenter_still_reports_quorum_approval() {
    let (mut slot, a) = (four(), change("a"));
    play(&mut slot, [first(a), SlotInput::Reviewed(Digest::new(b"a"), Vote::Reject)]);
    let out = play(&mut slot, (1..4).map(|from| prepare(from, 0, a, Vote::Approve)));
    assert_eq!(said(&out), [SlotMessage::Commit(Commit { view: 0, value: a })]);
}

/// A reviewer counts once, and a second, different statement is proof against it.
#[test]
fn contradicting_reviewer_is_accused() {
    let (mut slot, a, b) = (four(), change("a"), change("b"));
    let out = play(&mut slot, [first(a)].into_iter().chain((0..5).map(|_| prepare(1, 0, a, Vote::Approve))));
    assert!(said(&out).is_empty());
    let out = slot.step(prepare(1, 0, b, Vote::Approve));
    assert!(matches!(out[..], [SlotAction::Accuse(Fraud::Prepares(1, ..))]), "{out:?}");
    let out = play(&mut slot, (0..9).map(|_| commit(2, 0, a)));
    assert!(slot.decision().is_none() && out.is_empty());
    assert!(matches!(slot.step(commit(2, 0, b))[..], [SlotAction::Accuse(Fraud::Commits(2, ..))]));
    assert!(slot.step(prepare(1, 0, b, Vote::Reject)).is_empty(), "once is enough");
    let out = play(&mut slot, [first(b), first(b)]);
    let leaves = SlotMessage::ViewChange(ViewChange { view: 1, lock: None });
    assert_eq!(out, [SlotAction::Accuse(Fraud::Proposals(0, a, b)), SlotAction::Say(leaves)]);
}

/// Neither of them makes a quorum smaller.
#[test]
fn silence_and_abstention_help_no_quorum() {
    let (mut slot, a) = (four(), change("a"));
    let mut out = play(&mut slot, [first(a)]);
    out.extend(play(&mut slot, [prepare(1, 0, a, Vote::Approve), prepare(2, 0, a, Vote::Approve)]));
    assert!(said(&out).is_empty(), "two of four");
    out = slot.step(prepare(3, 0, a, Vote::Abstain));
    assert!(said(&out).is_empty());
    out = slot.step(prepare(0, 0, a, Vote::Abstain));
    assert_eq!(
        said(&out),
        [SlotMessage::ViewChange(ViewChange { view: 1, lock: None })],
        "no quorum is left"
    );
}

/// A vote to follow is no approval of a change that no reviewer has approved.
#[test]
fn follow_votes_approve_no_change() {
    let (mut slot, a) = (four(), change("a"));
    let out =
        play(&mut slot, [first(a)].into_iter().chain((0..4).map(|from| prepare(from, 0, a, Vote::Follow))));
    assert!(!said(&out).iter().any(|message| matches!(message, SlotMessage::Commit(_))), "{out:?}");
}

/// The locked value is what a quorum has approved.
#[test]
fn next_view_must_propose_locked_value() {
    let quorum = Quorum::new(4).unwrap();
    let (a, b) = (change("a"), change("b"));
    let lock = |view, value| Lock { view, value, approvers: (0..3).collect() };
    let after = |locks: [Option<Lock>; 3]| {
        let left = locks.map(|lock| ViewChange { view: 2, lock }).into_iter().enumerate().collect();
        LeaderProposal::after(2, left, Value::Nothing, quorum).unwrap()
    };
    assert_eq!(after([None, None, None]).value, Value::Nothing);
    assert_eq!(after([Some(lock(0, a)), Some(lock(1, b)), None]).value, b, "the last one");
    let mut slot = four();
    let proposal = LeaderProposal { value: Value::Nothing, ..after([Some(lock(0, a)), None, None]) };
    assert!(
        slot.step(SlotInput::Proposed(proposal)).is_empty(),
        "a proposal that passes over a lock is refused"
    );
    let out = slot.step(SlotInput::Proposed(after([Some(lock(0, a)), None, None])));
    assert_eq!(said(&out), [SlotMessage::Prepare(Prepare { view: 2, value: a, vote: Vote::Follow })]);
}

#[test]
fn invalid_lock_hides_no_other() {
    let quorum = Quorum::new(4).unwrap();
    let a = change("a");
    let forged = Lock { view: 1, value: change("b"), approvers: [1, 2].into() };
    let strangers = Lock { view: 1, value: change("b"), approvers: [1, 7, 8].into() };
    let good = Lock { view: 0, value: a, approvers: [0, 1, 2].into() };
    let left = |lock| ViewChange { view: 2, lock };
    for bad in [forged, strangers] {
        let said = vec![
            (0, left(Some(bad.clone()))),
            (1, left(Some(good.clone()))),
            (2, left(None)),
            (3, left(None)),
        ];
        assert_eq!(LeaderProposal::after(2, said, Value::Nothing, quorum).unwrap().value, a);
        let said = vec![(0, left(Some(bad))), (1, left(None)), (2, left(None))];
        assert!(LeaderProposal::after(2, said, Value::Nothing, quorum).is_none(), "two are not a quorum");
    }
    let twice = vec![(1, left(None)), (1, left(None)), (1, left(None))];
    assert!(LeaderProposal::after(2, twice, Value::Nothing, quorum).is_none(), "neither is one reviewer");
}

#[test]
fn slot_is_silent_in_left_view() {
    let (mut slot, a) = (four(), change("a"));
    play(&mut slot, [first(a), SlotInput::Expired(0)]);
    let late = (0..4).map(|from| prepare(from, 0, a, Vote::Approve));
    assert!(play(&mut slot, late).is_empty());
    assert!(slot.step(SlotInput::Reviewed(Digest::new(b"a"), Vote::Approve)).is_empty());
    assert!(slot.step(SlotInput::Expired(0)).is_empty() && slot.view() == 1, "views only go forward");
    let out = play(&mut slot, (0..3).map(|from| commit(from, 0, a)));
    assert!(
        matches!(&out[..], [SlotAction::Decide(decision)] if decision.value == a),
        "decided all the same"
    );
}

/// A liar that commits to something else keeps no party from a decision.
#[test]
fn lying_committer_prevents_no_decision() {
    let (mut slot, a) = (four(), change("a"));
    play(&mut slot, [commit(3, 0, Value::Nothing), commit(0, 0, a), commit(2, 0, a), SlotInput::Expired(0)]);
    assert!(slot.decision().is_none());
    for (committers, is_proof, why) in [
        ([0, 2, 9], false, "a stranger proves nothing"),
        ([0, 2, 3], true, "a quorum"),
        ([0, 1, 2], false, "once"),
    ] {
        let decision = Decision { view: 0, value: a, committers: committers.into() };
        let out = slot.step(SlotInput::Decided(decision.clone()));
        let expected = if is_proof { vec![SlotAction::Decide(decision)] } else { Vec::new() };
        assert_eq!(out, expected, "{why}");
    }
}

/// A party that was away comes back into a view that a quorum has gone to.
#[test]
fn slot_joins_view_of_a_quorum() {
    let (mut slot, quorum) = (four(), Quorum::new(4).unwrap());
    let said = (0..3).map(|from| (from, ViewChange { view: 900, lock: None })).collect();
    let proposal = LeaderProposal::after(900, said, Value::Nothing, quorum).unwrap();
    let out = slot.step(SlotInput::Proposed(proposal));
    assert_eq!(out[0], SlotAction::Acknowledge(900, Value::Nothing));
    assert_eq!(slot.view(), 900);
}

/// Orchestrators that propose without end are not remembered without end.
#[test]
fn endless_proposals_stay_within_bounds() {
    let (mut slot, quorum) = (four(), Quorum::new(4).unwrap());
    let mut reviews = 0;
    for view in 1..200 {
        let said = (0..3).map(|from| (from, ViewChange { view, lock: None })).collect();
        let value = change(&format!("change {view}"));
        let out = slot.step(SlotInput::Proposed(LeaderProposal::after(view, said, value, quorum).unwrap()));
        reviews += out.iter().filter(|out| matches!(out, SlotAction::Review(_))).count();
        play(&mut slot, (0..4).map(|from| prepare(from, view, value, Vote::Reject)));
    }
    assert_eq!(reviews, REVIEWS_MAX);
    assert!(slot.heard.values().map(|heard| heard.prepares.len()).sum::<usize>() <= 4);
}

#[test]
fn one_liar_changes_no_view() {
    let mut slot = four();
    let leave = |from, view| SlotInput::Said(from, SlotMessage::ViewChange(ViewChange { view, lock: None }));
    assert!(slot.step(leave(3, 9)).is_empty());
    let out = slot.step(leave(2, 1));
    assert_eq!(said(&out), [SlotMessage::ViewChange(ViewChange { view: 1, lock: None })]);
    assert!(slot.step(leave(3, 1000)).is_empty() && slot.step(commit(3, 1000, change("a"))).is_empty());
    assert!(
        slot.step(SlotInput::Said(77, SlotMessage::Commit(Commit { view: 0, value: Value::Nothing })))
            .is_empty()
    );
}
