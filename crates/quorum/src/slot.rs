//! One reviewer's part in one decision.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Decision, Fraud, Phase, SlotAction, SlotInput};
use super::message::{
    Commit, LeaderProposal, Lock, Prepare, Reviewer, SlotMessage, Value, View, ViewChange, Vote,
};
use super::quorum::Quorum;
use crypto::Digest;

/// The number of views ahead of a reviewer's own whose votes and commits still count. Messages of later views are
/// dropped, since their authors could fill the memory without end. A reviewer that was away for longer learns of a
/// decision by its proof, and of a view by a proposal.
const VIEWS_AHEAD_MAX: View = 16;

/// The number of changes that a reviewer looks at for one decision. A review costs far more than a message.
const REVIEWS_MAX: usize = 4;

/// A proposal that a reviewer has accepted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct AcceptedProposal {
    value: Value,
    /// Whether reviewers follow it, whatever they think of it.
    is_followed: bool,
}

/// The messages of one view.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct ViewMessages {
    accepted: Option<AcceptedProposal>,
    prepares: BTreeMap<Reviewer, Prepare>,
    commits: BTreeMap<Reviewer, Commit>,
    has_prepared: bool,
    has_committed: bool,
    /// The reviewers that have been accused, each with true for commits and false for votes. The flag below is for
    /// the orchestrator.
    accused: BTreeSet<(bool, Reviewer)>,
    has_accused: bool,
}

/// One reviewer's part in one decision.
///
/// It sends one message of each kind in each view, and none in a view that it has left.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Slot {
    quorum: Quorum,
    view: View,
    heard: BTreeMap<View, ViewMessages>,
    /// The vote of this reviewer on each change.
    opinions: BTreeMap<Digest, Vote>,
    asked: BTreeSet<Digest>,
    /// The last value that it has seen a quorum approve.
    lock: Option<Lock>,
    /// The highest view that each reviewer has gone to.
    left: BTreeMap<Reviewer, View>,
    decision: Option<Decision>,
}

impl Slot {
    /// Returns a decision with this quorum, of which nothing is known yet.
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

    /// Returns the view that this reviewer takes part in.
    pub fn view(&self) -> View {
        self.view
    }

    /// Returns the phase of its view, or `None` once there is a decision.
    pub fn phase(&self) -> Option<Phase> {
        if self.decision.is_some() {
            return None;
        }
        let heard = self.heard.get(&self.view).filter(|heard| heard.accepted.is_some());
        let here = self.left.values().filter(|view| **view >= self.view).count();
        Some(match heard {
            None if self.view > 0 && here < self.quorum.size() => Phase::ViewChange,
            None => Phase::PrePrepare,
            Some(heard) if !heard.has_committed => Phase::Prepare,
            Some(_) => Phase::Commit,
        })
    }

    /// Returns true if votes of this view count.
    pub(super) fn hears_votes(&self, view: View) -> bool {
        view >= self.view && self.is_near(view)
    }

