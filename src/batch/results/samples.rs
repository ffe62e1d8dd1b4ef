//! The tasks behind groups of runs, so that a figure leads to the runs behind it.
//!
//! The input is rows of runs, one after another. The output is the tasks of each group, and the runs of each task. Groups are in the
//! order of [`Groups::finish`](super::Groups::finish). Nothing is read or written.

use std::collections::BTreeMap;

use super::groups::{By, InOrder, key};
use super::rows::ResultRow;
use protocol::OutcomeKind;

/// One run of a task.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) folder: String,
    pub(super) run: String,
    pub(super) seed: u64,
    pub(super) outcome: OutcomeKind,
    pub(super) right: Option<bool>,
    pub(super) tokens: u64,
    /// The command that shows this run alone.
    pub(super) command: String,
}

/// The runs by their group and their task.
#[derive(Debug, Default)]
pub struct Samples {
    by: Vec<By>,
    /// The runs of each task of each group, in the order of the tasks' names.
    groups: BTreeMap<Vec<InOrder>, BTreeMap<InOrder, Vec<Sample>>>,
}

impl Samples {
    /// Makes a collector without runs.
    pub fn new(by: &[By]) -> Self {
        Self { by: by.to_vec(), groups: BTreeMap::new() }
    }

    /// Adds a run.
    pub fn add(&mut self, row: &ResultRow) {
        let tasks = self.groups.entry(key(&self.by, row)).or_default();
        let sample = Sample {
            folder: row.folder.clone(),
            run: row.run.clone(),
            seed: row.seed,
            outcome: row.outcome,
            right: row.right,
            tokens: row.usage.prompt.saturating_add(row.usage.completion),
            command: show_command(row),
        };
        tasks.entry(InOrder::new(row.task.clone())).or_default().push(sample);
    }

    /// Returns the tasks of each group.
    pub(super) fn groups(&self) -> impl Iterator<Item = &BTreeMap<InOrder, Vec<Sample>>> {
        self.groups.values()
    }
}

/// Returns the command that shows a run, quoted for a shell.
fn show_command(row: &ResultRow) -> String {
    let mut words = vec!["consensus", "show", &row.folder, &row.task, "--roleset", &row.roleset];
    for (flag, value) in [("--model", &row.model), ("--arm", &row.arm)] {
        if !value.is_empty() {
            words.extend([flag, value.as_str()]);
        }
    }
    let seed = row.seed.to_string();
    words.extend(["--seed", &seed]);
    // Quoting fails only for a NUL, which no name of a batch has.
    shlex::try_join(words).unwrap_or_default()
}
