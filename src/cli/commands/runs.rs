//! `consensus runs`: lists the runs of a folder, or of a batch.

use std::io::IsTerminal;
use std::path::Path;
use std::time::SystemTime;

use console::Term;
use serde_json::{Value, json};

use crate::batch::{is_batch, results};
use crate::cli::args::{Format, RunsArgs};
use crate::cli::output::Output;
use crate::cli::table::{Table, age, end, short_length};
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::engine::{ReplayError, RunState};
use crate::eval::EvalPlan;
use crate::journal::{FILE_NAME, JournalError, read};
use crate::protocol::Outcome;
use crate::run::{folder_name, run_folders, runs_folder};
use crate::text::escape;

pub(crate) fn runs(args: &RunsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let named = args.dir.as_ref().or(args.runs_dir.as_ref());
    let dir = runs_folder(named, &FileConfig::load_to_read()?);
    EvalPlan::require_batch(&dir)?;
    let is_batch = is_batch(&dir);
    let (ids, rows) = if is_batch { of_batch(&dir, args.limit)? } else { of_folder(&dir, args.limit) };
    if output.format != Format::Text {
        output.json(&json!(rows))?;
    } else if rows.is_empty() {
        output.status(&format!("there is no run in `{}`", dir.display()));
    } else if std::io::stdout().is_terminal() {
        let width = usize::from(Term::stdout().size().1);
        let short = short_length(&ids);
        let lines =
            if is_batch { batch_table(&rows).lines(width) } else { run_table(&rows, short).lines(width) };
        lines.iter().try_for_each(|line| output.line(line))?;
    } else {
        let line = if is_batch { batch_line } else { run_line };
        rows.iter().try_for_each(|row| output.line(&line(row)))?;
    }
    Ok(ExitCode::Success)
}

/// Returns the ids of all runs in a folder of run folders, and a row for each of the last `limit` runs.
fn of_folder(dir: &Path, limit: Option<usize>) -> (Vec<String>, Vec<Value>) {
    let folders = run_folders(dir);
    let skipped = limit.map_or(0, |limit| folders.len().saturating_sub(limit));
    let rows = folders.iter().skip(skipped).map(|folder| row(folder)).collect();
    (folders.iter().map(|folder| folder_name(folder)).collect(), rows)
}

/// Returns a row for each of the last `limit` runs of a batch, from its results, and no ids, since its table does not shorten them.
fn of_batch(dir: &Path, limit: Option<usize>) -> anyhow::Result<(Vec<String>, Vec<Value>)> {
    let mut rows = Vec::new();
    results(dir, |told| rows.push(json!(told.flat())))?;
    let skipped = limit.map_or(0, |limit| rows.len().saturating_sub(limit));
    Ok((Vec::new(), rows.split_off(skipped)))
}

/// Returns a run as a row for programs.
fn row(folder: &Path) -> Value {
    let journal = match read(&folder.join(FILE_NAME)) {
        Err(JournalError::OtherBuild { program, .. }) => {
            return json!({"run": folder_name(folder), "outcome": "other build", "why": format!("written by `{program}`")});
        }
        other => other,
    };
    let state = journal.map_err(|e| e.to_string()).and_then(|journal| {
        RunState::replay(&journal.records).map_err(|ReplayError { line, why }| format!("line {line}: {why}"))
    });
    let run = folder_name(folder);
    match state {
        Ok(state) => {
            let setup = &state.opened().setup;
            // Without a recorded end, the run is under way or its process died.
            let outcome = state.outcome().map_or("open", Outcome::name);
            let started_at = &state.started_at;
            let mut row = json!({"run": run, "started_at": started_at, "outcome": outcome, "roleset": setup.roleset, "prompt": setup.task.prompt});
            if let Some(Outcome::Agreed { text, .. }) = state.outcome() {
                row["answer"] = text.as_str().into();
            }
            row
        }
        Err(why) => json!({"run": run, "outcome": "damaged", "why": why}),
    }
}

/// Returns a run as a line for scripts.
fn run_line(row: &Value) -> String {
    let field = |name: &str| escape::terminal(row[name].as_str().unwrap_or_default());
    let time: String = field("started_at").chars().take(16).collect();
    let about = escape::excerpt(row["prompt"].as_str().or(row["why"].as_str()).unwrap_or_default());
    format!("{}  {time:16}  {:12}  {:20}  {about}", field("run"), field("outcome"), field("roleset"))
}

/// Returns a run of a batch as a line for scripts.
fn batch_line(row: &Value) -> String {
    let field = |name: &str| escape::terminal(row[name].as_str().unwrap_or_default());
    let about = escape::excerpt(row["text"].as_str().or(row["reason"].as_str()).unwrap_or_default());
    let (run, task, outcome, roleset) = (field("run"), field("task"), field("outcome"), field("roleset"));
    format!("{run}  {task}  {outcome:12}  {roleset:20}  {:4}  {about}", row["seed"].to_string())
}

/// Returns a table of runs for a person, the newest first.
fn run_table(rows: &[Value], short: usize) -> Table<5> {
    let now = SystemTime::now();
    let cells = |row: &Value| {
        let started = row["started_at"].as_str().and_then(|time| humantime::parse_rfc3339(time).ok());
        let passed = started.and_then(|started| now.duration_since(started).ok());
        let question = row["prompt"].as_str().or(row["why"].as_str()).unwrap_or_default();
        [
            escape::terminal(end(row["run"].as_str().unwrap_or_default(), short)),
            passed.map(age).unwrap_or_default(),
            shown(row["outcome"].as_str()),
            shown(Some(question)),
            shown(row["answer"].as_str()),
        ]
    };
    let heading = ["ID", "AGE", "OUTCOME", "QUESTION", "ANSWER"];
    Table { heading, rows: rows.iter().rev().map(cells).collect(), shares: [0, 0, 0, 3, 2] }
}

/// Returns a table of a batch's runs for a person, in the order of its results.
fn batch_table(rows: &[Value]) -> Table<6> {
    let cells = |row: &Value| {
        let labels = ["roleset", "model", "arm"].map(|name| shown(row[name].as_str()));
        let column: Vec<String> = labels.into_iter().filter(|name| !name.is_empty()).collect();
        let right = match row["right"].as_bool() {
            Some(true) => "right",
            Some(false) => "wrong",
            None => "",
        };
        [
            shown(row["task"].as_str()),
            column.join(" "),
            row["seed"].to_string(),
            shown(row["outcome"].as_str()),
            right.to_owned(),
            shown(row["text"].as_str().or(row["reason"].as_str())),
        ]
    };
    let heading = ["TASK", "ROLESET", "SEED", "OUTCOME", "", "ANSWER"];
    Table { heading, rows: rows.iter().map(cells).collect(), shares: [2, 2, 0, 0, 0, 3] }
}

/// Returns a text in one line, harmless to a terminal.
fn shown(text: Option<&str>) -> String {
    escape::terminal(&escape::one_line(text.unwrap_or_default()))
}
