//! The removal of old runs from the folder of a server.
//!
//! The input is the folder, which no server or batch has open, a time, and which tasks are those of requests. The output is the same folder
//! without the runs of such tasks whose last record is older: their lines of results first, and then their records. A process that dies in
//! between leaves runs without a line of results, and the next start gives them theirs again. The runs of a batch stay, because its
//! next command would make them again.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;

use super::error::BatchError;
use super::layout::{PRIVATE, journal_file, results_file};
use super::shard_id::ShardOf;
use crate::files::read_line;
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
struct Seen {
    /// The request whose run it is, if it is that of a request.
    request: Option<String>,
    last_at: String,
}

/// Removes the runs of requests all of whose records are older than `before`. `request_of` returns the request of a task by its id, or `None`
/// for the task of a batch.
///
/// # Errors
///
/// [`BatchError::Journal`], also if another process has the folder open, and [`BatchError::Io`].
pub fn prune(
    folder: &Path,
    before: SystemTime,
    request_of: fn(&str) -> Option<&str>,
) -> Result<Pruned, BatchError> {
    let index = ShardOf::default().index;
    let (journal_path, results_path) = (journal_file(folder, index), results_file(folder, index));
    if !journal_path.exists() {
        return Ok(Pruned::default());
    }
    let journal = LockedJournal::take(&journal_path)?;
    let mut runs: HashMap<String, Seen> = HashMap::new();
    read_shared(&journal_path, |record: Record, _| {
        let seen = runs.entry(record.run).or_default();
        seen.last_at = record.at;
        if let Entry::Opened(spec) = record.event {
            seen.request = spec.cell.and_then(|cell| request_of(&cell.task).map(str::to_owned));
        }
        Ok(())
    })?;
    let is_old = |seen: &&Seen| humantime::parse_rfc3339(&seen.last_at).is_ok_and(|at| at < before);
    let recent: HashSet<String> =
        runs.values().filter(|seen| !is_old(seen)).filter_map(|seen| seen.request.clone()).collect();
    // A later attempt of a request is found by way of the earlier ones, so all of them stay.
    let is_removed = |seen: &Seen| seen.request.as_ref().is_some_and(|request| !recent.contains(request));
    let old: HashSet<String> =
        runs.into_iter().filter(|(_, seen)| is_removed(seen)).map(|(run, _)| run).collect();
    if old.is_empty() {
        return Ok(Pruned::default());
    }
    let rows = if results_path.exists() { remove_rows(&results_path, &old) } else { Ok(0) };
    let rows = rows.map_err(BatchError::io("write beside", &results_path))?;
    Ok(Pruned { runs: old.len(), bytes: rows + journal.remove(&old)? })
}

/// Removes the lines of results of these runs. Returns the number of bytes that are gone.
fn remove_rows(path: &Path, runs: &HashSet<String>) -> std::io::Result<u64> {
    #[derive(Deserialize)]
    struct Row {
        run: String,
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.new"));
    let copied = || {
        // A process that died may have left its file.
        let _ = std::fs::remove_file(&temporary);
        let new = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&temporary)?;
        let (mut old, mut new) = (BufReader::new(File::open(path)?), BufWriter::new(new));
        let (mut line, mut removed) = (Vec::new(), 0);
        loop {
            line.clear();
            let bytes = read_line(&mut old, &mut line)?;
            if bytes == 0 {
                break;
            }
            // A line that is no result is named when the folder is opened.
            match serde_json::from_slice(&line) {
                Ok(Row { run }) if runs.contains(&run) => removed += bytes as u64,
                Ok(_) | Err(_) => new.write_all(&line)?,
            }
        }
        new.flush()?;
        new.get_ref().sync_all()?;
        std::fs::rename(&temporary, path)?;
        Ok(removed)
    };
    copied().inspect_err(|_| {
        // The new file is useless now, and may not be there; the first error is the one that matters.
        let _ = std::fs::remove_file(&temporary);
    })
}
