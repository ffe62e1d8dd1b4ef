//! Where the records of one run go.

use super::{Entry, JournalError, Record, RunWriter, Writer};
use crate::crypto::Digest;

/// A journal of its own, or a part of one that many runs share.
#[derive(Debug)]
pub enum Log {
    /// Its own.
    Own(Writer),
    /// Shared.
    Shared(RunWriter),
}

impl Log {
    /// Appends one record and returns it; it survives the death of this process after [`Log::written`], and that of the machine after
    /// [`Log::sync`].
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub fn append(&mut self, entry: Entry) -> Result<Record, JournalError> {
        match self {
            Self::Own(writer) => writer.append(entry),
            Self::Shared(writer) => writer.append(entry),
        }
    }

    /// Hands everything appended so far to the system.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub async fn written(&self) -> Result<(), JournalError> {
        match self {
            // It writes each record by itself.
            Self::Own(_) => Ok(()),
            Self::Shared(writer) => writer.written().await,
        }
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub async fn sync(&self) -> Result<(), JournalError> {
        match self {
            Self::Own(writer) => writer.sync(),
            Self::Shared(writer) => writer.sync().await,
        }
    }

    /// Returns the SHA-256 of the run's last line.
    #[must_use]
    pub fn head(&self) -> Digest {
        match self {
            Self::Own(writer) => writer.head(),
            Self::Shared(writer) => writer.head(),
        }
    }
}
