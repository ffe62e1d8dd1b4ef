//! Limits on the messages of one decision.

use thiserror::Error;

/// The size limit of a packet that is read, in bytes. The longest packet of an honest party fits: a change of
/// [`CHANGE_BYTES_MAX`](super::CHANGE_BYTES_MAX) in which escaping turns every byte into six, with the locks of a
/// hundred reviewers.
pub const PACKET_BYTES_MAX: usize = 20 << 20;

/// The size limit of the name of a model, and of an endpoint, in bytes.
pub const MODEL_BYTES_MAX: usize = 512;

/// The size limit of a change, in bytes. Written as JSON, and with the locks of a hundred reviewers, such a change
/// fits into a packet however it must be escaped.
pub const CHANGE_BYTES_MAX: usize = 2 << 20;

/// The size limit of notes and reasons, in bytes.
pub const OPINION_BYTES_MAX: usize = 16 << 10;

/// A change that is too long to be sent.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the change has {0} bytes, and the limit is {CHANGE_BYTES_MAX}; split it into several changes")]
pub struct TooLong(pub usize);
