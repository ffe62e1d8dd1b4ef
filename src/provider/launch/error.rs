//! Why a server could not be started.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::core::ExitCode;

/// Why there is no server.
#[derive(Clone, Debug, Error)]
pub enum LaunchError {
    /// The command cannot be used.
    #[error("{0}")]
    Command(String),
    /// The machine does not give what is needed to start it.
    #[error("cannot start the model server: {0}")]
    Start(String),
    /// It ended.
    #[error("the model server `{program}` ended {when} ({status}); its log is `{log}` and ends:\n{tail}")]
    Ended {
        /// The program.
        program: String,
        /// At what time, in words.
        when: &'static str,
        /// Exit status.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The log's last lines, neutralised.
        tail: String,
    },
    /// It does not answer.
    #[error(
        "the model server `{program}` is not ready after {after:?}; raise `timeouts.ready_ms` if it is only slow; its log is `{log}` and ends:\n{tail}"
    )]
    NotReady {
        /// The program.
        program: String,
        /// How long it was waited for.
        after: Duration,
        /// Its log.
        log: PathBuf,
        /// The log's last lines, neutralised.
        tail: String,
    },
}

impl LaunchError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Command(_) => ExitCode::Usage,
            Self::Start(_) | Self::Ended { .. } | Self::NotReady { .. } => ExitCode::Provider,
        }
    }
}
