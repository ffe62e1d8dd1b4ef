//! One reviewer's part in one decision.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Decision, Fraud, Input, Output, Phase};
use super::message::{Commit, Lock, Message, Prepare, Proposal, Reviewer, Value, View, ViewChange, Vote};
use super::quorum::Quorum;
use crate::crypto::Digest;

/// Votes and commits of views so far ahead of a reviewer's own are not looked at: whoever names them wants to be
/// remembered without end. Whoever was away for longer learns of a decision by its proof, and of a view by a proposal.
const VIEWS_AHEAD_MAX: View = 16;

/// A reviewer looks at so many changes for one decision: a review costs what a message does not.
const REVIEWS_MAX: usize = 4;

/// A proposal that a reviewer has taken.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Accepted {
    value: Value,
    /// Whether reviewers follow it whatever they think of it.
    is_followed: bool,
}

/// What has been said in one view.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Heard {
    accepted: Option<Accepted>,
    prepares: BTreeMap<Reviewer, Prepare>,
    commits: BTreeMap<Reviewer, Commit>,
    has_prepared: bool,
    has_committed: bool,
    /// Who has been accused already, and whether of votes or of commits; and whether the orchestrator has.
    accused: BTreeSet<(bool, Reviewer)>,
    has_accused: bool,
}

/// One reviewer's part in one decision.
///
/// It says one thing of each kind in each view, and nothing in a view that it has left.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Slot {
    quorum: Quorum,
    view: View,
    heard: BTreeMap<View, Heard>,
    /// What it thinks of each change.
    opinions: BTreeMap<Digest, Vote>,
    asked: BTreeSet<Digest>,
    /// The last value that it has seen a quorum approve.
    lock: Option<Lock>,
    /// The highest view that each reviewer has gone to.
    left: BTreeMap<Reviewer, View>,
    decision: Option<Decision>,
}

impl Slot {
    /// A decision among so many, of which nothing is known yet.
    #[must_use]
    pub fn new(quorum: Quorum) -> Self {
        Self {
            quorum,
            view: 0,
            heard: BTreeMap::new(),
            opinions: BTreeMap::new(),
            asked: BTreeSet::new(),
            lock: None,
            left: BTreeMap::new(),
            decision: None,
        }
    }

