//! The errors of taking part in decisions.

use std::path::PathBuf;

use thiserror::Error;

use crate::journal::JournalError;
use protocol::core::ExitCode;

/// A reason why a party cannot take part, or cannot continue.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The log cannot be written, or its chain does not hold.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The log has an event that cannot have happened.
    #[error("line {line} of `{}` does not verify: {why}; the key must not sign, since its earlier statements are not known", path.display())]
    Log {
        /// The path of the log.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        why: String,
    },
    /// The key has signed a statement that its log does not have.
    #[error(
        "`{name}` has signed something on decision {sequence} that is not in its log ({}): another process has the same key, or \
         the log was lost. It signs nothing more, since it could contradict itself. Make a new key and roster",
        path.display()
    )]
    Forgotten {
        /// The name of the key's owner.
        name: String,
        /// The place of the decision.
        sequence: u64,
        /// The path of the log.
        path: PathBuf,
    },
    /// The log was already given another start.
    #[error(
        "this log starts at decision {known}, as was recorded before; --ledger-starts-at {given} cannot change that"
    )]
    StartsElsewhere {
        /// The start that was given before.
        known: u64,
        /// The start that is given now.
        given: u64,
    },
    /// A party has no address.
    #[error("nothing says where `{0}` is; give its address, such as `{0} = \"192.0.2.7:7001\"`")]
    NoAddress(String),
    /// An address belongs to no party.
    #[error("there is an address for `{0}`, but the roster has no member of that name")]
    Unknown(String),
    /// Two parties have one address.
    #[error("`{0}` and `{1}` have the same address; give each its own")]
    SamePlace(String, String),
    /// The addresses cannot be read.
    #[error("`{}`: {why}", path.display())]
    Addresses { path: PathBuf, why: String },
    /// The program cannot listen on an address.
    #[error("cannot listen on {address}")]
    Listen { address: String, source: std::io::Error },
    /// An address is not a host and a port.
    #[error("`{0}` is not an address; give a host and a port, such as 192.0.2.7:7001")]
    NoPlace(String),
    /// The key cannot be used for connections.
    #[error("the key cannot be used for connections: {0}")]
    Tls(String),
}

impl NodeError {
    /// Returns the exit code of a program that ends with this error.
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
