//! The status of a whole batch: all of its shards, live or dead.
//!
//! The input is a folder. The output for each shard is the counts from its results, which are exact, and the last report of its
//! process.

use std::collections::HashMap;
use std::fs::TryLockError;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::batch_stats::{BatchStats, EndCounts};
use super::shard;
use crate::batch::folder::{BatchError, ShardOf, layout};
use crate::files::{HeldFolder, SMALL_BYTES_MAX, open_own, read_own, write_whole};

/// The report of a shard's running process, in `progress-I.json`, or `progress.json` for a single shard.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Progress {
    /// The format version, 1.
    pub v: u32,
    /// The shard, as I/N.
    pub shard: String,
    /// The state of the process.
    pub state: ProcessState,
    /// The time of writing, RFC 3339.
    pub updated_at: String,
    /// The progress of the shard.
    #[serde(flatten)]
    pub figures: BatchStats,
}

/// The state of a shard's process.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// The process runs, or has died if the report is old.
    Running,
    /// The process has stopped and interrupted its runs.
    Stopped,
    /// All cells of the shard have ended.
    Ended,
}

/// The status of one shard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardStatus {
    /// The index of the shard.
    pub index: u64,
    /// The runs that have ended, from the results.
    pub ended: EndCounts,
    /// The last report of the process.
    pub progress: Option<Progress>,
    /// Whether a process has the shard; null if the file system does not tell.
    pub is_live: Option<bool>,
}

impl ShardStatus {
    /// Returns whether all cells of the shard have ended.
    pub fn has_ended(&self) -> bool {
        let state = self.progress.as_ref().map(|progress| progress.state);
        state == Some(ProcessState::Ended) && self.is_live != Some(true)
    }
}

impl Progress {
    /// Makes the report of a moment.
    pub fn new(shard: ShardOf, state: ProcessState, now: SystemTime, figures: BatchStats) -> Self {
        let updated_at = humantime::format_rfc3339_seconds(now).to_string();
        Self { v: 1, shard: shard.to_string(), state, updated_at, figures }
    }

    /// Writes the report into the batch's folder, for watchers.
    ///
    /// Returns any error of the file system.
    pub fn write(&self, folder: &Path, shard: ShardOf) -> std::io::Result<()> {
        let text = serde_json::to_string(self).unwrap_or_default() + "\n";
        let _held = HeldFolder::wait(folder)?;
        write_whole(&folder.join(shard.file_name("progress", "json")), &text, layout::PRIVATE)
    }
}

/// Reads the status of the batch in this folder.
///
/// Returns [`BatchError`], for example if there is no batch.
pub fn status(folder: &Path) -> Result<Vec<ShardStatus>, BatchError> {
    let count = layout::count(folder)?;
    let mut shards = Vec::new();
    for index in 0..count {
        let mut ended = EndCounts::default();
        // A line that is only half written does not count yet.
        let mut last = HashMap::new();
        shard::read_result_ends(&layout::results_file(folder, index), false, |_, _, row| {
            last.insert(row.run, (row.outcome, row.right));
        })?;
        for (outcome, right) in last.into_values() {
            ended.add(outcome, right);
        }
        let file = folder.join(ShardOf { index, count }.file_name("progress", "json"));
        let bytes = read_own(&file, SMALL_BYTES_MAX);
        let progress = bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let is_live = is_live(&layout::journal_file(folder, index));
        shards.push(ShardStatus { index, ended, progress, is_live });
    }
    Ok(shards)
}

/// Returns whether a process writes to a journal.
pub(in crate::batch) fn is_live(journal: &Path) -> Option<bool> {
    let Ok(file) = open_own(journal) else { return Some(false) };
    // The lock is released at once, when the file is closed.
    match file.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

impl EndCounts {
    /// Adds other counts to these.
    pub fn merge(&mut self, other: &Self) {
        self.agreed += other.agreed;
        self.no_agreement += other.no_agreement;
        self.abstained += other.abstained;
        self.vetoed += other.vetoed;
        self.budget += other.budget;
        self.failed += other.failed;
        self.right += other.right;
        self.wrong += other.wrong;
    }
}
