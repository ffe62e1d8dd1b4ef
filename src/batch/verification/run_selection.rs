//! One run of a batch, read back from the journal that it shares with other runs.
//!
//! The input is a folder, and the task or the id of the run, with as much of its roleset, model, arm and seed as was given. The
//! output is each run that fits, as if it had a journal of its own. The chain of each journal is checked to its end, so no run is
//! shown from a journal that was changed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::verify::NO_CELL;
use crate::batch::folder::{BatchError, layout};
use crate::journal::{Entry, InBatch, Journal, Record, RunSpec, read_shared};
use crypto::Digest;

/// The fewest characters of a run's id by which it is found.
const ID_CHARS_MIN: usize = 6;

/// A choice of runs of a batch.
#[derive(Clone, Debug, Default)]
pub struct RunSelector {
    /// The id of their task; or the id of one run, or its beginning or end, if no task has that name.
    pub name: String,
    /// The roleset, if it was given.
    pub roleset: Option<String>,
    /// The model as it was named, if it was given.
    pub model: Option<String>,
    /// The arm, if it was given.
    pub arm: Option<String>,
    /// The seed, if it was given.
    pub seed: Option<u64>,
}

/// The label of a cell, which identifies its run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CellLabel {
    /// The task's id.
    pub task: String,
    pub roleset: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// The arm; empty without a name.
    pub arm: String,
    pub seed: u64,
}

/// A run of a batch that a selector has found, with its records.
#[derive(Clone, Debug)]
pub struct SelectedRun {
    /// The label of its cell.
    pub cell: CellLabel,
    /// The records, with the path of the journal that holds them.
    pub journal: Journal,
}

impl RunSelector {
    fn fits(&self, cell: &CellLabel) -> bool {
        self.roleset.as_ref().is_none_or(|roleset| *roleset == cell.roleset)
            && self.model.as_ref().is_none_or(|model| *model == cell.model)
            && self.arm.as_ref().is_none_or(|arm| *arm == cell.arm)
            && self.seed.is_none_or(|seed| seed == cell.seed)
    }

    fn is_id(&self, run: &str) -> bool {
        let name = &self.name;
        name.len() >= ID_CHARS_MIN && (run.starts_with(name) || run.ends_with(name))
    }
}

/// Finds the runs that fit, in the order of their shards and their beginnings.
///
/// Returns [`BatchError`], for example if there is no batch or a chain is broken.
pub fn select_runs(folder: &Path, selector: &RunSelector) -> Result<Vec<SelectedRun>, BatchError> {
    let mut found = Vec::new();
    for path in layout::journals(folder)? {
        found.extend(select_in_shard(&path, selector)?);
    }
    if found.iter().any(|run| run.cell.task == selector.name) {
        found.retain(|run| run.cell.task == selector.name);
    }
    Ok(found)
}

/// Returns the runs that fit in the journal of one shard.
fn select_in_shard(path: &Path, selector: &RunSelector) -> Result<Vec<SelectedRun>, BatchError> {
    // The runs in the order of their beginnings.
    let mut order: BTreeMap<u64, String> = BTreeMap::new();
    let mut runs: HashMap<String, SelectedRun> = HashMap::new();
    read_shared(path, |record: Record, line| {
        if let Entry::Opened(opened) = &record.event {
            let cell = label_of(opened).ok_or(NO_CELL)?;
            if (cell.task == selector.name || selector.is_id(&record.run)) && selector.fits(&cell) {
                order.insert(line.number, record.run.clone());
                let journal = Journal {
                    path: path.to_owned(),
                    records: Vec::new(),
                    head: Digest::ZERO,
                    whole_bytes: 0,
                    torn_bytes: 0,
                    is_excerpt: true,
                };
                runs.insert(record.run.clone(), SelectedRun { cell, journal });
            }
        }
        if let Some(SelectedRun { journal, .. }) = runs.get_mut(&record.run) {
            journal.head = line.sha256;
            journal.whole_bytes += line.bytes as u64 + 1;
            journal.records.push(record);
        }
        Ok(())
    })?;
    Ok(order.values().filter_map(|run| runs.remove(run)).collect())
}

/// Returns the label of a run from its first record.
fn label_of(opened: &RunSpec) -> Option<CellLabel> {
    let InBatch { task, model, arm, .. } = opened.cell.clone()?;
    Some(CellLabel { task, roleset: opened.setup.roleset.clone(), model, arm, seed: opened.setup.seed })
}
