//! What can go wrong with documents as a whole; a single bad file is [`Skipped`](super::Skipped) instead.

use std::path::PathBuf;

use thiserror::Error;

/// Documents that cannot be searched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RetrievalError {
    /// A place that the user named is not there.
    #[error("`{}` cannot be read: {source}", path.display())]
    Place {
        /// The place.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no text in all the places together.
    #[error("there is no text in {0}; text, markdown, HTML, PDF and source code can be read")]
    NoText(String),
    /// There is no folder for the index.
    #[error("there is no folder for the index; set XDG_CACHE_HOME or HOME")]
    NoCache,
    /// The index cannot be written or read.
    #[error("the index `{}` cannot be used: {source}; it is made again if you delete it while no other run uses it", path.display())]
    Index {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The folder for indexes cannot be made.
    #[error("the folder for indexes, `{}`, cannot be made: {source}", path.display())]
    Cache {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
