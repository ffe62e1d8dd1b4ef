//! The removal of old runs from the folder of a server.
//!
//! The input is the folder, which no server or batch has open, a time, and which tasks are those of requests. The output is the same folder
//! without the runs of such tasks whose last record is older: their lines of results first, and then their records. A process that dies in
//! between leaves runs without a line of results, and the next start gives them theirs again. The runs of a batch stay, because its
//! next command would make them again.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::Path;
use std::time::SystemTime;

use super::result_line::RowId;
use super::shard::Shard;
use crate::batch::folder::layout::{journal_file, results_file};
use crate::batch::folder::manifest::{has_commands, note_removals};
use crate::batch::folder::{BatchError, ShardOf};
use crate::files::{Replacement, read_line};
use crate::journal::{Entry, LockedJournal, Record, read_shared};

/// The runs that were removed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pruned {
    /// The number of runs.
    pub runs: usize,
    /// The bytes of their lines.
    pub bytes: u64,
}

/// A run of the journal.
#[derive(Default)]
struct LastUse {
    /// The request whose run it is, if it is that of a request.
    request: Option<String>,
    last_at: String,
}

/// Removes the runs of requests all of whose records are older than `before`. `request_of` returns the request of a task by its id, or
/// `None` for the task of a batch.
///
/// Returns [`BatchError::OfBatch`] for the folder of a batch, the errors of [`Shard::open`], also if another process has the folder open, and
/// [`BatchError::Io`].
pub fn prune(
    folder: &Path,
    before: SystemTime,
    request_of: fn(&str) -> Option<&str>,
) -> Result<Pruned, BatchError> {
    let which = ShardOf::default();
    let index = which.index;
    let (journal_path, results_path) = (journal_file(folder, index), results_file(folder, index));
    if !journal_path.exists() {
        return Ok(Pruned::default());
    }
    // Nothing is removed from a folder that would be refused.
    drop(Shard::open(folder, which)?);
    if has_commands(folder)? {
        return Err(BatchError::OfBatch(folder.to_owned()));
    }
    let journal = LockedJournal::take(&journal_path)?;
    let mut runs: HashMap<String, LastUse> = HashMap::new();
    read_shared(&journal_path, |record: Record, _| {
        let run = runs.entry(record.run).or_default();
        run.last_at = record.at;
        if let Entry::Opened(spec) = record.event {
            run.request = spec.cell.and_then(|cell| request_of(&cell.task).map(str::to_owned));
        }
        Ok(())
    })?;
    let mut recent: HashSet<String> = HashSet::new();
    for run in runs.values() {
        let is_old = humantime::parse_rfc3339(&run.last_at).is_ok_and(|at| at < before);
        if !is_old {
            recent.extend(run.request.clone());
        }
    }
    let mut old: HashSet<String> = HashSet::new();
    for (id, run) in runs {
        // A later attempt of a request is found by way of the earlier ones, so all of them stay.
        if run.request.is_some_and(|request| !recent.contains(&request)) {
            old.insert(id);
        }
    }
    if old.is_empty() {
        return Ok(Pruned::default());
    }
    // A list of gaps counts only where the manifest allows it, so the manifest is changed first.
    note_removals(folder)?;
    let rows = remove_rows(&results_path, &old).map_err(BatchError::io("write beside", &results_path))?;
    Ok(Pruned { runs: old.len(), bytes: rows + journal.remove(&old)? })
}

/// Removes the lines of results of these runs. Returns the number of bytes that are gone.
fn remove_rows(path: &Path, runs: &HashSet<String>) -> std::io::Result<u64> {
    let (mut old, mut new) = (BufReader::new(File::open(path)?), Replacement::of(path)?);
    let (mut line, mut removed) = (Vec::new(), 0);
    loop {
        line.clear();
        let bytes = read_line(&mut old, &mut line)?;
        if bytes == 0 {
            break;
        }
        let RowId { run } = serde_json::from_slice(&line)?;
        if runs.contains(&run) {
            removed += bytes as u64;
        } else {
            new.write_all(&line)?;
        }
    }
    new.commit()?;
    Ok(removed)
}
