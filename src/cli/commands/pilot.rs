//! `consensus pilot`: finds out on the user's own tasks whether a vote should draw programs, and keeps the finding.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use crate::batch::{BatchError, Grader, Line, TaskForm, TaskLine, TaskLines, pilots};
use crate::cli::args::{Format, PilotArgs};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::config::{PAIRS_MIN, PILOT_TASKS_MIN, Pilot, Pilots, RightOf};
use protocol::core::ExitCode;
use protocol::text::{counted, escape};

pub(crate) fn pilot(args: &PilotArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let tasks = tasks(&args.tasks, args.form.form(&args.tasks, None))?;
    let found = pilots(&args.bank, &tasks)?;
    if found.is_empty() {
        let why = if tasks.is_empty() {
            "no task has an `answer`, and a pilot is about which samples are right"
        } else {
            "the bank has no sample of these tasks; draw some with `consensus batch TASKS --bank DIR --words N --programs M`"
        };
        return Err(UsageError(why.to_owned()).into());
    }
    let has_finding = found.iter().any(Pilot::is_conclusive);
    let path = Pilots::file().filter(|_| has_finding && !args.dry_run);
    if let Some(path) = &path {
        let mut kept = Pilots::load()?;
        found.iter().filter(|pilot| pilot.is_conclusive()).for_each(|pilot| kept.put(pilot.clone()));
        kept.save(path).map_err(|why| UsageError(format!("cannot write `{}`: {why}", path.display())))?;
        output.status(&format!("kept in `{}`", path.display()));
    }
    if output.format == Format::Text {
        found.iter().flat_map(in_words).try_for_each(|line| output.line(&line))?;
    } else {
        let row = |pilot: &Pilot| {
            let mut row = json!(pilot);
            row["programs_help"] = json!(pilot.is_conclusive().then(|| pilot.programs_help()));
            row
        };
        output.json(&json!({"pilots": found.iter().map(row).collect::<Vec<_>>()}))?;
    }
    Ok(ExitCode::Success)
}

/// Reads the tasks that have an answer, by their ids.
fn tasks(path: &Path, form: TaskForm) -> anyhow::Result<BTreeMap<String, TaskLine>> {
    let wrong = |why| UsageError(format!("cannot read the tasks `{}`: {why}", path.display()));
    let lines =
        TaskLines::open(std::fs::File::open(path).map_err(wrong)?, form).map_err(BatchError::Tasks)?;
    let mut tasks = BTreeMap::new();
    for line in lines {
        let Line { number, task, .. } = line.map_err(BatchError::Tasks)?;
        let task = task.map_err(|(_, why)| UsageError(format!("line {number} of the tasks: {why}")))?;
        if task.grader == Grader::Command {
            return Err(UsageError("a pilot grades by an answer, and not by a command".to_owned()).into());
        }
        if task.answer.is_some() {
            tasks.insert(task.id.clone(), task);
        }
    }
    Ok(tasks)
}

fn in_words(pilot: &Pilot) -> Vec<String> {
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
