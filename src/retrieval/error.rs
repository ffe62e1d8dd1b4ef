//! The errors of documents as a whole; a single bad file is [`SkippedFile`](super::SkippedFile) instead.

use std::path::PathBuf;

use thiserror::Error;

use protocol::core::{ExitCode, is_unusable};

/// Documents that cannot be searched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RetrievalError {
    /// A place that the user named does not exist or cannot be read.
    #[error("`{}` cannot be read", path.display())]
    Place {
        /// The path of the place.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// All the places together contain no text.
    #[error(
        "there is no text in {places}{lost}; text, markdown, HTML, PDF and source code can be read, while hidden files and those named in a .gitignore are left out"
    )]
    NoText {
        /// The places, ready to print.
        places: String,
        /// The files that were left out and the reasons, ready to append; may be empty.
        lost: String,
    },
    /// No folder for the index is known.
    #[error("there is no folder for the index; set XDG_CACHE_HOME or HOME")]
    NoCache,
    /// The index cannot be written or read.
    #[error("the index `{}` cannot be used; delete it while no other run uses it, and it is built again", path.display())]
    Index {
        /// The path of the index.
        path: PathBuf,
        /// The error of the database.
        source: rusqlite::Error,
    },
    /// The folder for indexes, or a file in it, cannot be written.
    #[error("the index `{}` cannot be written", path.display())]
    Cache {
        /// The path of the folder or file.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
}

impl RetrievalError {
    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Place { .. } | Self::NoText { .. } | Self::NoCache => ExitCode::Usage,
            Self::Cache { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            Self::Index { .. } | Self::Cache { .. } => ExitCode::Internal,
        }
    }
}
