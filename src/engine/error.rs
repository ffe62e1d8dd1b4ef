//! The errors of the engine.

use std::path::PathBuf;

use thiserror::Error;

use super::mismatch::ReplayError;
use crate::core::ExitCode;
use crate::journal::JournalError;
use crate::provider::ProviderError;
use crate::retrieval::RetrievalError;

/// Why a run could not go on at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The journal cannot be written or trusted.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal's records do not fit together.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The documents cannot be searched.
    #[error(transparent)]
    Retrieval(#[from] RetrievalError),
    /// The table of redactions cannot be written; nothing has left the machine.
    #[error("cannot write the table of what was redacted, `{}`", path.display())]
    Redaction {
        /// The table.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// The run was redacted, and needs its table to go on.
    #[error("this run is redacted, and cannot go on without its table of redactions")]
    NoRedaction,
    /// The run needs documents that it was not given.
    #[error("this run searches documents, and cannot go on without them")]
    NoCorpus,
    /// An endpoint cannot be used as configured.
    #[error("{agent}: {why}")]
    Provider {
        /// The agent whose endpoint it is.
        agent: String,
        /// What is wrong.
        why: ProviderError,
    },
}

impl EngineError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Journal(error) => error.exit_code(),
            Self::Replay(_) => ExitCode::Integrity,
            Self::Provider { why, .. } => why.exit_code(),
            Self::Retrieval(error) => error.exit_code(),
            Self::NoCorpus | Self::NoRedaction => ExitCode::Usage,
            Self::Redaction { .. } => ExitCode::Internal,
        }
    }
}
