//! The background of a figure: its provenance, the tasks of a group with their runs, and their transcripts.
//!
//! The input is provenances, samples and transcripts. The output is the values that the template shows.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::batch::manifest::Provenance;
use crate::batch::results::samples::{Sample, Tasks};
use crate::crypto::Digest;
use crate::protocol::OutcomeKind;
use crate::text::escape;

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
        (OutcomeKind::Vetoed, _) => "vetoed",
        (OutcomeKind::Budget, _) => "budget",
        (OutcomeKind::Failed, _) => "failed",
        (OutcomeKind::Interrupted, _) => "interrupted",
    }
}

/// A transcript, divided into parts that look different.
#[derive(Serialize)]
pub(super) struct Blocks {
    parts: Vec<Block>,
}

#[derive(Serialize)]
struct Block {
    kind: BlockKind,
    text: String,
}

#[derive(Clone, Copy, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum BlockKind {
    Heading,
    /// The words of the task or of a model, whose lines begin with `>` in a transcript.
    Quote,
    Plain,
}

impl Blocks {
    pub(super) fn new(transcript: &str) -> Self {
        let mut parts: Vec<Block> = Vec::new();
        for line in transcript.lines() {
            let (kind, text) = block(line);
            match parts.last_mut() {
                Some(last) if last.kind == kind && kind != BlockKind::Heading => {
                    last.text.push('\n');
                    last.text.push_str(text);
                }
                Some(_) | None => parts.push(Block { kind, text: text.to_owned() }),
            }
        }
        parts.retain(|part| !part.text.trim().is_empty());
        for part in &mut parts {
            part.text = escape::terminal(part.text.trim_matches('\n'));
        }
        Self { parts }
    }
}

fn block(line: &str) -> (BlockKind, &str) {
    if let Some(text) = line.strip_prefix('>') {
        return (BlockKind::Quote, text.strip_prefix(' ').unwrap_or(text));
    }
    let heading = line.strip_prefix("## ").or_else(|| line.strip_prefix("# "));
    heading.map_or((BlockKind::Plain, line), |text| (BlockKind::Heading, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_says_is_set_apart_from_the_transcripts_own_words() {
        let transcript = "# Run 1\n\n> a\n> ## b\n\n*note*\n".to_owned();
        let blocks = Blocks::new(&transcript);
        let found: Vec<(BlockKind, &str)> =
            blocks.parts.iter().map(|part| (part.kind, part.text.as_str())).collect();
        assert!(
            found
                == [
                    (BlockKind::Heading, "Run 1"),
                    (BlockKind::Quote, "a\n## b"),
                    (BlockKind::Plain, "*note*")
                ]
        );
    }
}