    /// The view that this reviewer takes part in.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// What it waits for in its view; nothing, once there is a decision.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        let heard = self.heard.get(&self.view).filter(|heard| heard.accepted.is_some());
        let here = self.left.values().filter(|view| **view >= self.view).count();
        self.decision.is_none().then_some(match heard {
            None if self.view > 0 && here < self.quorum.size() => Phase::ViewChange,
            None => Phase::PrePrepare,
            Some(heard) if !heard.has_committed => Phase::Prepare,
            Some(_) => Phase::Commit,
        })
    }

    /// Whether votes of this view are looked at.
    pub(super) fn hears_votes(&self, view: View) -> bool {
        view >= self.view && self.is_near(view)
    }

    /// The change that it waits for an opinion on.
    pub(super) fn awaited(&self) -> Option<Digest> {
        let accepted = self.heard.get(&self.view)?.accepted.filter(|accepted| !accepted.is_followed)?;
        let Value::Change(digest) = accepted.value else { return None };
        let is_open = self.asked.contains(&digest) && !self.opinions.contains_key(&digest);
        (is_open && self.decision.is_none()).then_some(digest)
    }

    /// The decision, once there is one.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// The last value that this reviewer has seen a quorum approve.
    #[must_use]
    pub fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// Goes on. The same inputs give the same outputs; what makes no sense is dropped.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Proposed(proposal) => self.proposed(&proposal, &mut out),
            Input::Reviewed(digest, vote) => self.reviewed(digest, vote, &mut out),
            Input::Said(from, message) if from < self.quorum.reviewers() => {
                self.said(from, &message, &mut out);
            }
            Input::Expired(view) if view == self.view && self.decision.is_none() => {
                self.go_to(view.saturating_add(1), &mut out);
            }
            Input::Decided(decision) => self.learn(decision, &mut out),
            Input::Said(..) | Input::Expired(_) => {}
        }
        out
    }

    pub(super) fn is_near(&self, view: View) -> bool {
        view <= self.view.saturating_add(VIEWS_AHEAD_MAX)
    }

    fn proposed(&mut self, proposal: &Proposal, out: &mut Vec<Output>) {
        let Proposal { view, value, .. } = *proposal;
        if view < self.view || self.decision.is_some() {
            return;
        }
        let Ok(forced) = proposal.forced(self.quorum) else { return };
        if forced.is_some_and(|forced| forced != value) {
            return;
        }
        let heard = self.heard.entry(view).or_default();
        if let Some(accepted) = heard.accepted {
            if accepted.value != value && !heard.has_accused {
                heard.has_accused = true;
                out.push(Output::Accuse(Fraud::Proposals(view, accepted.value, value)));
                // Nothing good comes of this view: others may have taken the other one.
                self.go_to(view.saturating_add(1), out);
            }
            return;
        }
        heard.accepted = Some(Accepted { value, is_followed: forced.is_some() || value == Value::Nothing });
        self.enter(view);
        out.push(Output::Acknowledge(view, value));
        self.vote(out);
        self.count(view, out);
    }

    fn reviewed(&mut self, digest: Digest, vote: Vote, out: &mut Vec<Output>) {
        // A review is an opinion: following is none.
        if vote != Vote::Follow {
            self.opinions.entry(digest).or_insert(vote);
            self.vote(out);
        }
    }

    /// Votes in its view, if it can and has not.
    fn vote(&mut self, out: &mut Vec<Output>) {
        if self.decision.is_some() {
            return;
        }
        let Some(heard) = self.heard.get_mut(&self.view).filter(|heard| !heard.has_prepared) else { return };
        let Some(Accepted { value, is_followed }) = heard.accepted else { return };
        let vote = match value {
            Value::Change(digest) if !is_followed => match self.opinions.get(&digest) {
                Some(vote) => *vote,
                None if self.asked.len() < REVIEWS_MAX && self.asked.insert(digest) => {
                    return out.push(Output::Review(digest));
                }
                None => return,
            },
            Value::Change(_) | Value::Nothing => Vote::Follow,
        };
        heard.has_prepared = true;
        out.push(Output::Say(Message::Prepare(Prepare { view: self.view, value, vote })));
    }

    fn said(&mut self, from: Reviewer, message: &Message, out: &mut Vec<Output>) {
        match *message {
            Message::Prepare(prepare) if self.hears_votes(prepare.view) => {
                let heard = self.heard.entry(prepare.view).or_default();
                let first = *heard.prepares.entry(from).or_insert(prepare);
                if first != prepare && heard.accused.insert((false, from)) {
                    out.push(Output::Accuse(Fraud::Prepares(from, first, prepare)));
                }
                self.count(prepare.view, out);
            }
            Message::Commit(commit) if self.is_near(commit.view) => {
                let heard = self.heard.entry(commit.view).or_default();
                let first = *heard.commits.entry(from).or_insert(commit);
                if first != commit && heard.accused.insert((true, from)) {
                    out.push(Output::Accuse(Fraud::Commits(from, first, commit)));
                }
                self.decide(commit, out);
            }
            Message::ViewChange(ViewChange { view, .. }) => {
                let highest = self.left.entry(from).or_insert(view);
                *highest = view.max(*highest);
                self.follow_others(out);
            }
            Message::Prepare(_) | Message::Commit(_) => {}
        }
    }

    /// Counts the votes of its view, after one has come or the proposal has.
    fn count(&mut self, view: View, out: &mut Vec<Output>) {
        if view != self.view || self.decision.is_some() {
            return;
        }
        let Some(heard) = self.heard.get_mut(&view).filter(|heard| !heard.has_committed) else { return };
        let Some(Accepted { value, is_followed }) = heard.accepted else { return };
        let (mut approvers, mut others) = (BTreeSet::new(), 0);
        for (reviewer, prepare) in heard.prepares.iter().filter(|(_, prepare)| prepare.value == value) {
            match prepare.vote {
                Vote::Approve => _ = approvers.insert(*reviewer),
                Vote::Follow if is_followed => _ = approvers.insert(*reviewer),
                Vote::Follow | Vote::Reject | Vote::Abstain => others += 1,
            }
        }
        if approvers.len() >= self.quorum.size() {
            heard.has_committed = true;
            self.lock = Some(Lock { view, value, approvers });
            out.push(Output::Say(Message::Commit(Commit { view, value })));
        } else if others >= self.quorum.blocking() {
            self.go_to(view.saturating_add(1), out);
        }
    }

    /// A quorum of commits is the decision, in whatever view this reviewer is.
    fn decide(&mut self, last: Commit, out: &mut Vec<Output>) {
        if self.decision.is_some() {
            return;
        }
        let Some(heard) = self.heard.get(&last.view) else { return };
        let same = heard.commits.iter().filter(|(_, commit)| **commit == last);
        let committers: BTreeSet<Reviewer> = same.map(|(reviewer, _)| *reviewer).collect();
        if committers.len() >= self.quorum.size() {
            self.learn(Decision { view: last.view, value: last.value, committers }, out);
        }
    }

    fn learn(&mut self, decision: Decision, out: &mut Vec<Output>) {
        let known =
            decision.committers.iter().filter(|reviewer| **reviewer < self.quorum.reviewers()).count();
        if self.decision.is_none() && known >= self.quorum.size() {
            self.decision = Some(decision.clone());
            out.push(Output::Decide(decision));
        }
    }

    /// More than f have left its view, so that an honest one has: it is not left behind.
    fn follow_others(&mut self, out: &mut Vec<Output>) {
        let mut views: Vec<View> = self.left.values().copied().filter(|view| *view > self.view).collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(view) = views.get(self.quorum.faults()).filter(|_| self.decision.is_none()) {
            self.go_to(*view, out);
        }
    }

    fn go_to(&mut self, view: View, out: &mut Vec<Output>) {
        if view > self.view {
            self.enter(view);
            let lock = self.lock.clone();
            out.push(Output::Say(Message::ViewChange(ViewChange { view, lock })));
        }
    }

    /// Goes to a view; the votes of those before it count no more. What was committed in them does.
    fn enter(&mut self, view: View) {
        self.view = view;
        self.heard.retain(|other, heard| *other >= view || !heard.commits.is_empty());
        for (_, heard) in self.heard.range_mut(..view) {
            heard.prepares.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Grounds;
    use super::*;

    fn four() -> Slot {
        Slot::new(Quorum::of(4).unwrap())
    }

    fn change(name: &str) -> Value {
        Value::Change(Digest::of(name.as_bytes()))
    }

    fn first(value: Value) -> Input {
        Input::Proposed(Proposal { view: 0, value, grounds: Grounds::First })
    }

    fn prepare(from: Reviewer, view: View, value: Value, vote: Vote) -> Input {
        Input::Said(from, Message::Prepare(Prepare { view, value, vote }))
    }

    fn commit(from: Reviewer, view: View, value: Value) -> Input {
        Input::Said(from, Message::Commit(Commit { view, value }))
    }

    fn said(out: &[Output]) -> Vec<Message> {
        out.iter()
            .filter_map(|out| if let Output::Say(message) = out { Some(message.clone()) } else { None })
            .collect()
    }

    fn play(slot: &mut Slot, inputs: impl IntoIterator<Item = Input>) -> Vec<Output> {
        inputs.into_iter().flat_map(|input| slot.step(input)).collect()
    }

    #[test]
    fn a_change_is_reviewed_once_and_voted_on_once() {
        let (mut slot, a) = (four(), Digest::of(b"a"));
        let out = slot.step(first(Value::Change(a)));
        assert_eq!(out, [Output::Acknowledge(0, Value::Change(a)), Output::Review(a)]);
        assert!(slot.step(first(Value::Change(a))).is_empty(), "the same proposal says nothing new");
        let out = slot.step(Input::Reviewed(a, Vote::Approve));
        assert_eq!(
            said(&out),
            [Message::Prepare(Prepare { view: 0, value: Value::Change(a), vote: Vote::Approve })]
        );
        assert!(slot.step(Input::Reviewed(a, Vote::Reject)).is_empty(), "the first opinion stays");
    }

    #[test]
    fn whoever_dissents_still_reports_what_a_quorum_approved() {
        let (mut slot, a) = (four(), change("a"));
        play(&mut slot, [first(a), Input::Reviewed(Digest::of(b"a"), Vote::Reject)]);
        let out = play(&mut slot, (1..4).map(|from| prepare(from, 0, a, Vote::Approve)));
        assert_eq!(said(&out), [Message::Commit(Commit { view: 0, value: a })]);
    }

    #[test]
    fn a_reviewer_counts_once_and_what_it_says_second_is_proof_against_it() {
        let (mut slot, a, b) = (four(), change("a"), change("b"));
        let out =
            play(&mut slot, [first(a)].into_iter().chain((0..5).map(|_| prepare(1, 0, a, Vote::Approve))));
        assert!(said(&out).is_empty());
        let out = slot.step(prepare(1, 0, b, Vote::Approve));
        assert!(matches!(out[..], [Output::Accuse(Fraud::Prepares(1, ..))]), "{out:?}");
        let out = play(&mut slot, (0..9).map(|_| commit(2, 0, a)));
        assert!(slot.decision().is_none() && out.is_empty());
        assert!(matches!(slot.step(commit(2, 0, b))[..], [Output::Accuse(Fraud::Commits(2, ..))]));
        assert!(slot.step(prepare(1, 0, b, Vote::Reject)).is_empty(), "once is enough");
        let out = play(&mut slot, [first(b), first(b)]);
        let leaves = Message::ViewChange(ViewChange { view: 1, lock: None });
        assert_eq!(out, [Output::Accuse(Fraud::Proposals(0, a, b)), Output::Say(leaves)]);
    }

    #[test]
    fn silence_and_abstention_help_no_quorum_and_make_none_smaller() {
        let (mut slot, a) = (four(), change("a"));
        let mut out = play(&mut slot, [first(a)]);
        out.extend(play(&mut slot, [prepare(1, 0, a, Vote::Approve), prepare(2, 0, a, Vote::Approve)]));
        assert!(said(&out).is_empty(), "two of four");
        out = slot.step(prepare(3, 0, a, Vote::Abstain));
        assert!(said(&out).is_empty());
        out = slot.step(prepare(0, 0, a, Vote::Abstain));
        assert_eq!(
            said(&out),
            [Message::ViewChange(ViewChange { view: 1, lock: None })],
            "no quorum is left"
        );
    }

    #[test]
    fn to_follow_is_no_approval_of_a_change_that_nobody_has_approved() {
        let (mut slot, a) = (four(), change("a"));
        let out = play(
            &mut slot,
            [first(a)].into_iter().chain((0..4).map(|from| prepare(from, 0, a, Vote::Follow))),
        );
        assert!(!said(&out).iter().any(|message| matches!(message, Message::Commit(_))), "{out:?}");
    }

    #[test]
    fn the_next_view_must_propose_what_a_quorum_has_approved() {
        let quorum = Quorum::of(4).unwrap();
        let (a, b) = (change("a"), change("b"));
        let lock = |view, value| Lock { view, value, approvers: (0..3).collect() };
        let left = |lock: Option<Lock>| ViewChange { view: 2, lock };
        let said = |locks: [Option<Lock>; 3]| locks.map(left).into_iter().enumerate().collect::<Vec<_>>();
        let after = |locks| Proposal::after(2, said(locks), Value::Nothing, quorum).unwrap();
        assert_eq!(after([None, None, None]).value, Value::Nothing);
        assert_eq!(after([Some(lock(0, a)), Some(lock(1, b)), None]).value, b, "the last one");
        let mut slot = four();
        let proposal = Proposal { value: Value::Nothing, ..after([Some(lock(0, a)), None, None]) };
        assert!(slot.step(Input::Proposed(proposal)).is_empty(), "what it must not propose is not taken");
        let out = slot.step(Input::Proposed(after([Some(lock(0, a)), None, None])));
        assert_eq!(
            super::tests::said(&out),
            [Message::Prepare(Prepare { view: 2, value: a, vote: Vote::Follow })]
        );
    }

    #[test]
    fn a_lock_that_does_not_hold_hides_no_other() {
        let quorum = Quorum::of(4).unwrap();
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
            assert_eq!(Proposal::after(2, said, Value::Nothing, quorum).unwrap().value, a);
            let said = vec![(0, left(Some(bad))), (1, left(None)), (2, left(None))];
            assert!(Proposal::after(2, said, Value::Nothing, quorum).is_none(), "two are no quorum");
        }
        let twice = vec![(1, left(None)), (1, left(None)), (1, left(None))];
        assert!(Proposal::after(2, twice, Value::Nothing, quorum).is_none(), "one reviewer is none either");
    }

    #[test]
    fn nothing_is_said_in_a_view_that_was_left() {
        let (mut slot, a) = (four(), change("a"));
        play(&mut slot, [first(a), Input::Expired(0)]);
        let late = (0..4).map(|from| prepare(from, 0, a, Vote::Approve));
        assert!(play(&mut slot, late).is_empty());
        assert!(slot.step(Input::Reviewed(Digest::of(b"a"), Vote::Approve)).is_empty());
        assert!(slot.step(Input::Expired(0)).is_empty() && slot.view() == 1, "views only go forward");
        let out = play(&mut slot, (0..3).map(|from| commit(from, 0, a)));
        assert!(
            matches!(&out[..], [Output::Decide(decision)] if decision.value == a),
            "decided all the same"
        );
    }

    #[test]
    fn a_liar_who_commits_to_something_else_keeps_nobody_from_a_decision() {
        let (mut slot, a) = (four(), change("a"));
        play(&mut slot, [commit(3, 0, Value::Nothing), commit(0, 0, a), commit(2, 0, a), Input::Expired(0)]);
        assert!(slot.decision().is_none());
        let proof = |committers: &[Reviewer]| Decision {
            view: 0,
            value: a,
            committers: committers.iter().copied().collect(),
        };
        assert!(slot.step(Input::Decided(proof(&[0, 2, 9]))).is_empty(), "a stranger proves nothing");
        let out = slot.step(Input::Decided(proof(&[0, 2, 3])));
        assert_eq!(out, [Output::Decide(proof(&[0, 2, 3]))]);
        assert!(slot.step(Input::Decided(proof(&[0, 1, 2]))).is_empty(), "once");
    }

    #[test]
    fn whoever_was_away_comes_back_into_a_view_that_a_quorum_has_gone_to() {
        let (mut slot, quorum) = (four(), Quorum::of(4).unwrap());
        let said = (0..3).map(|from| (from, ViewChange { view: 900, lock: None })).collect();
        let proposal = Proposal::after(900, said, Value::Nothing, quorum).unwrap();
        let out = slot.step(Input::Proposed(proposal));
        assert_eq!(out[0], Output::Acknowledge(900, Value::Nothing));
        assert_eq!(slot.view(), 900);
    }

    #[test]
    fn orchestrators_that_propose_without_end_are_not_remembered_without_end() {
        let (mut slot, quorum) = (four(), Quorum::of(4).unwrap());
        let mut reviews = 0;
        for view in 1..200 {
            let said = (0..3).map(|from| (from, ViewChange { view, lock: None })).collect();
            let value = change(&format!("change {view}"));
            let out = slot.step(Input::Proposed(Proposal::after(view, said, value, quorum).unwrap()));
            reviews += out.iter().filter(|out| matches!(out, Output::Review(_))).count();
            play(&mut slot, (0..4).map(|from| prepare(from, view, value, Vote::Reject)));
        }
        assert_eq!(reviews, REVIEWS_MAX);
        assert!(slot.heard.values().map(|heard| heard.prepares.len()).sum::<usize>() <= 4);
    }

    #[test]
    fn one_liar_pulls_nobody_into_another_view() {
        let mut slot = four();
        let leave = |from, view| Input::Said(from, Message::ViewChange(ViewChange { view, lock: None }));
        assert!(slot.step(leave(3, 9)).is_empty());
        let out = slot.step(leave(2, 1));
        assert_eq!(said(&out), [Message::ViewChange(ViewChange { view: 1, lock: None })]);
        assert!(slot.step(leave(3, 1000)).is_empty() && slot.step(commit(3, 1000, change("a"))).is_empty());
        assert!(
            slot.step(Input::Said(77, Message::Commit(Commit { view: 0, value: Value::Nothing }))).is_empty()
        );
    }
}
