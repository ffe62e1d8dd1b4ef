//! Why a message is refused.

use thiserror::Error;

use super::limits::{MODEL_BYTES_MAX, OPINION_BYTES_MAX, PACKET_BYTES_MAX, TooLong};
use super::node_id::NodeId;
use crate::crypto::Digest;
use crate::crypto::dsse::NotAnEnvelope;

/// Why a packet is not read.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Refused {
    /// It is too long to be read.
    #[error("the packet has {0} bytes, and {PACKET_BYTES_MAX} are read at most")]
    TooLong(usize),
    /// It is no packet.
    #[error("the packet cannot be read: {0}")]
    Unreadable(String),
    /// Its envelope is none.
    #[error(transparent)]
    Envelope(#[from] NotAnEnvelope),
    /// A key is not in the roster.
    #[error("the roster has no key {0}")]
    Stranger(Digest),
    /// A key is there twice.
    #[error("the key {0} has signed twice, and counts once")]
    Twice(Digest),
    /// A signature is wrong.
    #[error("the signature of {0:?} is wrong")]
    Forged(NodeId),
    /// It is signed for another repository.
    #[error("it is signed for the repository {0}, and this is another")]
    OtherChain(Digest),
    /// It is signed under another roster.
    #[error("it is signed under the roster {0}, and this is another")]
    OtherRoster(Digest),
    /// Somebody says what is another's to say.
    #[error("{0:?} says what others have to say")]
    NotItsPart(NodeId),
    /// The bytes are not those that would be written.
    #[error("the statement is not in its canonical form, or has something that nobody knows")]
    NotCanonical,
    /// Its change is not the one that is named.
    #[error("the change has the digest {0}, and another is named")]
    OtherChange(Digest),
    /// Its change is too long.
    #[error(transparent)]
    LongChange(#[from] TooLong),
    /// Its opinion is not the one that is named, or says something else than the vote.
    #[error("the opinion has the digest {0}, and another is named")]
    OtherOpinion(Digest),
    /// Its opinion is too long.
    #[error("the opinion has {0} bytes of text, and {OPINION_BYTES_MAX} are read at most")]
    LongOpinion(usize),
    /// The name of its model or its endpoint is too long.
    #[error("a name of a model or an endpoint is longer than {MODEL_BYTES_MAX} bytes")]
    LongModel,
}
