//! The files in the folder of a batch, and the number of its shards.
//!
//! The input is a folder and a shard. The output is the paths of its files, and whether the folder is divided as the shard says. If
//! several shards begin at once, on one machine or on many, the first one sets the number.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::error::BatchError;
use super::shard_id::{SHARDS_MAX, ShardOf};
use crate::files::{HeldFolder, SMALL_BYTES_MAX, read_own, write_whole};
use crate::journal::{BATCH_FILE, LockedJournal};

/// The folder with the tables of redactions, one for each redacted run.
const REDACTIONS_FOLDER: &str = "redactions";

/// The version of the manifest's format.
const VERSION: u32 = 1;

/// The file mode: only the owner may read and write.
pub(in crate::batch) const PRIVATE: u32 = 0o600;

/// The manifest's statement of the number of shards.
#[derive(Deserialize, Serialize)]
#[serde(rename = "Claim")]
struct ShardClaim {
    v: u32,
    shards: u64,
}

/// Returns the path of a shard's journal.
pub(in crate::batch) fn journal_file(folder: &Path, index: u64) -> PathBuf {
    folder.join(format!("journal-{index}.jsonl"))
}

/// Returns the journals of the batch in a folder that exist, in the order of their shards.
pub(in crate::batch) fn journals(folder: &Path) -> Result<Vec<PathBuf>, BatchError> {
    let paths = (0..count(folder)?).map(|index| journal_file(folder, index));
    Ok(paths.filter(|path| path.exists()).collect())
}

/// Returns the path of a shard's results.
pub(in crate::batch) fn results_file(folder: &Path, index: u64) -> PathBuf {
    folder.join(format!("results-{index}.jsonl"))
}

/// Returns the path of a run's table of redactions, which exists only for a redacted run.
pub fn redactions_file(folder: &Path, run: &str) -> PathBuf {
    folder.join(REDACTIONS_FOLDER).join(format!("{run}.json"))
}

/// Returns whether there is a batch in this folder.
pub fn is_batch(folder: &Path) -> bool {
    folder.join(BATCH_FILE).is_file()
}

/// Reads the number of shards of the batch in this folder.
pub(in crate::batch) fn count(folder: &Path) -> Result<u64, BatchError> {
    let path = folder.join(BATCH_FILE);
    if !path.exists() {
        return Err(BatchError::NoBatch(folder.to_owned()));
    }
    let bytes = read_own(&path, SMALL_BYTES_MAX).map_err(|why| BatchError::of_manifest(&path, why))?;
    // The file is parsed as a whole first, because fields that are skipped are not checked.
    let manifest: serde_json::Result<Value> = serde_json::from_slice(&bytes);
    let claim = manifest.and_then(serde_json::from_value);
    let why = match claim {
        Ok(ShardClaim { v, .. }) if v != VERSION => {
            format!("its format is version {v}; this program reads version {VERSION}")
        }
        Ok(ShardClaim { shards, .. }) if !(1..=SHARDS_MAX).contains(&shards) => {
            format!("it counts {shards} shards, and a batch has 1 to {SHARDS_MAX}")
        }
        Ok(ShardClaim { shards, .. }) => return Ok(shards),
        Err(why) => why.to_string(),
    };
    Err(BatchError::Manifest { path, why })
}

/// Notes the number of shards, or checks that it is the same as before. Files that killed processes were writing are removed.
pub(in crate::batch) fn claim(folder: &Path, which: ShardOf) -> Result<(), BatchError> {
    let held = HeldFolder::wait(folder).map_err(BatchError::io("open", folder))?;
    held.remove_unfinished();
    claim_held(folder, which)
}

/// Does the same in a folder that this process holds.
fn claim_held(folder: &Path, which: ShardOf) -> Result<(), BatchError> {
    let path = folder.join(BATCH_FILE);
    if !path.exists() {
        let text =
            serde_json::to_string(&ShardClaim { v: VERSION, shards: which.count }).unwrap_or_default() + "\n";
        // If several shards begin at once, the first one writes the file, and the others read it.
        let own = folder.join(format!(".{BATCH_FILE}.{}.new", Uuid::now_v7()));
        write_whole(&own, &text, PRIVATE).map_err(BatchError::io("write", &own))?;
        let done = match std::fs::hard_link(&own, &path) {
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            // Some file systems have no links.
            Err(_) => std::fs::rename(&own, &path),
            Ok(()) => Ok(()),
        };
        // After a rename the temporary file no longer exists, so an error is ignored.
        let _ = std::fs::remove_file(&own);
        done.map_err(BatchError::io("write", &path))?;
    }
    let was = count(folder)?;
    if was == which.count {
        return Ok(());
    }
    if !is_begun(folder, was) && !is_held_by_others(folder, was, which) {
        // The command that claimed this number has begun nothing.
        std::fs::remove_file(&path).map_err(BatchError::io("remove", &path))?;
        return claim_held(folder, which);
    }
    Err(BatchError::Shards { path: folder.to_owned(), was, now: which })
}

/// Returns whether any of this many shards has begun a run.
pub(super) fn is_begun(folder: &Path, shards: u64) -> bool {
    (0..shards).any(|index| has_content(&journal_file(folder, index)))
}

/// Returns whether a file exists and is not empty.
pub(super) fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.len() > 0)
}

/// Returns whether another process has one of this many shards. A shard holds its journal from before it claims a number until its
/// process ends.
fn is_held_by_others(folder: &Path, shards: u64, own: ShardOf) -> bool {
    (0..shards).any(|index| index != own.index && LockedJournal::is_held(&journal_file(folder, index)))
}
