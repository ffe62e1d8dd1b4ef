//! The reasons why there is no model server.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use protocol::core::ExitCode;

/// The reason why there is no server.
#[derive(Clone, Debug, Error)]
pub enum LaunchError {
    /// The command cannot be used.
    #[error("{0}")]
    Command(String),
    /// The machine lacks something that is needed to start the server.
    #[error("cannot start the model server: {0}")]
    Start(String),
    #[error("the model server `{program}` ended {when} ({status}); the end of its log `{log}`:\n{tail}")]
    Ended {
        program: String,
        /// The time of its end, in words.
        when: &'static str,
        status: String,
        log: PathBuf,
        /// The log's last lines, neutralised.
        tail: String,
    },
    /// The server does not answer.
    #[error(
        "the model server `{program}` is not ready after {after:?}; raise `timeouts.ready_ms` if it is only slow; the end of its log `{log}`:\n{tail}"
    )]
    NotReady {
        program: String,
        /// The time for which it was awaited.
        after: Duration,
        log: PathBuf,
        /// The log's last lines, neutralised.
        tail: String,
    },
}

impl LaunchError {
    /// Returns the exit code of the program if this error ends it.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Command(_) => ExitCode::Usage,
            Self::Start(_) | Self::Ended { .. } | Self::NotReady { .. } => ExitCode::Provider,
        }
    }
}
