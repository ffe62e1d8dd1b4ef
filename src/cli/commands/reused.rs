//! The batches whose replies are used again, for `--reuse`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::batch::is_batch;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::provider::{Bank, ReusedReplies};
use protocol::text::counted;

/// How deep the batches of an evaluation are below its folder: within a part of it.
const DEPTH_MAX: usize = 2;

/// Reads the journals of batches: those in these folders or, for the folder of an evaluation, below them.
pub(super) fn read_reused(folders: &[PathBuf]) -> anyhow::Result<Arc<ReusedReplies>> {
    let mut banks = Vec::new();
    for folder in folders {
        let mut batches = Vec::new();
        find_batches(folder, 0, &mut batches).map_err(|why| {
            UsageError(format!("--reuse: the folder `{}` cannot be read: {why}", folder.display()))
        })?;
        if batches.is_empty() {
            let why = format!("--reuse: there is no batch in `{}`", folder.display());
            return Err(UsageError(why).into());
        }
        for batch in batches {
            // A batch that has not begun has nothing to give.
            if Bank::journals(&batch).is_ok() {
                banks.push(Bank::open(&batch)?);
            }
        }
    }
    Ok(Arc::new(ReusedReplies::new(banks)))
}

/// Prints how many requests had a reply on record. None is hardly what a person meant, so it is a warning.
pub(super) fn print_reuse(reused: &ReusedReplies, output: &Output) {
    match reused.counts() {
        (_, 0) => {}
        (0, all) => output.warn(&format!(
            "--reuse: none of {} had a reply on record; a reply is used again for the same words to a model of the same name, with the same temperature, token limit, seed and extra fields",
            counted(all, "request")
        )),
        (found, all) => {
            output.status(&format!("--reuse: {found} of {} had a reply on record", counted(all, "request")));
        }
    }
}

fn find_batches(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if is_batch(folder) {
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth == DEPTH_MAX {
        return Ok(());
    }
    let mut within: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            within.push(entry.path());
        }
    }
    within.sort();
    for path in &within {
        find_batches(path, depth + 1, found)?;
    }
    Ok(())
}
