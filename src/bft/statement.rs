//! What is signed, and what travels with it.
//!
//! A signature covers one short statement with the place of the decision that it belongs to. What a statement rests on
//! travels beside it, each part under its own signature, so that a part can be left out or added by nobody unnoticed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::limits::{CHANGE_BYTES_MAX, TooLong};
use super::message::{
    Commit, Grounds, LeaderProposal, Lock, Prepare, Reviewer, SlotMessage, Value, View, ViewChange, Vote,
};
use super::model_opinion::ModelOpinion;
use super::node_id::NodeId;
use crate::crypto::Digest;

/// The place of a decision in the order of all, from 1.
pub type Sequence = u64;

/// A change that is voted on: a text of which every reviewer takes the digest itself.
#[derive(Clone, Debug)]
pub struct Change {
    text: Arc<str>,
    digest: Digest,
}

/// What is signed; the place in the order of all decisions is signed with it.
///
/// The fields are in alphabetical order, here and in all that is in it: so they are written in canonical form.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statement {
    /// An orchestrator proposes a value in a view of its own.
    PrePrepare {
        /// The value.
        value: Value,
        /// The view.
        view: View,
    },
    /// An orchestrator wants a decision; whoever should propose one is waited for from now on, and may propose this.
    Want {
        /// What it would propose itself.
        value: Value,
    },
    /// A reviewer has a proposal. Not a vote.
    Acknowledge {
        /// The value, as the reviewer has taken its digest.
        value: Value,
        /// Of this view.
        view: View,
    },
    /// A reviewer votes.
    Prepare {
        /// The digest of what it thinks, and on which model; nothing, if it follows. Both travel beside the first message alone:
        /// what a lock shows to others is short, however much there is to say.
        opinion: Option<Digest>,
        /// On this value.
        value: Value,
        /// In this view.
        view: View,
        /// What it says.
        vote: Vote,
    },
    /// A reviewer has seen a quorum approve.
    Commit(Commit),
    /// A reviewer goes to a view.
    ViewChange {
        /// The last value that it has seen a quorum approve, and in which view.
        lock: Option<(View, Value)>,
        /// To this one.
        view: View,
    },
    /// A reviewer knows all decisions up to this place.
    Checkpoint {
        /// The last link of their chain.
        head: Digest,
    },
}

/// A statement with its author's signature, which has been checked.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Signed<S> {
    /// The author's place in the list of reviewers; of a proposal and a wish, in the list of orchestrators.
    pub by: usize,
    /// The decision that it is about; of a checkpoint, the last one.
    pub sequence: Sequence,
    /// What is said.
    pub statement: Statement,
    /// The author's signature.
    pub signature: S,
}

/// A statement and what it rests on.
#[derive(Clone, Debug)]
pub struct SignedMessage<S> {
    /// The statement.
    pub signed: Signed<S>,
    /// The change that is proposed, wanted, or that a quorum has approved.
    pub change: Option<Change>,
    /// Of a vote, what its author thinks, and on which model.
    pub opinion: Option<Arc<ModelOpinion>>,
    /// Why a view begins with this proposal: view changes. Why a reviewer is locked: votes.
    pub grounds: Arc<[SignedMessage<S>]>,
}

/// Where statements are signed: with a key, which is the edge's.
///
/// Signing the same again gives the same signature.
pub trait Signer {
    /// A signature.
    type Signature: Clone + fmt::Debug + Eq;

    /// Signs.
    fn sign(&self, sequence: Sequence, statement: &Statement) -> Self::Signature;
}

impl Change {
    /// A change with this text.
    ///
    /// # Errors
    ///
    /// [`TooLong`] if it has more than [`CHANGE_BYTES_MAX`] bytes.
    pub fn new(text: &str) -> Result<Self, TooLong> {
        if text.len() > CHANGE_BYTES_MAX {
            return Err(TooLong(text.len()));
        }
        Ok(Self { text: text.into(), digest: Digest::new(text.as_bytes()) })
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its SHA-256.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// As what is decided.
    #[must_use]
    pub fn value(&self) -> Value {
        Value::Change(self.digest)
    }
}

impl Statement {
    /// Returns what a reviewer says with it in a decision, if it is a reviewer's. Of a view change, the lock is left out.
    #[must_use]
    pub fn message(&self) -> Option<SlotMessage> {
        match self {
            Self::Prepare { view, value, vote, .. } => {
                Some(SlotMessage::Prepare(Prepare { view: *view, value: *value, vote: *vote }))
            }
            Self::Commit(commit) => Some(SlotMessage::Commit(*commit)),
            Self::ViewChange { view, .. } => {
                Some(SlotMessage::ViewChange(ViewChange { view: *view, lock: None }))
            }
            Self::PrePrepare { .. }
            | Self::Want { .. }
            | Self::Acknowledge { .. }
            | Self::Checkpoint { .. } => None,
        }
    }
}

impl<S> Signed<S> {
    /// Whose statement it is: its author's place is in the list of these.
    #[must_use]
    pub fn author(&self) -> NodeId {
        match self.statement {
            Statement::PrePrepare { .. } | Statement::Want { .. } => NodeId::Orchestrator(self.by),
            Statement::Acknowledge { .. }
            | Statement::Prepare { .. }
            | Statement::Commit(_)
            | Statement::ViewChange { .. }
            | Statement::Checkpoint { .. } => NodeId::Reviewer(self.by),
        }
    }
}

impl<S: Clone> SignedMessage<S> {
    /// A statement that rests on nothing else.
    #[must_use]
    pub fn alone(signed: Signed<S>) -> Self {
        Self { signed, change: None, opinion: None, grounds: Arc::new([]) }
    }

    /// Whether the change that a value names is in it.
    pub(super) fn has(&self, value: Value) -> bool {
        match value {
            Value::Change(digest) => self.change.as_ref().is_some_and(|change| change.digest == digest),
            Value::Nothing => true,
        }
    }

    /// Reads a proposal, if it is one and the change is in it.
    pub(super) fn proposal(&self) -> Option<LeaderProposal> {
        let Statement::PrePrepare { view, value } = self.signed.statement else { return None };
        let left = || self.grounds.iter().filter_map(|message| message.view_change(self.signed.sequence));
        let grounds = match view {
            0 => Grounds::First,
            _ => Grounds::Left(left().collect()),
        };
        self.has(value).then_some(LeaderProposal { view, value, grounds })
    }

    /// The statement with what proves it, and without what is there to be read.
    #[must_use]
    pub fn bare(&self) -> Self {
        Self { change: None, opinion: None, ..self.clone() }
    }

    /// Reads a view change of this decision, with the votes behind its lock.
    pub(super) fn view_change(&self, sequence: Sequence) -> Option<(Reviewer, ViewChange)> {
        let Statement::ViewChange { view, lock } = self.signed.statement else { return None };
        let approver = |message: &Self, lock: (View, Value)| {
            let Some(SlotMessage::Prepare(Prepare { view, value, vote })) =
                message.signed.statement.message()
            else {
                return None;
            };
            let counts = matches!(vote, Vote::Approve | Vote::Follow)
                && (view, value) == lock
                && message.signed.sequence == sequence;
            counts.then_some(message.signed.by)
        };
        let lock = lock.map(|lock| {
            let approvers = self.grounds.iter().filter_map(|message| approver(message, lock)).collect();
            Lock { view: lock.0, value: lock.1, approvers }
        });
        (self.signed.sequence == sequence).then_some((self.signed.by, ViewChange { view, lock }))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(digest) => write!(f, "{digest}"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}
