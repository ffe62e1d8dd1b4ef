//! How much may be said in one decision.

use thiserror::Error;

/// Longer packets are not read, in bytes. The longest that an honest one writes fits: a change of
/// [`CHANGE_BYTES_MAX`](super::CHANGE_BYTES_MAX) every byte of which is escaped by six, and the locks of a hundred
/// reviewers.
pub const PACKET_BYTES_MAX: usize = 20 << 20;

/// Longer names of models and endpoints are not read, in bytes, each.
pub const MODEL_BYTES_MAX: usize = 512;

/// Longer changes are not decided on, in bytes: written as JSON, and with the locks of a hundred reviewers, one fits into a
/// packet however it must be escaped.
pub const CHANGE_BYTES_MAX: usize = 2 << 20;

/// Longer notes and reasons are not read, in bytes.
pub const OPINION_BYTES_MAX: usize = 16 << 10;

/// A change that nobody could be sent.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the change has {0} bytes, and {CHANGE_BYTES_MAX} can be decided on; make several of it")]
pub struct TooLong(pub usize);
