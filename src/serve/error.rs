//! The errors that end the server, or keep it from beginning.

use std::net::SocketAddr;

use crate::batch::BatchError;
use protocol::core::{ExitCode, is_unusable};

/// A reason why the server cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {why}; choose another --listen ADDRESS")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        why: std::io::Error,
    },
    /// The address can be reached from other machines, and no token is wanted.
    #[error(
        "{0} can be reached from other machines; give --token-file FILE with a token on each line, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The file of tokens cannot be used.
    #[error("the file of tokens `{path}` cannot be used: {why}")]
    Tokens {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        why: String,
    },
    /// A file in the folder of the runs cannot be used.
    #[error("`{path}` cannot be used: {source}")]
    Folder {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The figures cannot be kept.
    #[error("the figures of the server cannot be kept: {0}")]
    Figures(#[from] prometheus::Error),
    /// There is no server at the address, or it does not answer.
    #[error("there is no server at {address}: {why}")]
    NotThere {
        /// The address.
        address: String,
        /// The cause.
        why: String,
    },
    /// The runs cannot go on.
    #[error(transparent)]
    Runs(#[from] BatchError),
}

impl ServeError {
    /// Returns the exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Listen { .. } | Self::Open(_) | Self::Tokens { .. } => ExitCode::Usage,
            Self::Folder { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            Self::Folder { .. } | Self::Figures(_) => ExitCode::Internal,
            Self::NotThere { .. } => ExitCode::Provider,
            Self::Runs(why) => why.exit_code(),
        }
    }
}
