//! What can be wrong with taking part.

use std::path::PathBuf;

use thiserror::Error;

use crate::core::ExitCode;
use crate::journal::JournalError;

/// Why somebody cannot take part, or not go on.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The log cannot be written, or its chain does not hold.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What is in the log cannot have happened.
    #[error("line {line} of `{}` does not verify: {why}; what was said by it is not known, so that the key must not sign", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The key has signed what its log does not have.
    #[error(
        "`{name}` has signed something on decision {sequence} that is not in its log ({}): another process has the same key, or \
         the log was lost; it signs nothing more, since it could say something else than it has said. Make a new key and roster",
        path.display()
    )]
    Forgotten {
        /// Whose key it is.
        name: String,
        /// The decision.
        sequence: u64,
        /// The log.
        path: PathBuf,
    },
    /// It was said before that the log starts elsewhere.
    #[error(
        "this log starts at decision {known}, which was said once and for all; --ledger-starts-at {given} cannot change it"
    )]
    StartsElsewhere {
        /// What was said before.
        known: u64,
        /// What is said now.
        given: u64,
    },
    /// It is not said where somebody is.
    #[error("nothing says where `{0}` is; give its address, such as `{0} = \"192.0.2.7:7001\"`")]
    NoAddress(String),
    /// An address is nobody's.
    #[error("there is an address for `{0}`, and the roster has nobody of that name")]
    Unknown(String),
    /// Two are at one place.
    #[error("`{0}` and `{1}` have one address; each is heard at its own")]
    SamePlace(String, String),
    /// The addresses cannot be read.
    #[error("`{}`: {why}", path.display())]
    Addresses {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Nobody can be heard at an address.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// An address is no place.
    #[error("`{0}` is no address; give a host and a port, such as 192.0.2.7:7001")]
    NoPlace(String),
    /// The key cannot be used for connections.
    #[error("the key cannot be used for connections: {0}")]
    Tls(String),
}

impl NodeError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Journal(error) => error.exit_code(),
            Self::Log { .. } | Self::Forgotten { .. } => ExitCode::Integrity,
            Self::NoAddress(_)
            | Self::Unknown(_)
            | Self::SamePlace(..)
            | Self::Addresses { .. }
            | Self::NoPlace(_)
            | Self::StartsElsewhere { .. }
            | Self::Listen { .. } => ExitCode::Usage,
            Self::Tls(_) => ExitCode::Internal,
        }
    }
}
