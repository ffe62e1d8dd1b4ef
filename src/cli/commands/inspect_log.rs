//! `results --format inspect`: the results of one way of answering as a log for `inspect_ai`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use super::chosen_runs::chosen_runs;
use crate::batch::{
    InspectLog, Line, ShardStatus, TaskForm, TaskLines, prompts_and_times, provenance, status, transcripts,
};
use crate::cli::args::ResultsArgs;
use crate::cli::error::UsageError;
use crate::cli::one_column::require_one_column;
use crate::cli::output::Output;
use crate::program::PROGRAM;

/// Prints the log.
pub(super) fn inspect_log(args: &ResultsArgs, output: &Output) -> anyhow::Result<()> {
    if args.dirs.len() > 1 {
        return Err(UsageError("a log is of one batch; name one folder".to_owned()).into());
    }
    let answers = args.tasks.as_deref().map(answers).transpose()?.unwrap_or_default();
    let mut log = InspectLog::default();
    let mut all = BTreeMap::new();
    let (mut data, mut is_whole) = (BTreeSet::new(), true);
    for dir in &args.dirs {
        data.extend(provenance(dir)?.data.into_iter().map(|data| data.name));
        is_whole &= status(dir)?.iter().all(ShardStatus::has_ended);
        let mut recorded = prompts_and_times(dir)?;
        chosen_runs(&args.only, dir, |told| {
            let of_run = recorded.remove(&told.run).unwrap_or_default();
            log.add(told, of_run);
        })?;
        if args.with_transcripts {
            all.extend(transcripts(dir)?);
        }
    }
    require_one_column(log.columns())?;
    if log.columns().is_empty() {
        return Err(UsageError("no run has ended yet, so there is nothing to log".to_owned()).into());
    }
    if args.tasks.is_some() && !log.knows_answers(&answers) {
        output.warn("none of these tasks is in the log, so its targets are empty");
    }
    let data = data.into_iter().collect::<Vec<_>>().join(", ");
    output.json(&log.finish((PROGRAM, &data), &answers, &all, is_whole))
}

/// Reads the right answer of each task.
fn answers(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let wrong = |why| UsageError(format!("cannot read the tasks `{}`: {why}", path.display()));
    let is_table = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let form = TaskForm { is_table, ..TaskForm::default() };
    let lines = TaskLines::open(File::open(path).map_err(wrong)?, form).map_err(wrong)?;
    let mut answers = BTreeMap::new();
    for line in lines {
        let Line { number, task, .. } = line.map_err(wrong)?;
        let task =
            task.map_err(|(_, why)| UsageError(format!("`{}`, line {number}: {why}", path.display())))?;
        answers.extend(task.answer.map(|answer| (task.id, answer)));
    }
    Ok(answers)
}
