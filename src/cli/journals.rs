//! Finds the run that the arguments name, and reads it from its own journal or from a batch.
//!
//! The input is the arguments of a command. The output is the run's records and the folder of its other files. Nothing is printed here.

use std::path::{Path, PathBuf};

use super::args::ShowArgs;
use super::error::UsageError;
use crate::batch::{CellLabel, PickedRun, pick, redactions_file};
use crate::config::FileConfig;
use crate::journal::{FILE_NAME, Journal, REDACTIONS_FILE, read};
use protocol::text::escape;

/// The largest number of runs that are listed to choose from.
const CHOICES_MAX: usize = 20;

/// A run that was read.
pub(super) struct OpenedRun {
    pub(super) journal: Journal,
    /// The folder of the run's other files; for a run of a batch, the batch's folder.
    pub(super) dir: PathBuf,
    /// The file with the originals that tokens stand for, if the run is redacted.
    pub(super) redactions: PathBuf,
}

/// Reads the run that the arguments name.
pub(super) fn open(args: &ShowArgs) -> anyhow::Result<OpenedRun> {
    let Some(folder) = args.batch() else {
        if args.task.is_some() {
            let why =
                "TASK comes after the folder of a batch, and this is not a batch: consensus show OUT TASK";
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

/// Returns the runs of a batch that the arguments name; at least one.
pub(super) fn of_batch(folder: &Path, args: &ShowArgs) -> anyhow::Result<Vec<PickedRun>> {
    let shown = folder.display();
    let Some(wanted) = args.pick() else {
        let why = format!(
            "`{shown}` is a batch: name a task, as in `consensus show {shown} TASK`; `consensus runs {shown}` lists them"
        );
        return Err(UsageError(why).into());
    };
    let found = pick(folder, &wanted)?;
    if found.is_empty() {
        let why = format!(
            "`{shown}` has no such run of `{}`; `consensus runs {shown}` lists its runs",
            wanted.name
        );
        return Err(UsageError(why).into());
    }
    Ok(found)
}

/// A field in which runs of the same task may differ.
type Field = fn(&CellLabel) -> String;

/// Returns a message with the runs that match, and for each the command that names it alone.
fn choice(folder: &Path, args: &ShowArgs, found: &[PickedRun]) -> String {
    let differs = |field: Field| found.iter().any(|run| field(&run.cell) != field(&found[0].cell));
    let fields: [(&str, Field); 4] = [
        ("--roleset", |cell| cell.roleset.clone()),
        ("--model", |cell| cell.model.clone()),
        ("--arm", |cell| cell.arm.clone()),
        ("--seed", |cell| cell.seed.to_string()),
    ];
    // A flag that was given must be repeated.
    let is_said = |flag: &str| match flag {
        "--roleset" => args.roleset.is_some(),
        "--model" => args.model.is_some(),
        "--arm" => args.arm.is_some(),
        _ => args.seed.is_some(),
    };
    let fields: Vec<_> =
        fields.into_iter().filter(|(flag, field)| differs(*field) || is_said(flag)).collect();
    let mut lines = vec![format!("{} runs match; choose one:", found.len())];
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
