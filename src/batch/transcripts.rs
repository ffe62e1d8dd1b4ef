//! The transcripts of all runs of a batch, for a page that includes them.
//!
//! The input is the journals of all shards. The output is one transcript per run. The chains are checked on the way. The records of
//! one shard are in memory at once, so journals that are too long are refused before they are read.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::BatchError;
use super::layout;
use crate::journal::{Record, read_shared};
use crate::report::transcript;

/// The greatest total length of journals with transcripts, in bytes: a browser can open a page of that length.
const JOURNALS_BYTES_MAX: u64 = 64 << 20;

/// Returns the transcript of each run of the batch in a folder, by the run's id.
///
/// # Errors
///
/// Returns [`BatchError::TooLongForTranscripts`] if the journals are too long, and any other [`BatchError`] if there is no batch or
/// a journal is not consistent.
pub fn transcripts(folder: &Path) -> Result<BTreeMap<String, String>, BatchError> {
    let shards = layout::count(folder)?;
    let paths: Vec<_> = (0..shards).map(|index| layout::journal_file(folder, index)).collect();
    let bytes: u64 = paths.iter().filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum();
    if bytes > JOURNALS_BYTES_MAX {
        return Err(BatchError::TooLongForTranscripts {
            folder: folder.to_owned(),
            bytes,
            most: JOURNALS_BYTES_MAX,
        });
    }
    let mut all = BTreeMap::new();
    for path in paths.iter().filter(|path| path.exists()) {
        let mut runs: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        read_shared(path, |record: Record, _| {
            runs.entry(record.run.clone()).or_default().push(record);
            Ok(())
        })?;
        for (run, records) in runs {
            let wrong = |why| BatchError::Transcript { path: path.clone(), run: run.clone(), why };
            all.insert(run.clone(), transcript(&records).map_err(wrong)?);
        }
    }
    Ok(all)
}
