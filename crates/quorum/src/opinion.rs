//! The opinion of a reviewer on a change.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::message::Vote;
use crypto::Digest;

/// The size limit of notes and reasons, in bytes.
pub const OPINION_BYTES_MAX: usize = 16 << 10;

/// The opinion of a reviewer on a change.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opinion {
    /// The change may be applied.
    Approve {
        /// The confidence in hundredths of a per cent, 0 to 10000. It is a figure for people, and never a weight: a
        /// liar is always sure.
        confidence: u16,
        /// The points that the reviewer looked at.
        notes: String,
    },
    /// The change must not be applied.
    Reject {
        /// The reason.
        reason: String,
        /// The severity of the fault.
        severity: Severity,
    },
    /// The reviewer cannot judge the change.
    Abstain {
        /// The reason.
        reason: String,
    },
}

/// The damage that applying a change would do.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A blemish.
    Low,
    /// A fault in rare cases.
    Medium,
    /// A fault.
    High,
    /// Damage, loss of data or a security hole.
    Critical,
}

impl Opinion {
    /// Returns the SHA-256 of the canonical JSON.
    ///
    /// # Panics
    ///
    /// Never: every opinion has a JSON form.
    pub fn digest(&self) -> Digest {
        Digest::new(&serde_json::to_vec(self).expect("strings and numbers have a JSON form"))
    }

    /// Returns the length of the text, in bytes.
    pub fn text_len(&self) -> usize {
        match self {
            Self::Approve { notes: text, .. }
            | Self::Reject { reason: text, .. }
            | Self::Abstain { reason: text } => text.len(),
        }
    }

    /// Returns the vote that the opinion counts as.
    pub fn vote(&self) -> Vote {
        match self {
            Self::Approve { .. } => Vote::Approve,
            Self::Reject { .. } => Vote::Reject,
            Self::Abstain { .. } => Vote::Abstain,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}
