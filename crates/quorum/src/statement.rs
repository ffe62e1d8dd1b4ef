//! Signed statements, and the data that travels with them.
//!
//! A signature covers one short statement with the place of the decision that it belongs to. The grounds of a
//! statement travel beside it, each under its own signature, so that no part can be left out or added unnoticed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::message::{
    CHANGE_BYTES_MAX, Commit, Grounds, LeaderProposal, Lock, NodeId, Prepare, Reviewer, SlotMessage, Value,
    View, ViewChange, Vote,
};
use super::model_opinion::ModelOpinion;
use super::refused::Refused;
use crypto::Digest;

/// The place of a decision in the order of all, from 1.
pub type Sequence = u64;

/// A change that is voted on: a text whose digest every reviewer computes itself.
#[derive(Clone, Debug)]
pub struct Change {
    text: Arc<str>,
    digest: Digest,
}

/// A statement to be signed, together with its place in the order of all decisions.
///
/// The fields are in alphabetical order, here and in all types below, so they are written in canonical form.
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
    /// An orchestrator wants a decision. From now on reviewers wait for the orchestrator whose turn it is, which may
    /// propose this value.
    Want {
        /// The value that it would propose itself.
        value: Value,
    },
    /// A reviewer has received a proposal. This is not a vote.
    Acknowledge {
        /// The value, with the digest as the reviewer computed it.
        value: Value,
        /// The view of the proposal.
        view: View,
    },
    /// A reviewer votes.
    Prepare {
        /// The digest of its opinion and the model behind it; `None` if it follows. Both travel beside the first
        /// message alone: the votes that a lock shows to others are short, however long an opinion is.
        opinion: Option<Digest>,
        /// The value that is voted on.
        value: Value,
        /// The view of the vote.
        view: View,
        /// The vote itself.
        vote: Vote,
    },
    /// A reviewer has seen a quorum approve.
    Commit(Commit),
    /// A reviewer goes to another view.
    ViewChange {
        /// The last value that it has seen a quorum approve, with the view.
        lock: Option<(View, Value)>,
        /// The view that it goes to.
        view: View,
    },
    /// A reviewer knows all decisions up to this place.
    Checkpoint {
        /// The last link of the chain of these decisions.
        head: Digest,
    },
}

/// A statement with its author's signature, which has been checked.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Signed<S> {
    /// The author's place in the list of reviewers; for a proposal or a wish, its place in the list of orchestrators.
    pub by: usize,
    /// The decision that it is about; for a checkpoint, the last one that it covers.
    pub sequence: Sequence,
    /// The statement itself.
    pub statement: Statement,
    /// The author's signature.
    pub signature: S,
}

/// A statement with its grounds.
#[derive(Clone, Debug)]
pub struct SignedMessage<S> {
    /// The statement.
    pub signed: Signed<S>,
    /// The change that is proposed, that is wanted, or that a quorum has approved.
    pub change: Option<Change>,
    /// The opinion of a vote's author, with the model behind it.
    pub opinion: Option<Arc<ModelOpinion>>,
    /// The grounds: for a proposal the view changes that begin its view, for a lock the votes behind it.
    pub grounds: Arc<[SignedMessage<S>]>,
}

/// A signer of statements; the caller provides it with a key.
///
/// To sign the same statement again gives the same signature.
pub trait Signer {
    /// The type of a signature.
    type Signature: Clone + fmt::Debug + Eq;

    /// Signs a statement for its place.
    fn sign(&self, sequence: Sequence, statement: &Statement) -> Self::Signature;
}

impl Change {
    /// Returns a change with this text.
    ///
    /// # Errors
    ///
    /// [`Refused::LongChange`] if the text has more than [`CHANGE_BYTES_MAX`] bytes.
    pub fn new(text: &str) -> Result<Self, Refused> {
        if text.len() > CHANGE_BYTES_MAX {
            return Err(Refused::LongChange(text.len()));
        }
        Ok(Self { text: text.into(), digest: Digest::new(text.as_bytes()) })
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the SHA-256 of the text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the value that stands for this change in a decision.
    pub fn value(&self) -> Value {
        Value::Change(self.digest)
    }
}

impl Statement {
    /// Returns the message that a reviewer sends with it in a decision, if it is a reviewer's. The lock of a view
    /// change is left out.
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
    /// Returns the author, which is a place in the list of reviewers or of orchestrators.
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

    /// Returns true if this is a vote for this value in this view, to approve it or to follow.
    fn approves(&self, of_view: View, of_value: Value) -> bool {
        let Statement::Prepare { view, value, vote, .. } = self.statement else { return false };
        matches!(vote, Vote::Approve | Vote::Follow) && view == of_view && value == of_value
    }
}

impl<S: Clone> SignedMessage<S> {
    /// Returns a message without grounds.
    pub fn alone(signed: Signed<S>) -> Self {
        Self { signed, change: None, opinion: None, grounds: Arc::new([]) }
    }

    /// Returns true if the message carries the change that a value names.
    pub(super) fn has(&self, value: Value) -> bool {
        match value {
            Value::Change(digest) => self.change.as_ref().is_some_and(|change| change.digest == digest),
            Value::Nothing => true,
        }
    }

    /// Reads a proposal, if this is one and it carries the change.
    pub(super) fn proposal(&self) -> Option<LeaderProposal> {
        let Statement::PrePrepare { view, value } = self.signed.statement else { return None };
        if !self.has(value) {
            return None;
        }
        let grounds = if view == 0 {
            Grounds::First
        } else {
            let left = self.grounds.iter().filter_map(|message| message.view_change(self.signed.sequence));
            Grounds::Left(left.collect())
        };
        Some(LeaderProposal { view, value, grounds })
    }

    /// Returns the statement with its proof alone, without the texts that are there to be read.
    pub fn bare(&self) -> Self {
        Self { change: None, opinion: None, ..self.clone() }
    }

    /// Reads a view change of this decision, with the votes behind its lock.
    pub(super) fn view_change(&self, sequence: Sequence) -> Option<(Reviewer, ViewChange)> {
        let Statement::ViewChange { view, lock } = self.signed.statement else { return None };
        if self.signed.sequence != sequence {
            return None;
        }
        let lock = lock.map(|(view, value)| {
            let votes = self.grounds.iter().map(|message| &message.signed);
            let approving = votes.filter(|vote| vote.sequence == sequence && vote.approves(view, value));
            Lock { view, value, approvers: approving.map(|vote| vote.by).collect() }
        });
        Some((self.signed.by, ViewChange { view, lock }))
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
