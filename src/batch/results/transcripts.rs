//! The transcripts of runs of a batch, for pages that include them.
//!
//! The input is the journals of all shards. The output is one transcript for each run that is wanted. The chains are checked on the way,
//! and the events of other runs are not read. The wanted records of one shard are in memory at once, so where all runs are wanted,
//! journals that are too long are refused before they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::value::RawValue;

use crate::batch::folder::{BatchError, layout};
use crate::journal::{Record, read_shared};
use crate::report::transcript;

/// The greatest total length of journals with transcripts, in bytes: a browser can open a page of that length.
const JOURNALS_BYTES_MAX: u64 = 64 << 20;

/// Returns the transcript of each run of the batch in a folder, by the run's id.
///
/// Returns [`BatchError::TooLongForTranscripts`] if the journals are too long, and any other [`BatchError`] if there is no batch or
/// a journal is not consistent.
pub fn transcripts(folder: &Path) -> Result<BTreeMap<String, String>, BatchError> {
    let paths = layout::journals(folder)?;
    let bytes: u64 = paths.iter().filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum();
    if bytes > JOURNALS_BYTES_MAX {
        return Err(BatchError::TooLongForTranscripts {
            folder: folder.to_owned(),
            bytes,
            most: JOURNALS_BYTES_MAX,
        });
    }
    read_transcripts(folder, None)
}

/// Returns the transcript of each run of these ids, however long the journals are. Without an id, no journal is read.
///
/// Returns [`BatchError`] if there is no batch or a journal is not consistent.
pub fn transcripts_of(
    folder: &Path,
    runs: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, BatchError> {
    if runs.is_empty() {
        return Ok(BTreeMap::new());
    }
    read_transcripts(folder, Some(runs))
}

/// Reads the transcripts of these runs, or those of all runs.
fn read_transcripts(
    folder: &Path,
    only: Option<&BTreeSet<String>>,
) -> Result<BTreeMap<String, String>, BatchError> {
    let mut all = BTreeMap::new();
    for path in layout::journals(folder)? {
        let mut runs: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        read_shared(&path, |record: Record<Box<RawValue>>, _| {
            if only.is_none_or(|only| only.contains(&record.run)) {
                let record = record.read_event().map_err(|why| why.to_string())?;
                runs.entry(record.run.clone()).or_default().push(record);
            }
            Ok(())
        })?;
        for (run, records) in runs {
            match transcript(&records) {
                Ok(text) => all.insert(run, text),
                Err(why) => return Err(BatchError::Transcript { path, run, why }),
            };
        }
    }
    Ok(all)
}
