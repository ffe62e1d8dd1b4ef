//! The background of a figure: its provenance, and the tasks of a group with their runs.
//!
//! The input is provenances and samples. The output is the values that the template shows.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::batch::manifest::Provenance;
use crate::batch::results::samples::{Sample, Tasks};
use crypto::Digest;
use protocol::OutcomeKind;
use protocol::text::escape;

/// The most tasks of a group that are listed; a browser has to hold them all.
const TASKS_MAX: usize = 1000;

/// The provenance of a folder's results.
#[derive(Serialize)]
pub(super) struct ProvenanceShown {
    folder: String,
    commands: Vec<CommandShown>,
    data: Vec<FileShown>,
    results: Vec<FileShown>,
}

#[derive(Serialize)]
struct CommandShown {
    at: String,
    program: String,
    line: String,
}

#[derive(Serialize)]
struct FileShown {
    name: String,
    sha256: String,
}

impl ProvenanceShown {
    pub(super) fn new(provenance: &Provenance) -> Self {
        let file = |name: &String, sha256: &Digest| FileShown {
            name: escape::terminal(name),
            sha256: sha256.to_string(),
        };
        let commands = provenance.commands.iter().map(|command| CommandShown {
            at: escape::terminal(&command.at),
            program: escape::terminal(&command.program),
            line: escape::terminal(&shell_line(&command.words)),
        });
        Self {
            folder: escape::terminal(&provenance.folder),
            commands: commands.collect(),
            data: provenance.data.iter().map(|data| file(&data.name, &data.sha256)).collect(),
            results: provenance.results.iter().map(|(name, sha256)| file(name, sha256)).collect(),
        }
    }
}

/// Returns the words of a command, quoted for a shell.
fn shell_line(words: &[String]) -> String {
    let words = std::iter::once("consensus").chain(words.iter().map(String::as_str));
    // No word that a program receives has a NUL.
    shlex::try_join(words).unwrap_or_default()
}

/// The tasks of a group.
#[derive(Default, Serialize)]
pub(super) struct TasksShown {
    rows: Vec<TaskShown>,
    /// The number of tasks that are not listed.
    more: usize,
}

#[derive(Serialize)]
struct TaskShown {
    name: String,
    agreed: usize,
    right: Option<usize>,
    of: usize,
    /// The average number of tokens.
    tokens: u64,
    runs: Vec<RunShown>,
}

#[derive(Serialize)]
struct RunShown {
    seed: u64,
    words: &'static str,
    /// The anchor of the run's transcript on this page.
    anchor: Option<usize>,
    command: String,
}

/// The number of each transcript on the page, by its folder and its run. Two folders can hold one run each with the same id, since
/// the id follows from the names of the task, the roleset, the model and the arm, and from the seed.
pub(super) type Anchors<'a> = BTreeMap<(&'a str, &'a str), usize>;

impl TasksShown {
    pub(super) fn new(tasks: &Tasks, anchors: &Anchors<'_>) -> Self {
        let rows = tasks.iter().take(TASKS_MAX);
        let rows = rows.map(|(task, runs)| TaskShown::new(&task.name, runs, anchors)).collect();
        Self { rows, more: tasks.len().saturating_sub(TASKS_MAX) }
    }
}

impl TaskShown {
    fn new(name: &str, samples: &[Sample], anchors: &Anchors<'_>) -> Self {
        let mut samples: Vec<&Sample> = samples.iter().collect();
        samples.sort_by_key(|sample| sample.seed);
        let runs = samples.iter().map(|sample| RunShown {
            seed: sample.seed,
            words: in_words(sample),
            anchor: anchors.get(&(sample.folder.as_str(), sample.run.as_str())).copied(),
            command: escape::terminal(&sample.command),
        });
        let is_known = samples.iter().any(|sample| sample.right.is_some());
        let tokens: u64 = samples.iter().map(|sample| sample.tokens).fold(0, u64::saturating_add);
        Self {
            name: escape::terminal(name),
            agreed: samples.iter().filter(|sample| sample.outcome == OutcomeKind::Agreed).count(),
            right: is_known.then(|| samples.iter().filter(|sample| sample.right == Some(true)).count()),
            of: samples.len(),
            tokens: tokens / (samples.len() as u64).max(1),
            runs: runs.collect(),
        }
    }
}

fn in_words(sample: &Sample) -> &'static str {
    match (sample.outcome, sample.right) {
        (OutcomeKind::Agreed, Some(true)) => "right",
        (OutcomeKind::Agreed, Some(false)) => "wrong",
        (OutcomeKind::Agreed, None) => "agreed",
        (OutcomeKind::NoAgreement, _) => "no agreement",
        (OutcomeKind::Abstained, _) => "abstained",
        (OutcomeKind::Vetoed, _) => "vetoed",
        (OutcomeKind::Budget, _) => "budget",
        (OutcomeKind::Failed, _) => "failed",
        (OutcomeKind::Interrupted, _) => "interrupted",
    }
}
