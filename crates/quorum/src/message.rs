//! The messages of orchestrators and reviewers, once their signatures have been checked.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::quorum::Quorum;
use crypto::Digest;

/// The size limit of a change, in bytes. Written as JSON, and with the locks of a hundred reviewers, such a change
/// fits into a packet however it must be escaped.
pub const CHANGE_BYTES_MAX: usize = 2 << 20;

/// The size limit of a packet that is read, in bytes. The longest packet of an honest party fits: a change of
/// [`CHANGE_BYTES_MAX`] in which escaping turns every byte into six, with the locks of a hundred reviewers.
pub const PACKET_BYTES_MAX: usize = 20 << 20;

/// The place of a reviewer in the list of all, from 0.
pub type Reviewer = usize;

/// A party to a decision, by its place in the list of its kind.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeId {
    /// A reviewer.
    Reviewer(Reviewer),
    /// An orchestrator.
    Orchestrator(usize),
}

/// The number of an attempt at one decision, from 0. Each view has an orchestrator of its own.
pub type View = u32;

/// A value that can be decided.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// The change with this digest is applied.
    Change(Digest),
    /// Nothing is applied. This is decided like a change, so that no late approval contradicts a rejection that was
    /// acted upon.
    Nothing,
}

/// The vote of a reviewer on a proposal.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// It has reviewed the change, and it may be applied.
    Approve,
    /// It has reviewed the change, and it must not be applied.
    Reject,
    /// It cannot judge the change. An abstention never helps a quorum; unlike silence, it is explicit, so no one
    /// waits for this reviewer.
    Abstain,
    /// Its own opinion is not needed: a quorum has approved before, or the proposal is to decide nothing.
    Follow,
}

/// A value that the orchestrator of a view proposes.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct LeaderProposal {
    /// The view.
    pub view: View,
    /// The value.
    pub value: Value,
    /// The grounds for proposing it.
    pub grounds: Grounds,
}

/// The grounds for proposing a value.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// It is the first view.
    First,
    /// A quorum has gone to this very view; these are their messages.
    Left(Vec<(Reviewer, ViewChange)>),
}

/// A reviewer's vote.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Prepare {
    /// The view of the vote.
    pub view: View,
    /// The value that is voted on.
    pub value: Value,
    /// The vote itself.
    pub vote: Vote,
}

/// The report of a reviewer that has seen a quorum approve in the view that it takes part in. It is the same for all
/// who send it, however they voted.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Commit {
    /// The view of the approval.
    pub view: View,
    /// The value that was approved.
    pub value: Value,
}

/// The announcement of a reviewer that it leaves all views before this one.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct ViewChange {
    /// The first view that it takes part in again.
    pub view: View,
    /// The last value that it has seen a quorum approve.
    pub lock: Option<Lock>,
}

/// A value that a quorum has approved, with its approvers.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Lock {
    /// The view of the approval.
    pub view: View,
    /// The value that was approved.
    pub value: Value,
    /// The reviewers whose signed votes for this value in this view are attached, to approve or to follow. Each
    /// counts once, and the signatures have been checked like that of the message itself.
    pub approvers: BTreeSet<Reviewer>,
}

/// A message that a reviewer sends to all.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotMessage {
    /// The reviewer's vote.
    Prepare(Prepare),
    /// The report that it has seen a quorum approve.
    Commit(Commit),
    /// The announcement that it leaves a view.
    ViewChange(ViewChange),
}

impl Lock {
    /// Returns true if there are enough known reviewers for a quorum.
    pub(super) fn holds(&self, quorum: Quorum) -> bool {
        let known = self.approvers.iter().filter(|reviewer| **reviewer < quorum.reviewers()).count();
        known >= quorum.size()
    }
}

impl LeaderProposal {
    /// Returns the proposal of a view's orchestrator after a quorum has gone to that view: the value that it must
    /// propose, or else `wish`. It must be made once per view and written down before it is sent, since other grounds
    /// may lead to another value. An orchestrator that keeps wishing for a change that a quorum cannot approve
    /// decides nothing; it should then wish for nothing.
    pub fn after(view: View, said: Vec<(Reviewer, ViewChange)>, wish: Value, quorum: Quorum) -> Option<Self> {
        let mut proposal = Self { view, value: wish, grounds: Grounds::Left(said) };
        proposal.value = proposal.forced(quorum).ok()?.unwrap_or(wish);
        Some(proposal)
    }

    /// Returns the value that must be proposed, or `Ok(None)` if the orchestrator may choose. Returns `Err` if the
    /// grounds are not sufficient.
    ///
    /// A message whose lock does not hold is left out; those of the other reviewers still count.
    pub(super) fn forced(&self, quorum: Quorum) -> Result<Option<Value>, ()> {
        let Grounds::Left(said) = &self.grounds else {
            let is_first = self.view == 0 && self.value != Value::Nothing;
            return if is_first { Ok(None) } else { Err(()) };
        };
        let mut reviewers = BTreeSet::new();
        let mut locks = Vec::new();
        for (reviewer, change) in said {
            if *reviewer >= quorum.reviewers() || change.view != self.view {
                continue;
            }
            if let Some(lock) = &change.lock {
                if lock.view >= self.view || !lock.holds(quorum) {
                    continue;
                }
                locks.push(lock);
            }
            reviewers.insert(*reviewer);
        }
        if self.view == 0 || reviewers.len() < quorum.size() {
            return Err(());
        }
        Ok(locks.into_iter().max_by_key(|lock| lock.view).map(|lock| lock.value))
    }
}
