//! Stray files: files of shards that contradict the batch's number of shards.
//!
//! The input is a folder and a number of shards. The output is the files that contradict it. A shard makes its journal first, so
//! none of its other files can exist without it. Files of a shard beyond the last one belong to runs that would not be counted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::BatchError;
use super::layout;

/// Returns a message for each file whose shard is beyond the last one or has no journal.
///
/// Returns [`BatchError`], for example if there is no batch.
pub fn stray_files(folder: &Path) -> Result<Vec<String>, BatchError> {
    let found = find(folder, layout::count(folder)?)?;
    Ok(found.into_iter().map(|(path, why)| BatchError::Stray { path, why }.to_string()).collect())
}

/// Refuses a folder with a stray file. The first one is named.
///
/// Returns [`BatchError::Stray`], and [`BatchError::Io`] if the folder cannot be read.
pub(in crate::batch) fn require_no_stray_file(folder: &Path, count: u64) -> Result<(), BatchError> {
    match find(folder, count)?.pop_first() {
        Some((path, why)) => Err(BatchError::Stray { path, why }),
        None => Ok(()),
    }
}

/// Finds the stray files, each with the reason.
fn find(folder: &Path, count: u64) -> Result<BTreeMap<PathBuf, String>, BatchError> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(BatchError::io("read", folder))? {
        let path = entry.map_err(BatchError::io("read", folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((stem, index)) = shard_of(name) else { continue };
        let has_runs = matches!(stem, "journal" | "results");
        // A shard that has begun nothing does not count; it leaves an empty journal.
        if index >= count && has_runs && layout::has_content(&path) {
            let why = format!("it belongs to shard {index}, and `batch.json` counts {count} shards");
            found.insert(path, why);
        } else if index < count && !has_runs && !layout::journal_file(folder, index).exists() {
            let why = format!("it belongs to shard {index}, whose journal is missing");
            found.insert(path, why);
        }
    }
    Ok(found)
}

/// Reads the shard of a file from its name, in the form that shards write.
fn shard_of(name: &str) -> Option<(&str, u64)> {
    let (stem, extension) = name.split_once('.')?;
    let (stem, number) = stem.rsplit_once('-')?;
    let is_ours = match stem {
        "journal" | "results" | "refused" => extension == "jsonl",
        "progress" => extension == "json",
        _ => false,
    };
    let index: u64 = number.parse().ok()?;
    if is_ours && index.to_string() == number { Some((stem, index)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shard_file_names_are_recognised() {
        assert_eq!(shard_of("journal-12.jsonl"), Some(("journal", 12)));
        assert_eq!(shard_of("progress-0.json"), Some(("progress", 0)));
        for other in [
            "journal-012.jsonl",
            "journal-1.jsonl.bak",
            "journal.jsonl",
            "progress.json",
            "notes-1.jsonl",
            "results-x.jsonl",
        ] {
            assert_eq!(shard_of(other), None, "{other}");
        }
    }
}
