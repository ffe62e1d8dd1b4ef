//! The destination of one run's records.

use super::{Entry, JournalError, Record, RunWriter, Writer};
use crypto::Digest;

/// A journal of the run's own, or the run's part of a shared one.
#[derive(Debug)]
pub enum Log {
    /// The run's own journal.
    Own(Writer),
    /// A part of a journal that many runs share.
    Shared(RunWriter),
}

impl Log {
    /// Appends one record and returns it. The record survives the death of this process after [`Log::written`], and
    /// that of the machine after [`Log::sync`].
    pub fn append(&mut self, entry: Entry) -> Result<Record, JournalError> {
        match self {
            Self::Own(writer) => writer.append(entry),
            Self::Shared(writer) => writer.append(entry),
        }
    }

    /// Hands all appended records to the operating system.
    pub async fn written(&self) -> Result<(), JournalError> {
        match self {
            // A journal of the run's own writes each record at once.
            Self::Own(_) => Ok(()),
            Self::Shared(writer) => writer.written().await,
        }
    }

    /// Makes all appended records durable.
    pub async fn sync(&self) -> Result<(), JournalError> {
        match self {
            Self::Own(writer) => writer.sync(),
            Self::Shared(writer) => writer.sync().await,
        }
    }

    /// Returns the SHA-256 of the run's last line.
    pub fn head(&self) -> Digest {
        match self {
            Self::Own(writer) => writer.head(),
            Self::Shared(writer) => writer.head(),
        }
    }
}
