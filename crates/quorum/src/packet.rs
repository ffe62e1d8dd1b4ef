//! The packets that travel between reviewers and orchestrators.

use std::collections::{BTreeMap, BTreeSet};

use super::message::{Commit, NodeId, Reviewer, Value, View};
use super::quorum::Quorum;
use super::statement::{Change, Sequence, Signed, SignedMessage, Statement};

/// The number of decisions that may be under way at once, counted from the last checkpoint. Messages about later
/// places are dropped, since their authors could fill the memory without end.
pub const WINDOW: Sequence = 64;

/// The number of decisions from one checkpoint to the next.
pub const CHECKPOINT_EVERY: Sequence = 16;

/// Returns the orchestrator whose turn it is to propose in a view of a decision. The turns rotate, so none comes
/// first everywhere.
pub fn leader(sequence: Sequence, view: View, orchestrators: usize) -> usize {
    let turn = sequence.wrapping_add(u64::from(view)) % orchestrators as u64;
    // The turn is less than the number of orchestrators.
    usize::try_from(turn).unwrap_or_default()
}

/// The number of one reviewer's commits that are kept for a decision by parties that do not know its view.
const COMMITS_MAX: usize = 16;

/// The number of proofs that are sent to a party that asks for missed decisions. It can ask again.
pub const PROOFS_AT_ONCE: usize = 16;

/// The recipients of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum To {
    /// All parties but the sender.
    All,
    /// All reviewers but the sender.
    Reviewers,
    /// One party.
    One(NodeId),
}

impl To {
    /// Returns true if a packet that `from` sends in this way goes to this party.
    pub fn reaches(self, from: NodeId, party: NodeId) -> bool {
        match self {
            Self::All => party != from,
            Self::Reviewers => party != from && matches!(party, NodeId::Reviewer(_)),
            Self::One(one) => party == one,
        }
    }
}

/// A packet.
#[derive(Clone, Debug)]
pub enum Packet<S> {
    /// A statement with its grounds.
    Message(SignedMessage<S>),
    /// A decision.
    Proof(Proof<S>),
    /// A checkpoint that a quorum has signed.
    Stable(Vec<Signed<S>>),
    /// The statement that the sender knows all decisions up to this one, and wants those after it. It is not signed:
    /// a liar only gets packets that every party may have.
    Have(Sequence),
}

impl<S> Packet<S> {
    /// Returns true if the packet proves its content. Messages need no proof, since they are counted by their
    /// recipients; the rest needs a quorum.
    pub fn is_proven(&self, quorum: Quorum) -> bool {
        match self {
            Self::Message(_) | Self::Have(_) => true,
            Self::Proof(proof) => proof.check(quorum).is_some(),
            Self::Stable(signed) => is_quorum_on_the_same(signed, quorum),
        }
    }
}

/// The commits of a quorum, which prove a decision to everyone.
#[derive(Clone, Debug)]
pub struct Proof<S> {
    /// The change that was decided, if the sender has it.
    pub change: Option<Change>,
    /// The commits to one value in one view of one decision, by reviewers who are a quorum.
    pub commits: Vec<Signed<S>>,
}

/// The content of a proof.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProvenDecision {
    /// The place of the decision.
    pub sequence: Sequence,
    /// The view in which it was made.
    pub view: View,
    /// The value that was decided.
    pub value: Value,
}

impl<S> Proof<S> {
    /// Reads a proof. Returns `None` if it is not a valid one.
    pub fn check(&self, quorum: Quorum) -> Option<ProvenDecision> {
        let first = self.commits.first()?;
        let Statement::Commit(Commit { view, value }) = first.statement else { return None };
        if !is_quorum_on_the_same(&self.commits, quorum) {
            return None;
        }
        Some(ProvenDecision { sequence: first.sequence, view, value })
    }
}

/// Returns true if reviewers who are a quorum make the same statement about the same place.
pub(super) fn is_quorum_on_the_same<S>(signed: &[Signed<S>], quorum: Quorum) -> bool {
    let Some(first) = signed.first() else { return false };
    if signed.iter().any(|other| other.sequence != first.sequence || other.statement != first.statement) {
        return false;
    }
    let authors: BTreeSet<Reviewer> =
        signed.iter().map(|signed| signed.by).filter(|by| *by < quorum.reviewers()).collect();
    authors.len() >= quorum.size()
}

/// The first commit of each reviewer in each view.
#[derive(Clone, Debug)]
pub(super) struct Commits<S>(BTreeMap<Reviewer, BTreeMap<View, Signed<S>>>);

impl<S> Default for Commits<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Clone> Commits<S> {
    /// Keeps a commit, if it is its author's first in that view.
    pub(super) fn keep(&mut self, view: View, signed: &Signed<S>) {
        self.0.entry(signed.by).or_default().entry(view).or_insert_with(|| signed.clone());
    }

    /// Keeps a commit, and drops its author's earliest one if there are too many.
    pub(super) fn keep_latest(&mut self, view: View, signed: &Signed<S>) {
        self.keep(view, signed);
        let own = self.0.entry(signed.by).or_default();
        if own.len() > COMMITS_MAX {
            own.pop_first();
        }
    }

    /// Returns the first commit of a reviewer in a view.
    pub(super) fn first(&self, view: View, by: Reviewer) -> Option<&Signed<S>> {
        self.0.get(&by)?.get(&view)
    }

    /// Returns all commits to a value in a view.
    pub(super) fn to(&self, commit: Commit) -> Vec<Signed<S>> {
        let of_view = self.0.values().filter_map(|own| own.get(&commit.view));
        of_view.filter(|signed| signed.statement == Statement::Commit(commit)).cloned().collect()
    }
}
