//! The errors of decisions.

use std::path::PathBuf;

use thiserror::Error;

use crate::journal::JournalError;
use crate::program::PROGRAM;
use crate::repository::RepositoryError;
use crypto::{Digest, NotAKey};
use protocol::core::{ExitCode, is_unusable};
use quorum::local_cluster::ClusterError;
use quorum::{Refused, RosterFault, Sequence};

/// A reason why something cannot be decided, kept or proven.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file of keys already exists, and is not overwritten.
    #[error("`{}` already exists, and keys are never overwritten; choose another place", .0.display())]
    KeysAreThere(PathBuf),
    /// A file with keys can be read by others.
    #[error("`{}` can be read by others; run `chmod 600` on it, or make new keys if someone may have read it", .0.display())]
    OpenKey(PathBuf),
    /// A file does not hold a key.
    #[error("`{}`: {why}", path.display())]
    Key { path: PathBuf, why: NotAKey },
    /// A key is not the one of its seat.
    #[error("`{}` is not the key that the roster has for `{name}`", path.display())]
    OtherKey {
        path: PathBuf,
        /// The name of the member whose key it should be.
        name: String,
    },
    /// The keys have signed elsewhere, out of sight of this ledger.
    #[error(
        "these keys have decided in {other}: `{}`; their signatures there are not known here, so they must be used in that way again",
        place.display()
    )]
    Placement {
        /// The path of what they signed there.
        place: PathBuf,
        /// The way in which they signed, in words.
        other: &'static str,
    },
    /// A branch carries a decision of these keys that is not in their ledger.
    #[error("{0}")]
    NotInLedger(String),
    /// Another build of this program wrote the record, in another form.
    #[error("the record has form {0}, and `{PROGRAM}` reads form 3: use the program that wrote it")]
    OtherForm(u32),
    /// A folder has no secret key of its roster, so that there is nothing to export.
    #[error("`{}` has no secret key of its roster; there is nothing to export", .0.display())]
    NoKeys(PathBuf),
    /// A ledger is in use.
    #[error("`{}` is in use by another process; stop that process first", .0.display())]
    InUse(PathBuf),
    /// An exported file cannot be trusted.
    #[error("`{}` was not written by `consensus keys export`, or was changed since: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    /// An exported file does not fit the files that are there.
    #[error("`{}` {why}; nothing was imported", path.display())]
    Clash {
        /// The file that is there.
        path: PathBuf,
        /// The conflict, in words.
        why: &'static str,
    },
    /// A member of the roster has no key here.
    #[error("there is no key of `{0}`")]
    NoSeat(String),
    /// A key belongs to no member of the roster.
    #[error("`{0}` is not a reviewer of this roleset")]
    NoPart(String),
    /// A file does not have the form that it should have.
    #[error("`{}` cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error(transparent)]
    Roster(#[from] RosterFault),
    /// The change is too long.
    #[error(transparent)]
    TooLong(Refused),
    /// The ledger cannot be written or trusted.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The records of the ledger do not follow from each other.
    #[error("the ledger's line {line} does not verify: {why}")]
    Ledger {
        /// The number of the line, from 1.
        line: u64,
        why: String,
    },
    /// A decision is under way.
    #[error("decision {0} has not ended; it must be finished first")]
    UnderWay(Sequence),
    /// No decision is under way.
    #[error("no decision is under way")]
    Idle,
    /// The parties come to no decision.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A record does not verify.
    #[error("the record does not verify: {0}")]
    NotProven(String),
    /// A statement in a record is refused.
    #[error("the record does not verify: {0}")]
    Refused(#[from] Refused),
    /// The record was made under another roster.
    #[error("the record was made under the roster {found}, but the keys are those of {expected}")]
    OtherRoster {
        /// The digest of the record's roster.
        found: Digest,
        /// The digest of the keys' roster.
        expected: Digest,
    },
    /// The repository or git reports an error.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl DecisionError {
    /// Returns the exit code of a program that ends with this error.
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
            | Self::OtherForm(_)
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

    /// Returns a function that wraps an error of the file system on this path.
    pub(super) fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
