//! What is in the folder of a batch, and into how many shards it is divided.
//!
//! In: a folder and a shard. Out: where its files are, and whether the folder is divided as the shard says. Of shards that begin at
//! once, on one machine or on many, the first one says it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::error::BatchError;
use super::shard_id::{SHARDS_MAX, ShardOf};
use crate::files::{SMALL_BYTES_MAX, read, write_whole};

/// The file that says what a batch is made of.
pub(super) const BATCH_FILE: &str = "batch.json";

/// The folder with the tables of redactions, of which each run that is redacted has one.
const REDACTIONS_FOLDER: &str = "redactions";

/// The version of its form.
const VERSION: u32 = 1;

/// Files are their owner's alone.
pub(super) const PRIVATE: u32 = 0o600;

/// What the manifest says of how the folder is divided.
#[derive(Deserialize, Serialize)]
struct Claim {
    v: u32,
    shards: u64,
}

/// Where a shard's journal is.
pub(super) fn journal_file(folder: &Path, index: u64) -> PathBuf {
    folder.join(format!("journal-{index}.jsonl"))
}

/// Where a shard's results are.
pub(super) fn results_file(folder: &Path, index: u64) -> PathBuf {
    folder.join(format!("results-{index}.jsonl"))
}

/// Where the table of redactions of a run is, if it has one.
#[must_use]
pub fn redactions_file(folder: &Path, run: &str) -> PathBuf {
    folder.join(REDACTIONS_FOLDER).join(format!("{run}.json"))
}

/// Whether there is a batch in this folder.
#[must_use]
pub fn is_batch(folder: &Path) -> bool {
    folder.join(BATCH_FILE).is_file()
}

/// Reads how many shards the batch in this folder has.
pub(super) fn count(folder: &Path) -> Result<u64, BatchError> {
    let path = folder.join(BATCH_FILE);
    let bytes = read(&path, SMALL_BYTES_MAX).map_err(BatchError::io("read", &path))?;
    let wrong = |why: String| BatchError::Manifest { path: path.clone(), why };
    // Read whole first: what is passed over is not looked at.
    let manifest: serde_json::Result<Value> = serde_json::from_slice(&bytes);
    let claim = manifest.and_then(serde_json::from_value);
    let Claim { v, shards } = claim.map_err(|why| wrong(why.to_string()))?;
    if v != VERSION {
        return Err(wrong(format!("its format is version {v}; this program reads version {VERSION}")));
    }
    if !(1..=SHARDS_MAX).contains(&shards) {
        return Err(wrong(format!("there are 1 to {SHARDS_MAX} shards, and it counts {shards}")));
    }
    Ok(shards)
}

/// Notes how many shards there are, or checks that there are as many as before.
pub(super) fn claim(folder: &Path, which: ShardOf) -> Result<(), BatchError> {
    let path = folder.join(BATCH_FILE);
    if !path.exists() {
        let text =
            serde_json::to_string(&Claim { v: VERSION, shards: which.count }).unwrap_or_default() + "\n";
        // Of shards that begin at once the first one says it, and the others read it.
        let own = folder.join(format!(".{BATCH_FILE}.{}", Uuid::now_v7()));
        write_whole(&own, &text, PRIVATE).map_err(BatchError::io("write", &own))?;
        let done = match std::fs::hard_link(&own, &path) {
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            // Some file systems have no links.
            Err(_) => std::fs::rename(&own, &path),
            Ok(()) => Ok(()),
        };
        // Where it has its new name already there is none of this one.
        let _ = std::fs::remove_file(&own);
        done.map_err(BatchError::io("write", &path))?;
    }
    let was = count(folder)?;
    if was == which.count {
        return Ok(());
    }
    if !is_begun(folder, was) {
        // The command that said so has begun nothing.
        std::fs::remove_file(&path).map_err(BatchError::io("remove", &path))?;
        return claim(folder, which);
    }
    Err(BatchError::Shards { path: folder.to_owned(), was, now: which })
}

/// Whether any of so many shards has begun a run.
pub(super) fn is_begun(folder: &Path, shards: u64) -> bool {
    let is_begun = |index| std::fs::metadata(journal_file(folder, index)).is_ok_and(|about| about.len() > 0);
    (0..shards).any(is_begun)
}
