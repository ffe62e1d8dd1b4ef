//! The errors of approval.

use std::path::PathBuf;

use thiserror::Error;

use super::decision_error::DecisionError;
use super::node::NodeError;
use crate::config::ConfigError;
use crate::engine::{EngineError, ReplayError};
use crate::journal::JournalError;
use crate::repository::RepositoryError;
use crate::run::RunError;
use crate::sandbox::SandboxError;
use protocol::core::ExitCode;
use quorum::local_cluster::ClusterError;
use quorum::{RosterFault, Sequence};

/// A reason why a change is not decided on, or not reviewed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// The request cannot be carried out.
    #[error("{0}")]
    Usage(String),
    /// No quorum could vote on the change.
    #[error("{0}")]
    NotReady(String),
    /// A signal came at this point.
    #[error("interrupted {0}")]
    Interrupted(&'static str),
    /// The deadline passed at this point.
    #[error("the deadline passed {0}")]
    TooLate(&'static str),
    /// A decision that an earlier process began cannot be finished.
    #[error("decision {0} cannot be finished")]
    NotEnded(Sequence, #[source] Box<ApprovalError>),
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A reviewer cannot write down which run reviews a change. Others read the message, so that it holds no path.
    #[error("cannot write down which run reviews the change")]
    Note(#[source] std::io::Error),
    /// A decision cannot be printed.
    #[error("cannot print the decision")]
    Printed(#[source] std::io::Error),
    /// A state that can only come from a bug in this program.
    #[error("{0}; that is an error of this program")]
    Internal(&'static str),
    /// A review could not be made.
    #[error("{0}")]
    NoReview(String),
    /// The keys, the log of decisions or a record cannot be used.
    #[error(transparent)]
    Decision(#[from] DecisionError),
    /// A process that takes part cannot continue.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The repository or git reports an error.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The review cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A command cannot be run in the sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl ApprovalError {
    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) | Self::NotReady(_) => ExitCode::Usage,
            Self::Interrupted(_) => ExitCode::Interrupted,
            Self::TooLate(_) => ExitCode::Budget,
            Self::NotEnded(_, why) => why.exit_code(),
            Self::File { .. } | Self::Note(_) | Self::Printed(_) | Self::Internal(_) | Self::NoReview(_) => {
                ExitCode::Internal
            }
            Self::Decision(error) => error.exit_code(),
            Self::Node(error) => error.exit_code(),
            Self::Repository(error) => error.exit_code(),
            Self::Run(error) => error.exit_code(),
            Self::Sandbox(error) => error.exit_code(),
        }
    }

    /// Returns a function that wraps an error of the file system on this path.
    pub(super) fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}

impl From<ConfigError> for ApprovalError {
    fn from(why: ConfigError) -> Self {
        RunError::from(why).into()
    }
}

impl From<EngineError> for ApprovalError {
    fn from(why: EngineError) -> Self {
        RunError::from(why).into()
    }
}

impl From<ReplayError> for ApprovalError {
    fn from(why: ReplayError) -> Self {
        RunError::from(why).into()
    }
}

impl From<JournalError> for ApprovalError {
    fn from(why: JournalError) -> Self {
        RunError::from(why).into()
    }
}

impl From<RosterFault> for ApprovalError {
    fn from(why: RosterFault) -> Self {
        DecisionError::from(why).into()
    }
}

impl From<ClusterError> for ApprovalError {
    fn from(why: ClusterError) -> Self {
        DecisionError::from(why).into()
    }
}
