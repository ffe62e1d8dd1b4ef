//! The prompts of the runs of a batch, and when each began and ended, for logs of other tools.
//!
//! The input is the journals of all shards. The output is these by the run's id. The chains are checked on the way.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use super::error::BatchError;
use super::layout;
use super::results::PromptAndTimes;
use crate::journal::{Record, RunSpec, read_shared};

/// The record that begins a run, and any other.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Beginning {
    Opened(Box<RunSpec>),
    #[serde(other)]
    Later,
}

/// Returns the prompt and the times of each run of the batch in a folder.
///
/// # Errors
///
/// Returns [`BatchError`] if there is no batch or a chain is broken.
pub fn prompts_and_times(folder: &Path) -> Result<HashMap<String, PromptAndTimes>, BatchError> {
    let mut runs: HashMap<String, PromptAndTimes> = HashMap::new();
    for index in 0..layout::count(folder)? {
        let path = layout::journal_file(folder, index);
        if !path.exists() {
            continue;
        }
        read_shared(&path, |record: Record<Beginning>, _| {
            let run = runs.entry(record.run).or_default();
            if let Beginning::Opened(opened) = record.event {
                run.prompt = opened.setup.task.prompt;
                run.started_at.clone_from(&record.at);
            }
            run.ended_at = record.at;
            Ok(())
        })?;
    }
    Ok(runs)
}
