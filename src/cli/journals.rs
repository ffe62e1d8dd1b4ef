//! The run that a person means, read from its own journal or out of that of a batch.
//!
//! In: what was typed. Out: the run's records, and the folder in which its other files are. Nothing is printed here.

use std::path::{Path, PathBuf};

use super::args::ShowArgs;
use super::error::UsageError;
use crate::batch::{CellLabel, PickedRun, pick, redactions_file};
use crate::config::FileConfig;
use crate::journal::{FILE_NAME, Journal, REDACTIONS_FILE, read};
use crate::text::escape;

/// So many runs are named to choose from.
const CHOICES_MAX: usize = 20;

/// A run that was read.
pub(super) struct OpenedRun {
    pub(super) journal: Journal,
    /// Where its other files are; of a batch, the batch's folder.
    pub(super) dir: PathBuf,
    /// The file with the originals that tokens stand for, where it is redacted.
    pub(super) redactions: PathBuf,
}

/// Reads the run that was named.
pub(super) fn open(args: &ShowArgs) -> anyhow::Result<OpenedRun> {
    let Some(folder) = args.batch() else {
        if args.task.is_some() {
            let why =
                "a task is named behind the folder of a batch, and this is none: consensus show OUT TASK";
            return Err(UsageError(why.to_owned()).into());
        }
        let dir = args.which().folder(&FileConfig::load_to_read()?)?;
        let redactions = dir.join(REDACTIONS_FILE);
        return Ok(OpenedRun { journal: read(&dir.join(FILE_NAME))?, dir, redactions });
    };
    let mut found = of_batch(folder, args)?;
    if found.len() > 1 {
        return Err(UsageError(choice(folder, args, &found)).into());
    }
    let journal = found.remove(0).journal;
    let redactions = redactions_file(folder, &journal.records[0].run);
    Ok(OpenedRun { journal, dir: folder.to_owned(), redactions })
}

/// The runs of a batch that were named; at least one.
pub(super) fn of_batch(folder: &Path, args: &ShowArgs) -> anyhow::Result<Vec<PickedRun>> {
    let shown = folder.display();
    let Some(wanted) = args.pick() else {
        let why = format!(
            "`{shown}` is a batch: say of which task, as in `consensus show {shown} TASK`; `consensus runs {shown}` lists them"
        );
        return Err(UsageError(why).into());
    };
    let found = pick(folder, &wanted)?;
    if found.is_empty() {
        let why =
            format!("`{shown}` has no such run of `{}`; `consensus runs {shown}` lists them", wanted.name);
        return Err(UsageError(why).into());
    }
    Ok(found)
}

/// What tells a run from others of its task.
type Field = fn(&CellLabel) -> String;

/// Says which runs fit, each by the words that name it alone.
fn choice(folder: &Path, args: &ShowArgs, found: &[PickedRun]) -> String {
    let differs = |field: Field| found.iter().any(|run| field(&run.cell) != field(&found[0].cell));
    let fields: [(&str, Field); 4] = [
        ("--roleset", |cell| cell.roleset.clone()),
        ("--model", |cell| cell.model.clone()),
        ("--arm", |cell| cell.arm.clone()),
        ("--seed", |cell| cell.seed.to_string()),
    ];
    // What was said has to be said again.
    let is_said = |flag: &str| match flag {
        "--roleset" => args.roleset.is_some(),
        "--model" => args.model.is_some(),
        "--arm" => args.arm.is_some(),
        _ => args.seed.is_some(),
    };
    let fields: Vec<_> =
        fields.into_iter().filter(|(flag, field)| differs(*field) || is_said(flag)).collect();
    let mut lines = vec![format!("{} runs fit; choose one:", found.len())];
    for run in found.iter().take(CHOICES_MAX) {
        let words: Vec<String> = fields.iter().map(|(flag, field)| word(flag, &field(&run.cell))).collect();
        let task = shlex::try_quote(&run.cell.task).unwrap_or_default().into_owned();
        lines.push(format!("  consensus show {} {task} {}", folder.display(), words.join(" ")));
    }
    if found.len() > CHOICES_MAX {
        lines.push(format!("  and {} more", found.len() - CHOICES_MAX));
    }
    escape::terminal(&lines.join("\n"))
}

fn word(flag: &str, value: &str) -> String {
    format!("{flag} {}", shlex::try_quote(value).unwrap_or_default())
}
