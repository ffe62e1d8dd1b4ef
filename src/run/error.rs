//! The errors that leave a person without a run, or without its result.

use std::path::PathBuf;

use thiserror::Error;

use super::session::SessionError;
use crate::calibration::CalibrationError;
use crate::config::ConfigError;
use crate::engine::{EngineError, ReplayError};
use crate::journal::JournalError;
use crate::provider::launch::LaunchError;
use crate::retrieval::RetrievalError;
use crate::sandbox::SandboxError;
use protocol::core::ExitCode;
use protocol::{BadSetup, OutcomeKind};

/// An error that left a run without a result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The request cannot be carried out.
    #[error("{0}")]
    Usage(String),
    /// There can be no run with this setup.
    #[error("this run cannot be made")]
    Setup(#[from] BadSetup),
    /// A roleset, a file or a server has a fault.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The calibration cannot be used for this run.
    #[error("the calibration `{}`: {why}", path.display())]
    Calibration { path: PathBuf, why: CalibrationError },
    /// The run could not continue; its record remains.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The record cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The record does not verify.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The session cannot be read or written. The message includes the cause.
    #[error("{0}")]
    Session(SessionError),
    /// The model server could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The documents cannot be searched.
    #[error(transparent)]
    Retrieval(#[from] RetrievalError),
    /// The check of final texts cannot be run.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A resumed run has lost its documents.
    #[error("the run needs its documents again")]
    Documents(#[source] Box<RunError>),
    /// The thread that reads documents has failed.
    #[error("the documents could not be read")]
    Thread(#[source] tokio::task::JoinError),
    /// The program cannot start itself.
    #[error("this program cannot find its own executable file")]
    OwnFile(#[source] std::io::Error),
    /// The table of redactions cannot be written.
    #[error("the table of redactions cannot be written")]
    Redactions(#[source] std::io::Error),
    /// The copy of the answer cannot be written.
    #[error("cannot {action} the copy of the answer")]
    Copy { action: &'static str, source: std::io::Error },
    /// The result exists and was recorded, but its files could not be written.
    #[error("cannot write into `{}`", dir.display())]
    Files { dir: PathBuf, outcome: OutcomeKind, source: std::io::Error },
}

impl From<SessionError> for RunError {
    fn from(why: SessionError) -> Self {
        Self::Session(why)
    }
}

impl RunError {
    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) | Self::Setup(_) | Self::Session(_) => ExitCode::Usage,
            Self::Config(error) => error.exit_code(),
            Self::Calibration { why, .. } => why.exit_code(),
            Self::Engine(error) => error.exit_code(),
            Self::Journal(error) => error.exit_code(),
            Self::Replay(_) => ExitCode::Integrity,
            Self::Launch(error) => error.exit_code(),
            Self::Retrieval(error) => error.exit_code(),
            Self::Sandbox(error) => error.exit_code(),
            Self::Documents(error) => error.exit_code(),
            Self::Thread(_)
            | Self::OwnFile(_)
            | Self::Redactions(_)
            | Self::Copy { .. }
            | Self::Files { .. } => ExitCode::Internal,
        }
    }
}
