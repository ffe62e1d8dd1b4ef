//! The background of a figure: its provenance, and the tasks of a group with their runs.
//!
//! The input is provenances and samples. The output is the values that the template shows.

use std::collections::BTreeMap;

use minijinja::{Value, context};

use crate::batch::folder::Provenance;
use crate::batch::results::groups::InOrder;
use crate::batch::results::samples::Sample;
use crypto::Digest;
use protocol::OutcomeKind;
use protocol::text::escape;

/// The most tasks of a group that are listed; a browser has to hold them all.
const TASKS_MAX: usize = 1000;

/// Returns the provenance of a folder's results, as the template shows it.
pub(super) fn show_provenance(provenance: &Provenance) -> Value {
    let mut commands = Vec::new();
    for command in &provenance.commands {
        commands.push(context! {
            at => escape::terminal(&command.at),
            program => escape::terminal(&command.program),
            line => escape::terminal(&shell_line(&command.words)),
        });
    }
    let data: Vec<Value> = provenance.data.iter().map(|data| show_file(&data.name, &data.sha256)).collect();
    let results: Vec<Value> =
        provenance.results.iter().map(|(name, sha256)| show_file(name, sha256)).collect();
    context! { folder => escape::terminal(&provenance.folder), commands, data, results }
}

fn show_file(name: &str, sha256: &Digest) -> Value {
    context! { name => escape::terminal(name), sha256 => sha256.to_string() }
}

/// Returns the words of a command, quoted for a shell.
fn shell_line(words: &[String]) -> String {
    let words = std::iter::once("consensus").chain(words.iter().map(String::as_str));
    // No word that a program receives has a NUL.
    shlex::try_join(words).unwrap_or_default()
}

/// Returns the tasks of a group, each with its runs, as the template shows them. `anchors` has the number of each transcript on the page,
/// by its folder and its run. Two folders can hold one run each with the same id, since the id follows from the names and the seed.
pub(super) fn list_tasks(
    tasks: &BTreeMap<InOrder, Vec<Sample>>,
    anchors: &BTreeMap<(&str, &str), usize>,
) -> Value {
    let mut rows = Vec::new();
    for (task, samples) in tasks.iter().take(TASKS_MAX) {
        rows.push(show_task(&task.name, samples, anchors));
    }
    context! { rows, more => tasks.len().saturating_sub(TASKS_MAX) }
}

fn show_task(name: &str, samples: &[Sample], anchors: &BTreeMap<(&str, &str), usize>) -> Value {
    let mut samples: Vec<&Sample> = samples.iter().collect();
    samples.sort_by_key(|sample| sample.seed);
    let mut runs = Vec::new();
    for sample in &samples {
        runs.push(context! {
            seed => sample.seed,
            words => describe_end(sample),
            // The anchor of the run's transcript on this page.
            anchor => anchors.get(&(sample.folder.as_str(), sample.run.as_str())).copied(),
            command => escape::terminal(&sample.command),
        });
    }
    let is_known = samples.iter().any(|sample| sample.right.is_some());
    let right = samples.iter().filter(|sample| sample.right == Some(true)).count();
    let tokens: u64 = samples.iter().map(|sample| sample.tokens).fold(0, u64::saturating_add);
    context! {
        name => escape::terminal(name),
        agreed => samples.iter().filter(|sample| sample.outcome == OutcomeKind::Agreed).count(),
        right => if is_known { Some(right) } else { None },
        of => samples.len(),
        tokens => tokens / (samples.len() as u64).max(1),
        runs,
    }
}

fn describe_end(sample: &Sample) -> &'static str {
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
