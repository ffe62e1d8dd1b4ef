//! `results --format inspect`: the results of one way of answering as a log for `inspect_ai`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use super::chosen_runs::{for_each_chosen, require_one_variant};
use crate::batch::{
    InspectLog, ShardStatus, TaskForm, TaskLines, TaskRow, prompts_and_times, provenance, status, transcripts,
};
use crate::cli::args::ResultsArgs;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::program::PROGRAM;

pub(super) fn inspect_log(args: &ResultsArgs, output: &Output) -> anyhow::Result<()> {
    if args.dirs.len() > 1 {
        return Err(UsageError("a log is of one batch; name one folder".to_owned()).into());
    }
    let answers = match &args.tasks {
        Some(tasks) => read_answers(tasks)?,
        None => BTreeMap::new(),
    };
    let mut log = InspectLog::default();
    let mut all = BTreeMap::new();
    let (mut data, mut is_whole) = (BTreeSet::new(), true);
    for dir in &args.dirs {
        data.extend(provenance(dir)?.data.into_iter().map(|data| data.name));
        is_whole &= status(dir)?.iter().all(ShardStatus::has_ended);
        let mut recorded = prompts_and_times(dir)?;
        for_each_chosen(&args.only, dir, |row| {
            let of_run = recorded.remove(&row.run).unwrap_or_default();
            log.add(row, of_run);
        })?;
        if args.with_transcripts {
            all.extend(transcripts(dir)?);
        }
    }
    require_one_variant(log.variants())?;
    if log.variants().is_empty() {
        return Err(UsageError("no run has ended yet, so there is nothing to log".to_owned()).into());
    }
    if args.tasks.is_some() && !log.has_answer_in(&answers) {
        output.warn("none of these tasks is in the log, so its targets are empty");
    }
    let data = data.into_iter().collect::<Vec<_>>().join(", ");
    output.json(&log.finish(PROGRAM, &data, &answers, &all, is_whole))
}

/// Reads the right answer of each task.
fn read_answers(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let is_table = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let form = TaskForm { is_table, ..TaskForm::default() };
    let unreadable = |why| UsageError(format!("cannot read the tasks `{}`: {why}", path.display()));
    let lines = TaskLines::open(File::open(path).map_err(unreadable)?, form).map_err(unreadable)?;
    let mut answers = BTreeMap::new();
    for line in lines {
        let TaskRow { number, task, .. } = line.map_err(unreadable)?;
        let task =
            task.map_err(|(_, why)| UsageError(format!("`{}`, line {number}: {why}", path.display())))?;
        answers.extend(task.answer.map(|answer| (task.id, answer)));
    }
    Ok(answers)
}
