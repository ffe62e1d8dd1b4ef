//! The reasons for refusing a message.

use thiserror::Error;

use super::message::{CHANGE_BYTES_MAX, NodeId, PACKET_BYTES_MAX};
use super::model_opinion::MODEL_BYTES_MAX;
use super::opinion::OPINION_BYTES_MAX;
use crypto::Digest;
use crypto::dsse::NotAnEnvelope;

/// The reason for refusing a packet.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Refused {
    /// The packet is too long to be read.
    #[error("the packet has {0} bytes, and the limit is {PACKET_BYTES_MAX}")]
    TooLong(usize),
    /// The text is not a packet.
    #[error("the packet cannot be read: {0}")]
    Unreadable(String),
    /// The text is not an envelope.
    #[error(transparent)]
    Envelope(#[from] NotAnEnvelope),
    /// A key is not in the roster.
    #[error("the key {0} is not in the roster")]
    Stranger(Digest),
    /// A key has signed twice.
    #[error("the key {0} has signed twice, and may sign only once")]
    Twice(Digest),
    /// A signature is wrong.
    #[error("the signature of {0:?} is wrong")]
    Forged(NodeId),
    /// The statement is signed for another repository.
    #[error("it is signed for another repository, {0}")]
    OtherChain(Digest),
    /// The statement is signed under another roster.
    #[error("it is signed under another roster, {0}")]
    OtherRoster(Digest),
    /// A party makes a statement that belongs to another part.
    #[error("{0:?} made a statement that only the other part may make")]
    NotItsPart(NodeId),
    /// The bytes differ from those that would be written.
    #[error("the statement is not in its canonical form, or has unknown content")]
    NotCanonical,
    /// The change is not the one that the statement names.
    #[error("the change has the digest {0}, but the statement names another")]
    OtherChange(Digest),
    /// The change is too long.
    #[error("the change has {0} bytes, and the limit is {CHANGE_BYTES_MAX}; split it into several changes")]
    LongChange(usize),
    /// The opinion is not the one that the vote names, or differs from the vote.
    #[error("the opinion has the digest {0}, but the vote names another, or differs from it")]
    OtherOpinion(Digest),
    /// The opinion is too long.
    #[error("the opinion has {0} bytes of text, and the limit is {OPINION_BYTES_MAX}")]
    LongOpinion(usize),
    /// The name of the model or of its endpoint is too long.
    #[error("the name of a model or an endpoint is longer than {MODEL_BYTES_MAX} bytes")]
    LongModel,
}

impl From<serde_json::Error> for Refused {
    fn from(why: serde_json::Error) -> Self {
        Self::Unreadable(why.to_string())
    }
}
