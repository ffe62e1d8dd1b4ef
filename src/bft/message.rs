//! What orchestrators and reviewers say to each other, once its signatures have been checked.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::quorum::Quorum;
use crate::crypto::Digest;

/// A reviewer's place in the list of all, from 0.
pub type Reviewer = usize;

/// The attempts at one decision, from 0; each has an orchestrator of its own.
pub type View = u32;

/// What can be decided.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// The change with this digest is applied.
    Change(Digest),
    /// Nothing is. Decided like a change, so that no late approval contradicts a rejection that was acted upon.
    Nothing,
}

/// What a reviewer says to a proposal.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// It has reviewed the change, and it may be applied.
    Approve,
    /// It has reviewed the change, and it must not be applied.
    Reject,
    /// It cannot say. Never helps a quorum; unlike silence it says so, and nobody waits for it.
    Abstain,
    /// Its own opinion is not asked: a quorum has approved before, or the proposal is to decide nothing.
    Follow,
}

/// A value that the orchestrator of a view proposes.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct LeaderProposal {
    /// The view.
    pub view: View,
    /// The value.
    pub value: Value,
    /// Why it may propose this.
    pub grounds: Grounds,
}

/// Why a value may be proposed.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// It is the first view.
    First,
    /// A quorum has gone to this very view, and this is what each of them said.
    Left(Vec<(Reviewer, ViewChange)>),
}

/// A reviewer's vote.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Prepare {
    /// In this view.
    pub view: View,
    /// On this value.
    pub value: Value,
    /// What it says.
    pub vote: Vote,
}

/// A reviewer has seen a quorum approve in the view that it takes part in. The same for all who say it, whatever they
/// voted.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Commit {
    /// In this view.
    pub view: View,
    /// This value.
    pub value: Value,
}

/// A reviewer leaves all views before this one.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct ViewChange {
    /// The first view that it takes part in again.
    pub view: View,
    /// The last value that it has seen a quorum approve.
    pub lock: Option<Lock>,
}

/// A value that a quorum has approved.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Lock {
    /// In this view.
    pub view: View,
    /// This value.
    pub value: Value,
    /// Those whose signed votes for this value in this view are attached, to approve or to follow; each counts once, and
    /// their signatures have been checked like the message's own.
    pub approvers: BTreeSet<Reviewer>,
}

/// What a reviewer sends to all.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotMessage {
    /// Its vote.
    Prepare(Prepare),
    /// That it has seen a quorum approve.
    Commit(Commit),
    /// That it leaves a view.
    ViewChange(ViewChange),
}

impl Lock {
    /// Whether this many known reviewers are a quorum.
    pub(super) fn holds(&self, quorum: Quorum) -> bool {
        let known = self.approvers.iter().filter(|reviewer| **reviewer < quorum.reviewers()).count();
        known >= quorum.size()
    }
}

impl LeaderProposal {
    /// What the orchestrator of a view proposes when a quorum has gone to it: what it must, or else `wish`. To be made once
    /// in a view, and written down before it is sent: with other grounds it may be another. An orchestrator that wishes
    /// for a change again and again that a quorum cannot approve decides nothing; it wishes for nothing then.
    #[must_use]
    pub fn after(view: View, said: Vec<(Reviewer, ViewChange)>, wish: Value, quorum: Quorum) -> Option<Self> {
        let mut proposal = Self { view, value: wish, grounds: Grounds::Left(said) };
        proposal.value = proposal.forced(quorum).ok()?.unwrap_or(wish);
        Some(proposal)
    }

    /// Returns what must be proposed where anything must: `Ok(None)` leaves the orchestrator the choice. `Err` if the
    /// grounds are none.
    ///
    /// A message whose lock does not hold is left out, and those of others count all the same.
    pub(super) fn forced(&self, quorum: Quorum) -> Result<Option<Value>, ()> {
        let Grounds::Left(said) = &self.grounds else {
            let is_first = self.view == 0 && self.value != Value::Nothing;
            return if is_first { Ok(None) } else { Err(()) };
        };
        let counts = |(reviewer, change): &&(Reviewer, ViewChange)| {
            let holds = |lock: &Lock| lock.view < self.view && lock.holds(quorum);
            *reviewer < quorum.reviewers()
                && change.view == self.view
                && change.lock.as_ref().is_none_or(holds)
        };
        let counted: Vec<&(Reviewer, ViewChange)> = said.iter().filter(counts).collect();
        let reviewers: BTreeSet<Reviewer> = counted.iter().map(|(reviewer, _)| *reviewer).collect();
        if self.view == 0 || reviewers.len() < quorum.size() {
            return Err(());
        }
        let locks = counted.iter().filter_map(|(_, change)| change.lock.as_ref());
        Ok(locks.max_by_key(|lock| lock.view).map(|lock| lock.value))
    }
}
