//! The errors of a journal.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files::is_damage;
use crate::program::PROGRAM;
use protocol::core::{ExitCode, is_unusable};

/// A journal that cannot be written, read or trusted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file system reported an error.
    #[error("cannot {action} `{path}`")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The path that it failed on.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// Another process has the run open.
    #[error("the run in `{path}` is in use by another process")]
    Locked {
        /// The path of the journal.
        path: PathBuf,
    },
    /// The journal is an excerpt from that of many runs.
    #[error(
        "`{path}` holds a run's lines from the journal of a batch or a server; the run goes on only there"
    )]
    Excerpt {
        /// The path of the journal.
        path: PathBuf,
    },
    /// Another build of this program wrote the records.
    #[error(
        "`{path}` was written by `{program}`, and `{PROGRAM}` does not read it: use the program that wrote it",
        path = path.display()
    )]
    OtherBuild {
        /// The path of the journal.
        path: PathBuf,
        /// The program, as the record names it.
        program: String,
    },
    /// The journal is damaged.
    #[error("`{path}` line {line}: {why}")]
    Damaged {
        /// The path of the journal.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// The damage.
        why: String,
    },
}

impl JournalError {
    /// Returns the error of an action on a file or folder.
    pub(super) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// Returns the error of reading the line of this number, from 1, of the file at `path`.
    pub(super) fn reading(path: &Path, line: u64, source: std::io::Error) -> Self {
        let path = path.to_owned();
        if is_damage(&source) {
            return Self::Damaged { path, line, why: source.to_string() };
        }
        Self::Io { action: "read", path, source }
    }

    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Damaged { .. } => ExitCode::Integrity,
            Self::Locked { .. } | Self::Excerpt { .. } | Self::OtherBuild { .. } => ExitCode::Usage,
            Self::Io { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            Self::Io { .. } => ExitCode::Internal,
        }
    }
}
