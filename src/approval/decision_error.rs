//! What can be wrong with decisions.

use std::path::PathBuf;

use thiserror::Error;

use super::not_in_ledger::NotInLedger;
use crate::bft::local_cluster::ClusterError;
use crate::bft::{Refused, RosterFault, Sequence, TooLong};
use crate::core::{ExitCode, is_unusable};
use crate::crypto::{Digest, NotAKey};
use crate::journal::JournalError;
use crate::repository::RepositoryError;

/// Why something cannot be decided, kept or proven.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder for keys has some.
    #[error("`{}` is there already; keys are never written over: give another place", .0.display())]
    KeysAreThere(PathBuf),
    /// A key can be read by others.
    #[error("`{}` can be read by others than its owner; `chmod 600` it, or make new keys if somebody has", .0.display())]
    OpenKey(PathBuf),
    /// A key is none.
    #[error("`{}`: {why}", path.display())]
    Key {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        why: NotAKey,
    },
    /// A key is not the one of its seat.
    #[error("`{}` is not the key that the roster has for `{name}`", path.display())]
    OtherKey {
        /// Where.
        path: PathBuf,
        /// Whose it should be.
        name: String,
    },
    /// The keys have signed elsewhere, where nobody here could know of it.
    #[error(
        "these keys have decided in {other}: `{}`; nothing here knows what they have signed there, so that they go on as they began",
        place.display()
    )]
    Placement {
        /// What is there.
        place: PathBuf,
        /// Where they have.
        other: &'static str,
    },
    /// A branch carries a decision of these keys that is not in their ledger.
    #[error(transparent)]
    NotInLedger(Box<NotInLedger>),
    /// It was said before that the ledger starts elsewhere.
    #[error(
        "this ledger starts at decision {known}, which was said once and for all; --ledger-starts-at {given} cannot change it"
    )]
    StartsElsewhere {
        /// What was said before.
        known: Sequence,
        /// What is said now.
        given: Sequence,
    },
    /// No secret key of the roster is in a folder, so that there is nothing to take elsewhere.
    #[error("`{}` has no key of its roster; there is nothing to export", .0.display())]
    NoKeys(PathBuf),
    /// A ledger is in use.
    #[error("`{}` is in use by another process; end that first", .0.display())]
    InUse(PathBuf),
    /// An exported file cannot be trusted.
    #[error("`{}` is no file that `consensus keys export` has written, or it was changed: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// What an exported file brings does not go with what is there.
    #[error("`{}` {why}; nothing was imported", path.display())]
    Clash {
        /// What is there.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Somebody is missing.
    #[error("there is no key of `{0}`")]
    NoSeat(String),
    /// Somebody is there who should not be.
    #[error("`{0}` is no reviewer of this roleset")]
    NoPart(String),
    /// A file is not what it should be.
    #[error("`{}` cannot be read: {why}", path.display())]
    Unreadable {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The roster cannot be used.
    #[error(transparent)]
    Roster(#[from] RosterFault),
    /// The change is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The ledger cannot be written or trusted.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The ledger's records do not follow from each other.
    #[error("the ledger's line {line} does not verify: {why}")]
    Ledger {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// A decision is under way.
    #[error("the decision {0} is not at its end; it is brought there first")]
    UnderWay(Sequence),
    /// No decision is under way.
    #[error("nothing is being decided")]
    Idle,
    /// The reviewers come to nothing.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A record is not proven.
    #[error("the record does not verify: {0}")]
    NotProven(String),
    /// A statement in a record is not as it must be.
    #[error("the record does not verify: {0}")]
    Refused(#[from] Refused),
    /// The record is of another roster.
    #[error("the record was made under the roster {found}, and the keys are those of {expected}")]
    OtherRoster {
        /// That of the record.
        found: Digest,
        /// That of the keys.
        expected: Digest,
    },
    /// Git says no.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl DecisionError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::File { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            Self::File { .. } | Self::UnderWay(_) | Self::Idle | Self::Cluster(_) => ExitCode::Internal,
            Self::KeysAreThere(_)
            | Self::OpenKey(_)
            | Self::Key { .. }
            | Self::OtherKey { .. }
            | Self::Unreadable { .. }
            | Self::Placement { .. }
            | Self::NotInLedger(_)
            | Self::StartsElsewhere { .. }
            | Self::NoKeys(_)
            | Self::InUse(_)
            | Self::Clash { .. }
            | Self::NoSeat(_)
            | Self::NoPart(_)
            | Self::Roster(_)
            | Self::TooLong(_) => ExitCode::Usage,
            Self::Journal(error) => error.exit_code(),
            Self::Repository(error) => error.exit_code(),
            Self::Ledger { .. }
            | Self::Damaged { .. }
            | Self::NotProven(_)
            | Self::Refused(_)
            | Self::OtherRoster { .. } => ExitCode::Integrity,
        }
    }

    /// For what the file system says of a path.
    pub(super) fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
