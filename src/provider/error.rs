//! Why a model could not be called, and what to do about it.

use std::time::Duration;

use thiserror::Error;

use super::launch::error::LaunchError;
use crate::core::ExitCode;

/// A call that came to nothing.
///
/// Messages never contain a key. Text from a server is shown only as a short neutralised excerpt.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The endpoint cannot be used as it is configured.
    #[error("{0}")]
    Setup(String),
    /// No connection, or it broke.
    #[error(
        "the connection to {url} failed: {why}; is the model server running? `consensus doctor` tells more"
    )]
    Unreachable {
        /// The base URL.
        url: String,
        /// What the network said.
        why: String,
        /// Whether nothing listens there.
        is_refused: bool,
    },
    /// A time-out passed.
    #[error("{url} gave no {what} within {after:?}; raise `timeouts.{setting}` if the server is only slow")]
    TimedOut {
        /// The base URL.
        url: String,
        /// What was waited for.
        what: &'static str,
        /// The name of the time-out.
        setting: &'static str,
        /// How long.
        after: Duration,
    },
    /// The server refused the request.
    #[error("{url} answered {status}: {message}{hint}")]
    Status {
        /// The base URL.
        url: String,
        /// HTTP status.
        status: u16,
        /// The server's message, neutralised and shortened.
        message: String,
        /// What to do, ready to append; may be empty.
        hint: &'static str,
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
    },
    /// The conversation does not fit into the model's context.
    #[error(
        "the conversation is longer than the context of the model at {url}: {message}; raise the server's context length, or lower `max_tokens` or `max_rounds`"
    )]
    Overflow {
        /// The base URL.
        url: String,
        /// The server's message.
        message: String,
    },
    /// The server's answer is not what its interface promises.
    #[error("{url} sent an unusable answer: {why}")]
    BadAnswer {
        /// The base URL.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server's answer was cut or bent on its way.
    #[error("{url} sent a damaged answer: {why}")]
    Damaged {
        /// The base URL.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server that this program started is gone.
    #[error(transparent)]
    Launch(Box<LaunchError>),
    /// The server's answer is too large.
    #[error("{url} sent more than {max} bytes for one reply")]
    TooLarge {
        /// The base URL.
        url: String,
        /// The limit.
        max: usize,
    },
}

impl ProviderError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Setup(_) => ExitCode::Usage,
            Self::Launch(error) => error.exit_code(),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Status { .. }
            | Self::Overflow { .. }
            | Self::BadAnswer { .. }
            | Self::Damaged { .. }
            | Self::TooLarge { .. } => ExitCode::Provider,
        }
    }

    /// The error of a request that was never sent, since its run is being ended.
    pub(super) fn given_up(url: &str) -> Self {
        Self::Unreachable {
            url: url.to_owned(),
            why: "the run was ended before the request was sent".to_owned(),
            is_refused: false,
        }
    }

    /// Returns true if the same request may succeed later: 408, 429, 5xx and connection faults.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            // Without a connection nothing was asked yet.
            Self::TimedOut { setting, .. } => *setting == "connect_ms",
            // What takes minutes is not waited for by the rule for what passes.
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599) && !self.is_loading(),
            Self::Setup(_)
            | Self::Overflow { .. }
            | Self::BadAnswer { .. }
            | Self::Damaged { .. }
            | Self::Launch(_)
            | Self::TooLarge { .. } => false,
        }
    }

    /// Returns true if nothing listens where the server should be.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Unreachable { is_refused: true, .. })
    }

    /// Returns true if the answer came damaged, so that asking once more may bring it whole.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    /// Returns true if it says something of the server, or of who asks, and nothing of what was asked: any other request would
    /// fail as well.
    #[must_use]
    pub fn is_of_all(&self) -> bool {
        match self {
            Self::Setup(_) | Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Launch(_) => true,
            Self::Status { status, .. } => !matches!(status, 400 | 413 | 422),
            Self::Overflow { .. } | Self::BadAnswer { .. } | Self::Damaged { .. } | Self::TooLarge { .. } => {
                false
            }
        }
    }

    /// Returns true if the server says that it still loads its model, as llama.cpp's does.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        matches!(self, Self::Status { status: 503, message, .. } if message.to_ascii_lowercase().contains("loading model"))
    }

    /// Returns how long the server asked to wait before the next try.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Setup(_)
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Overflow { .. }
            | Self::BadAnswer { .. }
            | Self::Damaged { .. }
            | Self::Launch(_)
            | Self::TooLarge { .. } => None,
        }
    }
}
