//! Errors of traces.

use crate::engine::ReplayError;
use crate::journal::JournalError;
use protocol::core::ExitCode;

/// The reason why no spans were sent.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The address is not that of a collector.
    #[error("`{url}` is not the address of a collector: {why}; give one such as http://localhost:4318")]
    Address {
        /// The address, as given.
        url: String,
        why: String,
    },
    /// The variable with the headers cannot be read.
    #[error("the variable {name} is not NAME=VALUE,…: {why}")]
    Headers { name: &'static str, why: String },
    /// The collector did not take the spans.
    #[error("the collector at {url} did not take the spans of a run: {why}")]
    Refused { url: String, why: String },
    /// The records do not fit together.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The records cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl OtlpError {
    /// Returns the exit code of a command that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Address { .. } | Self::Headers { .. } => ExitCode::Usage,
            Self::Refused { .. } => ExitCode::Internal,
            Self::Replay(_) => ExitCode::Integrity,
            Self::Journal(why) => why.exit_code(),
        }
    }
}
