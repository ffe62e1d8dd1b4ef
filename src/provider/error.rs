//! The reasons why a model could not be called, and the remedies.

use std::time::Duration;

use thiserror::Error;

use super::failure::is_rate_limit;
use super::launch::error::LaunchError;
use protocol::CallId;
use protocol::core::{ExitCode, OptionalParameter};

/// A call that failed.
///
/// Messages never contain a key. Text from a server is shown only as a short neutralised excerpt.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The endpoint cannot be used as it is configured.
    #[error("{0}")]
    Setup(String),
    /// There is no connection, or it broke.
    #[error(
        "the connection to {url} failed: {why}; is the model server running? `consensus doctor` tells more"
    )]
    Unreachable {
        url: String,
        /// The message from the network.
        why: String,
        /// Whether no program listens there.
        is_refused: bool,
    },
    /// A time-out has passed.
    #[error("{url}: no {what} within {after:?}; raise `timeouts.{setting}` if the server is only slow")]
    TimedOut {
        url: String,
        /// The part of the exchange that did not arrive.
        what: &'static str,
        /// The name of the time-out.
        setting: &'static str,
        /// The length of the time-out.
        after: Duration,
    },
    /// The server refused the request.
    #[error("{url} answered {status}: {message}{hint}")]
    Status {
        url: String,
        status: u16,
        /// The server's message, neutralised and shortened.
        message: String,
        /// The remedy, ready to append; may be empty.
        hint: &'static str,
        /// The wait that the server asked for.
        retry_after: Option<Duration>,
    },
    /// The server refused a parameter that may be left out. The same request without it may succeed.
    #[error(
        "{url} refused `{parameter}`: {message}; the setting `leave_out = [\"{parameter}\"]` leaves it out from the start"
    )]
    Parameter {
        url: String,
        parameter: OptionalParameter,
        /// The server's message, neutralised and shortened.
        message: String,
    },
    /// The conversation does not fit into the model's context.
    #[error(
        "the conversation is longer than the context of the model at {url}: {message}; raise the server's context length, or lower `max_tokens` or `max_rounds`"
    )]
    Overflow { url: String, message: String },
    /// The server's answer is not what its interface promises.
    #[error("{url} sent an unusable answer: {why}")]
    BadAnswer {
        url: String,
        /// The reason why it is unusable.
        why: String,
    },
    /// The server reports an error without an HTTP status, inside an answer that began well.
    #[error("{url} reports an error: {message}")]
    Failed {
        url: String,
        /// The server's message, neutralised and shortened.
        message: String,
        /// Whether the same request may succeed later.
        may_pass: bool,
    },
    /// The server's answer was cut off or altered on its way, or its end is not known.
    #[error("{url} sent a damaged answer: {why}")]
    Damaged {
        url: String,
        /// The kind of damage.
        why: String,
    },
    /// The server that this program launched is gone.
    #[error(transparent)]
    Launch(Box<LaunchError>),
    /// A bank has no reply to this request.
    #[error(
        "the bank `{folder}` has no reply to call {call}: it must be drawn on the same model, with the same tasks, seeds, roleset and settings, and with enough samples"
    )]
    NotInBank {
        /// The folder of the bank.
        folder: String,
        call: CallId,
    },
    /// A bank has different replies to this request.
    #[error(
        "the bank `{folder}` has two replies to call {call}: two of its tasks or rolesets ask the same; draw them into banks of their own"
    )]
    AmbiguousInBank {
        /// The folder of the bank.
        folder: String,
        call: CallId,
    },
    /// The server's answer is too large.
    #[error("{url} sent more than {max} bytes for one reply")]
    TooLarge {
        url: String,
        /// The limit, in bytes.
        max: usize,
    },
}

impl ProviderError {
    /// Returns the exit code of the program if this error ends it.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Setup(_) => ExitCode::Usage,
            Self::Launch(error) => error.exit_code(),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Status { .. }
            | Self::Parameter { .. }
            | Self::Overflow { .. }
            | Self::BadAnswer { .. }
            | Self::Failed { .. }
            | Self::Damaged { .. }
            | Self::NotInBank { .. }
            | Self::AmbiguousInBank { .. }
            | Self::TooLarge { .. } => ExitCode::Provider,
        }
    }

    /// Returns the error of a request that was never sent, because its run is being ended.
    pub(super) fn given_up(url: &str) -> Self {
        Self::Unreachable {
            url: url.to_owned(),
            why: "the run ended before the request was sent".to_owned(),
            is_refused: false,
        }
    }

    /// Returns true if the same request may succeed later: 408, 425, 429, 5xx, limits of rates and connection faults.
    pub fn is_retryable(&self) -> bool {
        match self {
            // Without a connection, nothing was sent yet.
            Self::Unreachable { .. } | Self::TimedOut { .. } => self.is_of_connection(),
            // Loading a model takes minutes, which is too long to wait by the rule for passing faults.
            Self::Status { status, message, .. } => {
                let is_passing = matches!(status, 408 | 425 | 429 | 500..=599) || is_rate_limit(message);
                is_passing && !self.is_loading()
            }
            Self::Failed { may_pass, .. } => *may_pass,
            Self::Setup(_)
            | Self::Parameter { .. }
            | Self::Overflow { .. }
            | Self::BadAnswer { .. }
            | Self::Damaged { .. }
            | Self::Launch(_)
            | Self::NotInBank { .. }
            | Self::AmbiguousInBank { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// Returns true if there was no connection to the server, or it broke.
    pub fn is_of_connection(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { setting: "connect_ms", .. })
    }

    /// Returns true if no program listens where the server should be.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Unreachable { is_refused: true, .. })
    }

    /// Returns true if the answer came damaged, so that asking once more may bring it whole.
    pub fn is_damaged(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    /// Returns true if the error is about the server or the caller, and not about the request. Any other request would
    /// then fail as well.
    pub fn is_of_all(&self) -> bool {
        match self {
            Self::Setup(_) | Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Launch(_) => true,
            Self::Status { status, .. } => !matches!(status, 400 | 413 | 422),
            Self::Parameter { .. }
            | Self::Overflow { .. }
            | Self::BadAnswer { .. }
            | Self::Failed { .. }
            | Self::Damaged { .. }
            | Self::NotInBank { .. }
            | Self::AmbiguousInBank { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// Returns true if a server has failed. The other errors are mistakes of the configuration, and replies that a bank does not have.
    pub fn is_of_server(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Status { .. }
            | Self::Overflow { .. }
            | Self::BadAnswer { .. }
            | Self::Failed { .. }
            | Self::Damaged { .. }
            | Self::Launch(_)
            | Self::TooLarge { .. } => true,
            Self::Setup(_)
            | Self::Parameter { .. }
            | Self::NotInBank { .. }
            | Self::AmbiguousInBank { .. } => false,
        }
    }

    /// Returns true if the server says that it is still loading its model, as llama.cpp's server does.
    pub fn is_loading(&self) -> bool {
        matches!(self, Self::Status { status: 503, message, .. } if message.to_ascii_lowercase().contains("loading model"))
    }

    /// Returns the wait before the next try that the server asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Setup(_)
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Parameter { .. }
            | Self::Overflow { .. }
            | Self::BadAnswer { .. }
            | Self::Failed { .. }
            | Self::Damaged { .. }
            | Self::Launch(_)
            | Self::NotInBank { .. }
            | Self::AmbiguousInBank { .. }
            | Self::TooLarge { .. } => None,
        }
    }
}
