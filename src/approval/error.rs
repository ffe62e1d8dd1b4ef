//! Why a change is not decided on.

use std::path::PathBuf;

use thiserror::Error;

use super::decision_error::DecisionError;
use super::node::NodeError;
use crate::bft::local_cluster::ClusterError;
use crate::bft::{RosterFault, Sequence};
use crate::config::ConfigError;
use crate::core::ExitCode;
use crate::engine::{EngineError, ReplayError};
use crate::journal::JournalError;
use crate::repository::RepositoryError;
use crate::run::RunError;

/// Why a change is not decided on, or not reviewed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// The request cannot be carried out.
    #[error("{0}")]
    Usage(String),
    /// No quorum could vote on it.
    #[error("{0}")]
    NotReady(String),
    /// A signal came, at this point.
    #[error("interrupted {0}")]
    Interrupted(&'static str),
    /// The deadline passed, at this point.
    #[error("the deadline passed {0}")]
    TooLate(&'static str),
    /// A decision that an earlier process began cannot be brought to its end.
    #[error("decision {0} cannot be ended")]
    NotEnded(Sequence, #[source] Box<ApprovalError>),
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A reviewer cannot note which run reviews a change. Others read why, so that no path is in it.
    #[error("cannot note which run reviews it")]
    Note(#[source] std::io::Error),
    /// A decision cannot be printed.
    #[error("cannot print what was decided")]
    Printed(#[source] std::io::Error),
    /// The program cannot start itself.
    #[error("this program cannot be found")]
    OwnFile(#[source] std::io::Error),
    /// Something that cannot be, unless this program is wrong.
    #[error("{0}; that is an error of this program")]
    Internal(&'static str),
    /// A review could not be made.
    #[error("{0}")]
    NoReview(String),
    /// The keys, the log of decisions or a record cannot be used.
    #[error(transparent)]
    Decision(#[from] DecisionError),
    /// A process that takes part cannot go on.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Git says no.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The review cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl ApprovalError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) | Self::NotReady(_) => ExitCode::Usage,
            Self::Interrupted(_) => ExitCode::Interrupted,
            Self::TooLate(_) => ExitCode::Budget,
            Self::NotEnded(_, why) => why.exit_code(),
            Self::File { .. }
            | Self::Note(_)
            | Self::Printed(_)
            | Self::OwnFile(_)
            | Self::Internal(_)
            | Self::NoReview(_) => ExitCode::Internal,
            Self::Decision(error) => error.exit_code(),
            Self::Node(error) => error.exit_code(),
            Self::Repository(error) => error.exit_code(),
            Self::Run(error) => error.exit_code(),
        }
    }

    /// For what the file system says of a path.
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
