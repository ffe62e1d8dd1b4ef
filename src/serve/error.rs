//! The errors that end the server, or keep it from beginning.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::batch::BatchError;
use protocol::core::{ExitCode, is_unusable};

/// A reason why the server cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {why}; choose another --listen ADDRESS")]
    Listen { address: SocketAddr, why: std::io::Error },
    /// The address can be reached from other machines, and no token is wanted.
    #[error(
        "{0} can be reached from other machines; give --token-file FILE with a token on each line, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The file of tokens cannot be used.
    #[error("the file of tokens `{path}` cannot be used: {why}")]
    Tokens { path: PathBuf, why: String },
    /// A file in the folder of the runs cannot be used.
    #[error("`{path}` cannot be used: {source}")]
    Folder { path: PathBuf, source: std::io::Error },
    /// The figures cannot be kept.
    #[error("the figures of the server cannot be kept: {0}")]
    Figures(#[from] prometheus::Error),
    /// There is no server at the address, or it does not answer.
    #[error("there is no server at {address}: {why}")]
    NotThere { address: String, why: String },
    /// The runs cannot go on.
    #[error(transparent)]
    Runs(#[from] BatchError),
}

impl ServeError {
    /// Returns a function that wraps an error of the file system on this path.
    pub(super) fn folder(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Folder { path: path.to_owned(), source }
    }

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
