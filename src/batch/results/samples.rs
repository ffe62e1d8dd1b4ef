//! The tasks behind groups of runs, so that a figure leads to the runs behind it.
//!
//! The input is rows of runs, one after another. The output is the tasks of each group, and the runs of each task. Groups are in the
//! order of [`Groups::finish`](super::Groups::finish). Nothing is read or written.

use std::collections::BTreeMap;

use super::groups::{By, InOrder, key};
use super::rows::Told;
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
    groups: BTreeMap<Vec<InOrder>, Tasks>,
}

/// The runs of each task, in the order of the tasks' names.
pub(super) type Tasks = BTreeMap<InOrder, Vec<Sample>>;

impl Samples {
    /// Makes a collector without runs.
    pub fn new(by: &[By]) -> Self {
        Self { by: by.to_vec(), groups: BTreeMap::new() }
    }

    /// Adds a run.
    pub fn add(&mut self, told: &Told) {
        let tasks = self.groups.entry(key(&self.by, told)).or_default();
        let sample = Sample {
            folder: told.folder.clone(),
            run: told.run.clone(),
            seed: told.seed,
            outcome: told.outcome,
            right: told.right,
            tokens: told.usage.prompt.saturating_add(told.usage.completion),
            command: command(told),
        };
        tasks.entry(InOrder::new(told.task.clone())).or_default().push(sample);
    }

    /// Returns the tasks of each group.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Tasks> {
        self.groups.values()
    }
}

/// Returns the command that shows a run, quoted for a shell.
fn command(told: &Told) -> String {
    let mut words = vec!["consensus", "show", &told.folder, &told.task, "--roleset", &told.roleset];
    for (flag, value) in [("--model", &told.model), ("--arm", &told.arm)] {
        words.extend(Some([flag, value]).filter(|_| !value.is_empty()).into_iter().flatten());
    }
    let seed = told.seed.to_string();
    words.extend(["--seed", &seed]);
    // Quoting fails only for a NUL, which no name of a batch has.
    shlex::try_join(words).unwrap_or_default()
}
