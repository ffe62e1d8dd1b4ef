//! Stray files: files of shards that contradict the batch's number of shards.
//!
//! The input is a folder and a number of shards. The output is the files that contradict it. A shard makes its journal first, so
//! none of its other files can exist without it. Files of a shard beyond the last one belong to runs that would not be counted.

use std::path::{Path, PathBuf};

use super::error::BatchError;
use super::layout;

/// A file that should not be there.
#[derive(Clone, Debug)]
pub(super) struct Stray {
    path: PathBuf,
    why: String,
}

impl From<Stray> for BatchError {
    fn from(Stray { path, why }: Stray) -> Self {
        Self::Stray { path, why }
    }
}

/// Returns a message for each file whose shard is beyond the last one or has no journal.
///
/// # Errors
///
/// Returns [`BatchError`], for example if there is no batch.
pub fn strays(folder: &Path) -> Result<Vec<String>, BatchError> {
    let found = find(folder, layout::count(folder)?)?;
    Ok(found.into_iter().map(|stray| BatchError::from(stray).to_string()).collect())
}

/// Finds the stray files, in the order of their names.
pub(super) fn find(folder: &Path, count: u64) -> Result<Vec<Stray>, BatchError> {
    let mut strays = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(BatchError::io("read", folder))? {
        let path = entry.map_err(BatchError::io("read", folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((stem, index)) = shard_of(name) else { continue };
        let has_runs = matches!(stem, "journal" | "results");
        // A shard that has begun nothing does not count; it leaves an empty journal.
        let is_begun = || std::fs::metadata(&path).is_ok_and(|about| about.len() > 0);
        if index >= count && has_runs && is_begun() {
            let why = format!("it belongs to shard {index}, and `batch.json` counts {count} shards");
            strays.push(Stray { path, why });
        } else if index < count && !has_runs && !layout::journal_file(folder, index).exists() {
            let why = format!("it belongs to shard {index}, whose journal is missing");
            strays.push(Stray { path, why });
        }
    }
    strays.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(strays)
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
    (is_ours && index.to_string() == number).then_some((stem, index))
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
