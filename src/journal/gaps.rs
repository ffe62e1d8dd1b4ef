//! The gaps in a journal that many runs share: the places where lines of old runs were removed.
//!
//! The list of gaps is a file beside the journal, which names each gap by the line behind it. A reader takes a break of the chain at these
//! lines alone. The list proves nothing about the lines that are gone: a program that may write the journal may write the list too.
//!
//! Only the folder of a server that removes old runs has such a list, and its manifest says so. Anywhere else a list is damage: it would
//! cut chosen runs out of a batch.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BATCH_FILE, JournalError, VERSION};
use crate::files::{Replacement, SMALL_BYTES_MAX, read_own};
use crypto::Digest;

/// The most bytes of a list.
const LIST_BYTES_MAX: u64 = 1 << 28;

/// The reason why a list of gaps is refused.
const OF_NO_SERVER: &str = "lines were removed from the journal, and `batch.json` does not say that a server removes old runs here; \
     `consensus verify --with-gaps` reads what is left";

/// The lists of gaps that a reader takes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum GapRule {
    /// The list in a folder whose manifest says that a server removes old runs from it.
    #[default]
    OfServer,
    /// Any list, because a person has asked for it.
    Any,
}

/// The lines that were removed from a journal, as far as a line behind them shows it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct RemovedLines {
    /// The places where lines were removed.
    #[serde(rename = "removed_places")]
    pub places: u64,
    /// The number of the lines.
    #[serde(rename = "removed_lines")]
    pub lines: u64,
}

impl RemovedLines {
    /// Adds one place with so many lines, or none.
    pub fn add(&mut self, lines: u64) {
        self.places += u64::from(lines > 0);
        self.lines = self.lines.saturating_add(lines);
    }

    /// Adds the lines that were removed from another journal.
    pub fn merge(&mut self, other: Self) {
        self.places += other.places;
        self.lines = self.lines.saturating_add(other.lines);
    }
}

/// A place where lines were removed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields)]
struct Gap {
    /// The number of the line behind it, as the line states it.
    seq: u64,
    /// The SHA-256 of the line that was before that line.
    prev: Digest,
}

/// The gaps of one journal, in the form of the file beside it: ordered by the lines behind them.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename = "GapList")]
pub(super) struct Gaps {
    v: u32,
    gaps: BTreeSet<Gap>,
}

impl Default for Gaps {
    fn default() -> Self {
        Self { v: VERSION, gaps: BTreeSet::new() }
    }
}

impl Gaps {
    /// Reads the gaps of the journal at `path`, which has none unless there is a list beside it.
    ///
    /// Returns [`JournalError::Io`], and [`JournalError::Damaged`] if the list is not what this program writes, or if this rule allows none.
    pub(super) fn of(path: &Path, rule: GapRule) -> Result<Self, JournalError> {
        let list = list_of(path);
        let bytes = match read_own(&list, LIST_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(why) => return Err(JournalError::reading(&list, 1, why)),
        };
        if rule == GapRule::OfServer && !has_removals(path) {
            return Err(JournalError::Damaged { path: list, line: 1, why: OF_NO_SERVER.to_owned() });
        }
        let why = match serde_json::from_slice::<Self>(&bytes) {
            Ok(gaps) if gaps.v == VERSION => return Ok(gaps),
            Ok(Self { v, .. }) => format!("its format is version {v}; this program reads version {VERSION}"),
            Err(why) => why.to_string(),
        };
        Err(JournalError::Damaged { path: list, line: 1, why })
    }

    /// Returns whether lines were removed before the line with this number, which followed from this digest.
    pub(super) fn are_before(&self, seq: u64, prev: Digest) -> bool {
        self.gaps.contains(&Gap { seq, prev })
    }

    /// Adds the gap before the line with this number, which followed from this digest.
    pub(super) fn add(&mut self, seq: u64, prev: Digest) {
        self.gaps.insert(Gap { seq, prev });
    }

    /// Writes the list of this journal, durably.
    pub(super) fn write(&self, journal: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string(self)? + "\n";
        let mut list = Replacement::of(&list_of(journal))?;
        list.write_all(text.as_bytes())?;
        list.commit()
    }
}

/// Returns whether the manifest beside the journal at `path` says that a server removes old runs.
pub fn has_removals(path: &Path) -> bool {
    let Ok(bytes) = read_own(&path.with_file_name(BATCH_FILE), SMALL_BYTES_MAX) else { return false };
    serde_json::from_slice::<Value>(&bytes).is_ok_and(|manifest| manifest["removes_runs"] == true)
}

/// Returns the path of the list of gaps: that of the journal with the ending `gaps.json`.
pub(super) fn list_of(journal: &Path) -> PathBuf {
    journal.with_extension("gaps.json")
}
