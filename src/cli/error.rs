//! The command line's own errors, and the exit code for every error.

use crate::approval::node::NodeError;
use crate::approval::{ApprovalError, DecisionError};
use crate::batch::BatchError;
use crate::calibration::CalibrationError;
use crate::config::ConfigError;
use crate::engine::{EngineError, ReplayError};
use crate::eval::EvalError;
use crate::journal::JournalError;
use crate::otlp::OtlpError;
use crate::provider::ProviderError;
use crate::provider::launch::LaunchError;
use crate::repository::RepositoryError;
use crate::retrieval::RetrievalError;
use crate::run::RunError;
use crate::serve::ServeError;
use protocol::core::ExitCode;
use quorum::RosterFault;

/// A mistake in how the program was called.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);

/// A journal or result that does not verify.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct IntegrityError(pub(super) String);

/// The end of a command that was still being prepared, with the state that it leaves.
#[derive(Debug, thiserror::Error)]
pub(super) enum EarlyEnd {
    #[error("interrupted {0}")]
    Signal(&'static str),
    #[error("the deadline passed {0}")]
    Deadline(&'static str),
}

impl EarlyEnd {
    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Signal(_) => ExitCode::Interrupted,
            Self::Deadline(_) => ExitCode::Budget,
        }
    }
}

pub(super) fn exit_code(error: &anyhow::Error) -> ExitCode {
    error.chain().find_map(of_cause).unwrap_or(ExitCode::Internal)
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<ExitCode> {
    if cause.is::<UsageError>() || cause.is::<RosterFault>() {
        return Some(ExitCode::Usage);
    }
    if cause.is::<IntegrityError>() || cause.is::<ReplayError>() {
        return Some(ExitCode::Integrity);
    }
    cause
        .downcast_ref()
        .map(EarlyEnd::exit_code)
        .or_else(|| cause.downcast_ref().map(ApprovalError::exit_code))
        .or_else(|| cause.downcast_ref().map(RunError::exit_code))
        .or_else(|| cause.downcast_ref().map(OtlpError::exit_code))
        .or_else(|| cause.downcast_ref().map(ConfigError::exit_code))
        .or_else(|| cause.downcast_ref().map(EngineError::exit_code))
        .or_else(|| cause.downcast_ref().map(BatchError::exit_code))
        .or_else(|| cause.downcast_ref().map(EvalError::exit_code))
        .or_else(|| cause.downcast_ref().map(ServeError::exit_code))
        .or_else(|| cause.downcast_ref().map(CalibrationError::exit_code))
        .or_else(|| cause.downcast_ref().map(DecisionError::exit_code))
        .or_else(|| cause.downcast_ref().map(NodeError::exit_code))
        .or_else(|| cause.downcast_ref().map(RepositoryError::exit_code))
        .or_else(|| cause.downcast_ref().map(JournalError::exit_code))
        .or_else(|| cause.downcast_ref().map(LaunchError::exit_code))
        .or_else(|| cause.downcast_ref().map(RetrievalError::exit_code))
        .or_else(|| cause.downcast_ref().map(ProviderError::exit_code))
}
