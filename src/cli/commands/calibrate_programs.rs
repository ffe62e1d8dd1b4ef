//! `consensus calibrate --programs`: finds out on the user's own tasks whether a vote should draw programs, and keeps the finding.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use crate::batch::{BatchError, Grader, TaskForm, TaskLine, TaskLines, TaskRow, pilots};
use crate::cli::args::{CalibrateArgs, Format};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::config::{PAIRS_MIN, PILOT_TASKS_MIN, Pilot, Pilots, RightOf};
use protocol::core::ExitCode;
use protocol::text::{counted, escape};

/// Measures the samples of a bank on the tasks in this file.
pub(super) fn calibrate_programs(
    args: &CalibrateArgs,
    tasks: &Path,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let tasks = read_tasks(tasks, args.form.form(tasks, None))?;
    let found = pilots(&args.dir, &tasks)?;
    if found.is_empty() {
        let why = if tasks.is_empty() {
            "no task has an `answer`, so it cannot be said which samples are right"
        } else {
            "the bank has no sample of these tasks; draw some with `consensus batch TASKS --bank DIR --words N --programs M`"
        };
        return Err(UsageError(why.to_owned()).into());
    }
    let has_finding = found.iter().any(Pilot::is_conclusive);
    if has_finding
        && !args.dry_run
        && let Some(path) = Pilots::file()
    {
        let mut pilots = Pilots::load()?;
        for pilot in found.iter().filter(|pilot| pilot.is_conclusive()) {
            pilots.put(pilot.clone());
        }
        pilots.save(&path).map_err(|why| UsageError(format!("cannot write `{}`: {why}", path.display())))?;
        output.status(&format!("kept in `{}`", path.display()));
    }
    if output.format == Format::Text {
        for line in found.iter().flat_map(describe) {
            output.line(&line)?;
        }
    } else {
        let mut rows = Vec::new();
        for pilot in &found {
            let mut row = json!(pilot);
            row["programs_help"] = json!(pilot.is_conclusive().then(|| pilot.programs_help()));
            rows.push(row);
        }
        output.json(&json!({"pilots": rows}))?;
    }
    Ok(ExitCode::Success)
}

/// Reads the tasks that have an answer, by their ids.
fn read_tasks(path: &Path, form: TaskForm) -> anyhow::Result<BTreeMap<String, TaskLine>> {
    let wrong = |why| UsageError(format!("cannot read the tasks `{}`: {why}", path.display()));
    let lines =
        TaskLines::open(std::fs::File::open(path).map_err(wrong)?, form).map_err(BatchError::Tasks)?;
    let mut tasks = BTreeMap::new();
    for line in lines {
        let TaskRow { number, task, .. } = line.map_err(BatchError::Tasks)?;
        let task = task.map_err(|(_, why)| UsageError(format!("line {number} of the tasks: {why}")))?;
        if task.grader == Grader::Command {
            return Err(
                UsageError("a calibration grades by an answer, and not by a command".to_owned()).into()
            );
        }
        if task.answer.is_some() {
            tasks.insert(task.id.clone(), task);
        }
    }
    Ok(tasks)
}

fn describe(pilot: &Pilot) -> Vec<String> {
    let Pilot { model, kind, tasks, words, programs, equal_words, equal_unlike } = pilot;
    let share = |rate: RightOf, what: &str| {
        format!("  {:5.1} % of {} are right", rate.share() * 100.0, counted(rate.of, what))
    };
    let verdict = match (pilot.is_conclusive(), pilot.programs_help()) {
        (false, _) => format!(
            "  nothing is concluded: {PILOT_TASKS_MIN} tasks with words and programs are needed, and {PAIRS_MIN} pairs of each kind"
        ),
        (true, true) => "  programs are worth their tokens for votes of this model and kind".to_owned(),
        (true, false) => "  programs are not worth their tokens for votes of this model and kind".to_owned(),
    };
    vec![
        format!("{}, answers of kind {}, {}", escape::terminal(model), kind.name(), counted(*tasks, "task")),
        share(*words, "sample"),
        share(*programs, "program"),
        share(*equal_words, "pair") + ", where two words are equal",
        share(*equal_unlike, "pair") + ", where a word and a program are equal",
        verdict,
    ]
}
