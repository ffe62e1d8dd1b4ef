//! `consensus runs`: lists the runs of a folder, or of a batch.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::path::Path;
use std::time::SystemTime;

use console::Term;
use serde_json::{Value, json};

use crate::batch::{is_batch, results};
use crate::cli::args::{Format, RunsArgs};
use crate::cli::output::Output;
use crate::cli::table::{Table, age, cell, end, one_line, short_length};
use crate::config::FileConfig;
use crate::engine::{ReplayError, RunState};
use crate::eval::EvalPlan;
use crate::journal::{FILE_NAME, JournalError, read};
use crate::run::{folder_name, run_folders, runs_folder};
use protocol::Outcome;
use protocol::core::ExitCode;
use protocol::text::escape;

/// The most bytes of an answer that are kept for a table.
const ANSWER_BYTES_MAX: usize = 4096;

pub(crate) fn runs(args: &RunsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let named = args.dir.as_ref().or(args.runs_dir.as_ref());
    let dir = runs_folder(named, &FileConfig::load_to_read()?);
    EvalPlan::require_batch(&dir)?;
    if is_batch(&dir) {
        list_batch(&dir, args.limit, output)?;
        return Ok(ExitCode::Success);
    }
    let (ids, rows) = read_folder(&dir, args.limit);
    if output.format != Format::Text {
        output.json(&json!(rows))?;
    } else if rows.is_empty() {
        print_no_run(&dir, output);
    } else if std::io::stdout().is_terminal() {
        print_table(&run_table(&rows, short_length(&ids)), output)?;
    } else {
        for row in &rows {
            output.line(&run_line(row))?;
        }
    }
    Ok(ExitCode::Success)
}

fn print_no_run(dir: &Path, output: &Output) {
    output.status(&format!("there is no run in `{}`", dir.display()));
}

fn print_table<const N: usize>(table: &Table<N>, output: &Output) -> anyhow::Result<()> {
    let width = usize::from(Term::stdout().size().1);
    output.lines(table.lines(width))
}

/// Returns the ids of all runs in a folder of run folders, and a row for each of the last `limit` runs.
fn read_folder(dir: &Path, limit: Option<usize>) -> (Vec<String>, Vec<Value>) {
    let folders = run_folders(dir);
    let skipped = limit.map_or(0, |limit| folders.len().saturating_sub(limit));
    let rows = folders.iter().skip(skipped).map(|folder| row(folder)).collect();
    (folders.iter().map(|folder| folder_name(folder)).collect(), rows)
}

/// Lists the last `limit` runs of a batch, from its results. Only what is printed of a run is in memory, and only where its line must
/// wait for others.
fn list_batch(dir: &Path, limit: Option<usize>, output: &Output) -> anyhow::Result<()> {
    let mut count = 0_u64;
    if output.format == Format::Jsonl {
        return each_of_batch(dir, limit, Value::to_string, |row| output.line(&row));
    }
    if output.format != Format::Text {
        each_of_batch(dir, limit, in_list, |row| {
            count += 1;
            output.print(if count == 1 { "[\n" } else { ",\n" })?;
            output.print(&row)
        })?;
        return output.line(if count == 0 { "[]" } else { "\n]" });
    }
    if std::io::stdout().is_terminal() {
        let mut table = batch_table();
        each_of_batch(dir, limit, batch_cells, |cells| {
            table.rows.push(cells);
            Ok(())
        })?;
        if !table.rows.is_empty() {
            return print_table(&table, output);
        }
    } else {
        each_of_batch(dir, limit, batch_line, |line| {
            count += 1;
            output.line(&line)
        })?;
    }
    if count == 0 {
        print_no_run(dir, output);
    }
    Ok(())
}

/// Passes the last `limit` runs of a batch to `each`, in the form that `form` gives them.
fn each_of_batch<F>(
    dir: &Path,
    limit: Option<usize>,
    form: impl Fn(&Value) -> F,
    mut each: impl FnMut(F) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut last, mut passed) = (VecDeque::new(), Ok(()));
    results(dir, |row| {
        if passed.is_err() {
            return;
        }
        let row = form(&json!(row.flat()));
        let Some(limit) = limit else {
            passed = each(row);
            return;
        };
        last.push_back(row);
        if last.len() > limit {
            last.pop_front();
        }
    })?;
    passed?;
    for row in last {
        each(row)?;
    }
    Ok(())
}

/// Returns a row as it is written in a list of JSON.
fn in_list(row: &Value) -> String {
    let text = format!("{row:#}");
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
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
    let time: String = cell(row, "started_at").chars().take(16).collect();
    let about = escape::excerpt(row["prompt"].as_str().or(row["why"].as_str()).unwrap_or_default());
    let (run, outcome, roleset) = (cell(row, "run"), cell(row, "outcome"), cell(row, "roleset"));
    format!("{run}  {time:16}  {outcome:12}  {roleset:20}  {about}")
}

/// Returns a run of a batch as a line for scripts.
fn batch_line(row: &Value) -> String {
    let about = escape::excerpt(row["text"].as_str().or(row["reason"].as_str()).unwrap_or_default());
    let [run, task, outcome, roleset] = ["run", "task", "outcome", "roleset"].map(|name| cell(row, name));
    format!("{run}  {task}  {outcome:12}  {roleset:20}  {:4}  {about}", row["seed"].to_string())
}

/// Returns a table of runs for a person, the newest first.
fn run_table(rows: &[Value], short: usize) -> Table<5> {
    let now = SystemTime::now();
    let heading = ["ID", "AGE", "OUTCOME", "QUESTION", "ANSWER"];
    let mut table = Table { heading, rows: Vec::new(), shares: [0, 0, 0, 3, 2] };
    for row in rows.iter().rev() {
        let started = row["started_at"].as_str().and_then(|time| humantime::parse_rfc3339(time).ok());
        let passed = started.and_then(|started| now.duration_since(started).ok());
        let question = row["prompt"].as_str().or(row["why"].as_str()).unwrap_or_default();
        table.rows.push([
            escape::terminal(end(row["run"].as_str().unwrap_or_default(), short)),
            passed.map(age).unwrap_or_default(),
            one_line(row["outcome"].as_str()),
            one_line(Some(question)),
            one_line(row["answer"].as_str()),
        ]);
    }
    table
}

/// Returns an empty table for a batch's runs.
fn batch_table() -> Table<6> {
    let heading = ["TASK", "ROLESET", "SEED", "OUTCOME", "", "ANSWER"];
    Table { heading, rows: Vec::new(), shares: [2, 2, 0, 0, 0, 3] }
}

/// Returns the cells of a run of a batch in a table for a person. What no terminal is wide enough for is left out.
fn batch_cells(row: &Value) -> [String; 6] {
    let labels = ["roleset", "model", "arm"].map(|name| one_line(row[name].as_str()));
    let column: Vec<String> = labels.into_iter().filter(|name| !name.is_empty()).collect();
    let right = match row["right"].as_bool() {
        Some(true) => "right",
        Some(false) => "wrong",
        None => "",
    };
    let mut answer = one_line(row["text"].as_str().or(row["reason"].as_str()));
    answer.truncate(answer.floor_char_boundary(ANSWER_BYTES_MAX));
    [
        one_line(row["task"].as_str()),
        column.join(" "),
        row["seed"].to_string(),
        one_line(row["outcome"].as_str()),
        right.to_owned(),
        answer,
    ]
}
