//! The errors of the engine.

use std::path::PathBuf;

use thiserror::Error;

use super::mismatch::ReplayError;
use crate::journal::JournalError;
use crate::provider::ProviderError;
use crate::retrieval::RetrievalError;
use crate::sandbox::SandboxError;
use protocol::core::ExitCode;

/// The reason why a run could not continue at all.
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
    #[error("cannot write the table of redactions `{}`", path.display())]
    Redaction { path: PathBuf, source: std::io::Error },
    /// The run is redacted, and was not given its table of redactions.
    #[error("this run is redacted and cannot continue without its table of redactions")]
    NoRedaction,
    /// The run needs documents that it was not given.
    #[error("this run searches documents and cannot continue without them")]
    NoCorpus,
    /// The run has a check, and was not given the means to run it.
    #[error("this run has a check and cannot continue without a way to run it")]
    NoSandbox,
    /// The check cannot be run.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// An endpoint cannot be used as configured.
    #[error("{agent}: {why}")]
    Provider {
        /// The name of the agent whose endpoint it is.
        agent: String,
        why: ProviderError,
    },
}

impl EngineError {
    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Journal(error) => error.exit_code(),
            Self::Replay(_) => ExitCode::Integrity,
            Self::Provider { why, .. } => why.exit_code(),
            Self::Retrieval(error) => error.exit_code(),
            Self::Sandbox(error) => error.exit_code(),
            Self::NoCorpus | Self::NoRedaction | Self::NoSandbox => ExitCode::Usage,
            Self::Redaction { .. } => ExitCode::Internal,
        }
    }
}
