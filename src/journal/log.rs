//! Where the records of one run go.

use super::{Entry, JournalError, Record, Strand, Writer};
use crate::crypto::Digest;

/// A journal of its own, or a part of one that many runs share.
#[derive(Debug)]
pub enum Log {
    /// Its own.
    Own(Writer),
    /// Shared.
    Shared(Strand),
}

impl Log {
    /// Appends one record and returns it; durable after [`Log::sync`]. A call that is about to be made is in the system's hands when
    /// this returns, and survives the death of this process.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub fn append(&mut self, entry: Entry) -> Result<Record, JournalError> {
        match self {
            Self::Own(writer) => writer.append(entry),
            Self::Shared(strand) => match entry {
                Entry::Asked(_) => strand.append_at_once(entry),
                Entry::Opened(_)
                | Entry::Replied(_)
                | Entry::Found(_)
                | Entry::Stopped { .. }
                | Entry::Resumed { .. } => strand.append(entry),
            },
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
            Self::Shared(strand) => strand.sync().await,
        }
    }

    /// Returns the SHA-256 of the run's last line.
    #[must_use]
    pub fn head(&self) -> Digest {
        match self {
            Self::Own(writer) => writer.head(),
            Self::Shared(strand) => strand.head(),
        }
    }
}
