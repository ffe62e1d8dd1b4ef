//! The gaps in a journal that many runs share: the places where lines of old runs were removed.
//!
//! The list of gaps is a file beside the journal, which names each gap by the line behind it. A reader takes a break of the chain at these
//! lines alone. The list proves nothing about the lines that are gone: a program that may write the journal may write the list too.

use std::collections::HashSet;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{JournalError, VERSION};
use crate::files::{Replacement, read_text};
use crypto::Digest;

/// The most bytes of a list.
const LIST_BYTES_MAX: u64 = 1 << 28;

/// A place where lines were removed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Gap {
    /// The number of the line behind it, as the line states it.
    seq: u64,
    /// The SHA-256 of the line that was before that line.
    prev: Digest,
}

/// The file beside the journal.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct GapList {
    v: u32,
    gaps: Vec<Gap>,
}

/// The gaps of one journal.
#[derive(Debug, Default)]
pub(super) struct Gaps(HashSet<Gap>);

impl Gaps {
    /// Reads the gaps of the journal at `path`, which has none unless there is a list beside it.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`], and [`JournalError::Damaged`] if the list is not what this program writes.
    pub(super) fn of(path: &Path) -> Result<Self, JournalError> {
        let list = list_of(path);
        let text = match read_text(&list, LIST_BYTES_MAX) {
            Ok(text) => text,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(JournalError::Io { action: "read", path: list, source }),
        };
        match serde_json::from_str(&text) {
            Ok(GapList { v: VERSION, gaps }) => Ok(Self(gaps.into_iter().collect())),
            Ok(GapList { v, .. }) => {
                let why = format!("its format is version {v}; this program reads version {VERSION}");
                Err(JournalError::Damaged { path: list, line: 1, why })
            }
            Err(why) => Err(JournalError::Damaged { path: list, line: 1, why: why.to_string() }),
        }
    }

    /// Returns whether lines were removed before the line with this number, which followed from this digest.
    pub(super) fn are_before(&self, seq: u64, prev: Digest) -> bool {
        self.0.contains(&Gap { seq, prev })
    }

    /// Adds the gap before the line with this number, which followed from this digest.
    pub(super) fn add(&mut self, seq: u64, prev: Digest) {
        self.0.insert(Gap { seq, prev });
    }

    /// Writes the list of this journal, durably.
    pub(super) fn write(self, journal: &Path) -> std::io::Result<()> {
        let mut gaps: Vec<Gap> = self.0.into_iter().collect();
        gaps.sort_by_key(|gap| gap.seq);
        let text = serde_json::to_string(&GapList { v: VERSION, gaps })? + "\n";
        let mut list = Replacement::of(&list_of(journal))?;
        list.write_all(text.as_bytes())?;
        list.commit()
    }
}

/// Returns whether runs were removed from the journal at `path`.
pub fn has_gaps(path: &Path) -> bool {
    list_of(path).exists()
}

/// Returns the path of the list of gaps: that of the journal with the ending `gaps.json`.
pub(super) fn list_of(journal: &Path) -> PathBuf {
    journal.with_extension("gaps.json")
}
