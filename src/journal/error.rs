//! What can be wrong with a journal.

use std::path::PathBuf;

use thiserror::Error;

use crate::core::{ExitCode, is_unusable};

/// A journal that cannot be written, read or trusted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file system said no.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has the run open.
    #[error("the run in `{path}` is in use by another process")]
    Locked {
        /// The journal.
        path: PathBuf,
    },
    /// The journal is damaged.
    #[error("`{path}` line {line}: {why}")]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

impl JournalError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Damaged { .. } => ExitCode::Integrity,
            Self::Locked { .. } => ExitCode::Usage,
            Self::Io { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            Self::Io { .. } => ExitCode::Internal,
        }
    }
}
