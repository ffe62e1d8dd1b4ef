//! How far a whole batch is: all of its shards, live or dead.
//!
//! In: a folder. Out: for each shard what its results say, which is exact, and what its process said last.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::batch_stats::{BatchStats, EndCounts};
use super::error::BatchError;
use super::shard_id::ShardOf;
use super::{layout, shard};
use crate::files::{SMALL_BYTES_MAX, read_text, write_whole};

/// What a shard's process says while it runs, in `progress-I.json`, or `progress.json` where there is but one shard.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Progress {
    /// Format version, 1.
    pub v: u32,
    /// Which shard, as I/N.
    pub shard: String,
    /// What it does.
    pub state: State,
    /// When this was written, RFC 3339.
    pub updated_at: String,
    /// How far it is.
    #[serde(flatten)]
    pub figures: BatchStats,
}

/// What a shard's process does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It runs; or has died, if it says nothing new.
    Running,
    /// It has put down what was under way.
    Stopped,
    /// All of its cells have ended.
    Ended,
}

/// One shard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardStatus {
    /// Which one.
    pub index: u64,
    /// Runs that have ended, by its results.
    pub ended: EndCounts,
    /// What its process said last.
    pub progress: Option<Progress>,
    /// Whether a process has it; null where the file system does not tell.
    pub is_live: Option<bool>,
}

impl Progress {
    /// Writes it into the batch's folder, for whoever watches.
    ///
    /// # Errors
    ///
    /// Any error of the file system.
    pub fn write(&self, folder: &Path, shard: ShardOf) -> std::io::Result<()> {
        let text = serde_json::to_string(self).unwrap_or_default() + "\n";
        write_whole(&folder.join(shard.file_name("progress", "json")), &text, layout::PRIVATE)
    }
}

/// Reads how far the batch in this folder is.
///
/// # Errors
///
/// [`BatchError`], also if there is no batch.
pub fn status(folder: &Path) -> Result<Vec<ShardStatus>, BatchError> {
    let count = layout::count(folder)?;
    let of = |index| {
        let mut ended = EndCounts::default();
        // What is being written at this moment is no line yet.
        let mut last = HashMap::new();
        shard::known(&layout::results_file(folder, index), false, |_, _, row| {
            last.insert(row.run, (row.outcome, row.right));
        })?;
        for (outcome, right) in last.into_values() {
            ended.add(outcome, right);
        }
        let text =
            read_text(&folder.join(ShardOf { index, count }.file_name("progress", "json")), SMALL_BYTES_MAX);
        let progress = text.ok().and_then(|text| serde_json::from_str(&text).ok());
        Ok(ShardStatus { index, ended, progress, is_live: is_live(&layout::journal_file(folder, index)) })
    };
    (0..count).map(of).collect()
}

/// Whether somebody writes to a journal.
fn is_live(journal: &Path) -> Option<bool> {
    let Ok(file) = File::open(journal) else { return Some(false) };
    // Given back at once: when the file is closed.
    match file.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

impl EndCounts {
    /// Adds another one up with this.
    pub fn merge(&mut self, other: &Self) {
        self.agreed += other.agreed;
        self.no_agreement += other.no_agreement;
        self.vetoed += other.vetoed;
        self.budget += other.budget;
        self.failed += other.failed;
        self.right += other.right;
        self.wrong += other.wrong;
    }
}