    /// Returns the changes on which an opinion is awaited.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Digest> {
        let is_open = self.decision.is_none();
        self.asked.iter().filter(move |digest| is_open && !self.opinions.contains_key(digest)).copied()
    }

    /// Returns the decision, once there is one.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// Returns the last value that this reviewer has seen a quorum approve.
    pub fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// Takes an input. The same inputs give the same outputs; an input that makes no sense is dropped.
    pub fn step(&mut self, input: SlotInput) -> Vec<SlotAction> {
        let mut out = Vec::new();
        match input {
            SlotInput::Proposed(proposal) => self.accept(&proposal, &mut out),
            // A review is an opinion, and to follow is not one.
            SlotInput::Reviewed(digest, vote) if vote != Vote::Follow => {
                self.opinions.entry(digest).or_insert(vote);
                self.vote(&mut out);
            }
            SlotInput::Said(from, message) if from < self.quorum.reviewers() => {
                self.hear(from, &message, &mut out);
            }
            SlotInput::Expired(view) if view == self.view && self.decision.is_none() => {
                self.go_to(view.saturating_add(1), &mut out);
            }
            SlotInput::Decided(decision) => self.learn(decision, &mut out),
            SlotInput::Reviewed(..) | SlotInput::Said(..) | SlotInput::Expired(_) => {}
        }
        out
    }

    pub(super) fn is_near(&self, view: View) -> bool {
        view <= self.view.saturating_add(VIEWS_AHEAD_MAX)
    }

    fn accept(&mut self, proposal: &LeaderProposal, out: &mut Vec<SlotAction>) {
        let LeaderProposal { view, value, .. } = *proposal;
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
                out.push(SlotAction::Accuse(Fraud::Proposals(view, accepted.value, value)));
                // This view cannot be trusted: others may have accepted the other proposal.
                self.go_to(view.saturating_add(1), out);
            }
            return;
        }
        heard.accepted =
            Some(AcceptedProposal { value, is_followed: forced.is_some() || value == Value::Nothing });
        self.enter(view);
        out.push(SlotAction::Acknowledge(view, value));
        self.vote(out);
        self.count(view, out);
    }

    /// Votes in its view, if it can and has not voted yet.
    fn vote(&mut self, out: &mut Vec<SlotAction>) {
        if self.decision.is_some() {
            return;
        }
        let Some(heard) = self.heard.get_mut(&self.view) else { return };
        if heard.has_prepared {
            return;
        }
        let Some(AcceptedProposal { value, is_followed }) = heard.accepted else { return };
        let vote = match value {
            Value::Change(digest) if !is_followed => match self.opinions.get(&digest) {
                Some(vote) => *vote,
                None if self.asked.contains(&digest) => return,
                None if self.asked.len() < REVIEWS_MAX => {
                    self.asked.insert(digest);
                    return out.push(SlotAction::Review(digest));
                }
                // With an abstention, others need not wait for this reviewer.
                None => Vote::Abstain,
            },
            Value::Change(_) | Value::Nothing => Vote::Follow,
        };
        heard.has_prepared = true;
        out.push(SlotAction::Say(SlotMessage::Prepare(Prepare { view: self.view, value, vote })));
    }

    fn hear(&mut self, from: Reviewer, message: &SlotMessage, out: &mut Vec<SlotAction>) {
        match *message {
            SlotMessage::Prepare(prepare) if self.hears_votes(prepare.view) => {
                let heard = self.heard.entry(prepare.view).or_default();
                let first = *heard.prepares.entry(from).or_insert(prepare);
                if first != prepare && heard.accused.insert((false, from)) {
                    out.push(SlotAction::Accuse(Fraud::Prepares(from, first, prepare)));
                }
                self.count(prepare.view, out);
            }
            SlotMessage::Commit(commit) if self.is_near(commit.view) => {
                let heard = self.heard.entry(commit.view).or_default();
                let first = *heard.commits.entry(from).or_insert(commit);
                if first != commit && heard.accused.insert((true, from)) {
                    out.push(SlotAction::Accuse(Fraud::Commits(from, first, commit)));
                }
                self.decide(commit, out);
            }
            SlotMessage::ViewChange(ViewChange { view, .. }) => {
                let highest = self.left.entry(from).or_insert(view);
                *highest = view.max(*highest);
                self.follow_others(out);
            }
            SlotMessage::Prepare(_) | SlotMessage::Commit(_) => {}
        }
    }

    /// Counts the votes of its view, after a vote or the proposal has come.
    fn count(&mut self, view: View, out: &mut Vec<SlotAction>) {
        if view != self.view || self.decision.is_some() {
            return;
        }
        let Some(heard) = self.heard.get_mut(&view) else { return };
        if heard.has_committed {
            return;
        }
        let Some(AcceptedProposal { value, is_followed }) = heard.accepted else { return };
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
            out.push(SlotAction::Say(SlotMessage::Commit(Commit { view, value })));
        } else if others >= self.quorum.blocking() {
            self.go_to(view.saturating_add(1), out);
        }
    }

    /// Decides if there is a quorum of commits, whatever view this reviewer is in.
    fn decide(&mut self, last: Commit, out: &mut Vec<SlotAction>) {
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

    fn learn(&mut self, decision: Decision, out: &mut Vec<SlotAction>) {
        let known =
            decision.committers.iter().filter(|reviewer| **reviewer < self.quorum.reviewers()).count();
        if self.decision.is_none() && known >= self.quorum.size() {
            self.decision = Some(decision.clone());
            out.push(SlotAction::Decide(decision));
        }
    }

    /// Follows the others once more than f have left its view. At least one of them is honest, so this reviewer must
    /// not be left behind.
    fn follow_others(&mut self, out: &mut Vec<SlotAction>) {
        if self.decision.is_some() {
            return;
        }
        let mut views: Vec<View> = self.left.values().copied().filter(|view| *view > self.view).collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(view) = views.get(self.quorum.faults()) {
            self.go_to(*view, out);
        }
    }

    fn go_to(&mut self, view: View, out: &mut Vec<SlotAction>) {
        if view > self.view {
            self.enter(view);
            let lock = self.lock.clone();
            out.push(SlotAction::Say(SlotMessage::ViewChange(ViewChange { view, lock })));
        }
    }

    /// Enters a view. Votes of earlier views no longer count, but their commits do.
    fn enter(&mut self, view: View) {
        self.view = view;
        self.heard.retain(|other, heard| *other >= view || !heard.commits.is_empty());
        for (_, heard) in self.heard.range_mut(..view) {
            heard.prepares.clear();
        }
    }
}

#[cfg(test)]
mod tests;
