//! Finds the run that the arguments name, and reads it from its own journal or from a batch.

use std::path::{Path, PathBuf};

use super::args::ShowArgs;
use super::error::UsageError;
use crate::batch::{CellLabel, SelectedRun, redactions_file, select_runs};
use crate::config::FileConfig;
use crate::journal::{FILE_NAME, Journal, REDACTIONS_FILE, read};
use protocol::text::escape;

/// The largest number of runs that are listed to choose from.
const CHOICES_MAX: usize = 20;

pub(super) struct FoundJournal {
    pub(super) journal: Journal,
    /// The folder of the run's other files; for a run of a batch, the batch's folder.
    pub(super) dir: PathBuf,
    /// The file with the originals that tokens stand for, if the run is redacted.
    pub(super) redactions: PathBuf,
}

/// Reads the run that the arguments name.
pub(super) fn open(args: &ShowArgs) -> anyhow::Result<FoundJournal> {
    let Some(folder) = args.batch() else {
        if args.task.is_some() {
            let why =
                "TASK comes after the folder of a batch, and this is not a batch: consensus show OUT TASK";
            return Err(UsageError(why.to_owned()).into());
        }
        let dir = args.which().folder(&FileConfig::load_to_read()?)?;
        let redactions = dir.join(REDACTIONS_FILE);
        return Ok(FoundJournal { journal: read(&dir.join(FILE_NAME))?, dir, redactions });
    };
    let mut found = find_in_batch(folder, args)?;
    if found.len() > 1 {
        return Err(UsageError(describe_choice(folder, args, &found)).into());
    }
    let journal = found.remove(0).journal;
    let redactions = redactions_file(folder, &journal.records[0].run);
    Ok(FoundJournal { journal, dir: folder.to_owned(), redactions })
}

/// Returns the runs of a batch that the arguments name; at least one.
pub(super) fn find_in_batch(folder: &Path, args: &ShowArgs) -> anyhow::Result<Vec<SelectedRun>> {
    let shown = folder.display();
    let Some(selector) = args.selector() else {
        let why = format!(
            "`{shown}` is a batch: name a task, as in `consensus show {shown} TASK`; `consensus runs {shown}` lists them"
        );
        return Err(UsageError(why).into());
    };
    let found = select_runs(folder, &selector)?;
    if found.is_empty() {
        let why = format!(
            "`{shown}` has no such run of `{}`; `consensus runs {shown}` lists its runs",
            selector.name
        );
        return Err(UsageError(why).into());
    }
    Ok(found)
}

/// Returns a message with the runs that match, and for each the command that names it alone.
fn describe_choice(folder: &Path, args: &ShowArgs, found: &[SelectedRun]) -> String {
    // A flag that was given must be repeated.
    let mut is_shown =
        [args.roleset.is_some(), args.model.is_some(), args.arm.is_some(), args.seed.is_some()];
    let first = fields(&found[0].cell);
    for run in found {
        for (at, field) in fields(&run.cell).iter().enumerate() {
            is_shown[at] |= *field != first[at];
        }
    }
    let mut lines = vec![format!("{} runs match; choose one:", found.len())];
    for run in found.iter().take(CHOICES_MAX) {
        let mut words = Vec::new();
        for ((flag, value), is_shown) in fields(&run.cell).into_iter().zip(is_shown) {
            if is_shown {
                words.push(format!("{flag} {}", shlex::try_quote(&value).unwrap_or_default()));
            }
        }
        let task = shlex::try_quote(&run.cell.task).unwrap_or_default().into_owned();
        lines.push(format!("  consensus show {} {task} {}", folder.display(), words.join(" ")));
    }
    if found.len() > CHOICES_MAX {
        lines.push(format!("  and {} more", found.len() - CHOICES_MAX));
    }
    escape::terminal(&lines.join("\n"))
}

/// Returns the fields in which runs of the same task may differ, each with its flag.
fn fields(cell: &CellLabel) -> [(&'static str, String); 4] {
    [
        ("--roleset", cell.roleset.clone()),
        ("--model", cell.model.clone()),
        ("--arm", cell.arm.clone()),
        ("--seed", cell.seed.to_string()),
    ]
}
