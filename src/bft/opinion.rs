//! What a reviewer thinks of a change.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::message::Vote;
use crate::crypto::Digest;

/// What a reviewer thinks of a change.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opinion {
    /// It may be applied.
    Approve {
        /// How sure it is, in hundredths of a per cent, 0 to 10000. A figure for people, and never a weight: a liar is always
        /// sure.
        confidence: u16,
        /// What it looked at.
        notes: String,
    },
    /// It must not be applied.
    Reject {
        /// Why.
        reason: String,
        /// How bad it is.
        severity: Severity,
    },
    /// It cannot say.
    Abstain {
        /// Why.
        reason: String,
    },
}

/// How bad it would be to apply a change.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A blemish.
    Low,
    /// A fault in rare cases.
    Medium,
    /// A fault.
    High,
    /// Damage, loss of data or a hole in the security.
    Critical,
}

impl Opinion {
    /// The SHA-256 of its canonical JSON.
    ///
    /// # Panics
    ///
    /// Never: it has a JSON form.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::new(&serde_json::to_vec(self).expect("strings and numbers have a JSON form"))
    }

    /// How long its text is, in bytes.
    #[must_use]
    pub fn text_len(&self) -> usize {
        match self {
            Self::Approve { notes: text, .. }
            | Self::Reject { reason: text, .. }
            | Self::Abstain { reason: text } => text.len(),
        }
    }

    /// What it counts as.
    #[must_use]
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
