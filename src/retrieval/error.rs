//! What can go wrong with documents as a whole; a single bad file is [`Skipped`](super::Skipped) instead.

use std::path::PathBuf;

use thiserror::Error;

use crate::core::{ExitCode, is_unusable};

/// Documents that cannot be searched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RetrievalError {
    /// A place that the user named is not there.
    #[error("`{}` cannot be read", path.display())]
    Place {
        /// The place.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no text in all the places together.
    #[error(
        "there is no text in {places}{lost}; text, markdown, HTML, PDF and source code can be read, and what is hidden or named in a .gitignore is left out"
    )]
    NoText {
        /// The places.
        places: String,
        /// What was left out and why, ready to append; may be empty.
        lost: String,
    },
    /// There is no folder for the index.
    #[error("there is no folder for the index; set XDG_CACHE_HOME or HOME")]
    NoCache,
    /// The index cannot be written or read.
    #[error("the index `{}` cannot be used; it is made again if you delete it while no other run uses it", path.display())]
    Index {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The folder for indexes, or a file in it, cannot be written.
    #[error("the index `{}` cannot be written", path.display())]
    Cache {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl RetrievalError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Place { .. } | Self::NoText { .. } | Self::NoCache => ExitCode::Usage,
            Self::Cache { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            Self::Index { .. } | Self::Cache { .. } => ExitCode::Internal,
        }
    }
}
