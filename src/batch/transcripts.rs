//! The transcripts of all runs of a batch, for a page that has them with it.
//!
//! In: the journals of all shards. Out: one transcript for each run. The chains are checked on the way. The records of one shard are
//! in memory at once, so that longer journals are refused before they are read.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::BatchError;
use super::layout;
use crate::journal::{Record, read_shared};
use crate::report::transcript;

/// The longest journals of which transcripts are made, in bytes: a browser opens a page that is as long.
const JOURNALS_BYTES_MAX: u64 = 64 << 20;

/// Returns the transcript of each run of the batch in a folder, by the run's id.
///
/// # Errors
///
/// [`BatchError::TooLongForTranscripts`]; any other [`BatchError`] where there is no batch or a journal does not hold together.
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
