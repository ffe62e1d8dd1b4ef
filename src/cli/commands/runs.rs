//! `consensus runs`.

use std::io::IsTerminal;
use std::path::Path;
use std::time::SystemTime;

use console::Term;
use serde_json::{Value, json};

use crate::cli::args::{Format, RunsArgs};
use crate::cli::output::Output;
use crate::cli::runs_table::{RunRow, short_length, table};
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::engine::{ReplayError, RunState};
use crate::journal::{FILE_NAME, read};
use crate::protocol::Outcome;
use crate::run::{folder_name, run_folders, runs_folder};
use crate::text::escape;

pub(crate) fn runs(args: &RunsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = runs_folder(args.runs_dir.as_ref(), &FileConfig::load_to_read()?);
    let folders = run_folders(&dir);
    // The newest are the last.
    let skipped = args.limit.map_or(0, |limit| folders.len().saturating_sub(limit));
    let rows: Vec<Value> = folders.iter().skip(skipped).map(|folder| row(folder)).collect();
    if output.format == Format::Json {
        output.json(&json!(rows))?;
        return Ok(ExitCode::Success);
    }
    if rows.is_empty() {
        output.status(&format!("there is no run in `{}`", dir.display()));
    } else if output.format == Format::Text && std::io::stdout().is_terminal() {
        let short = short_length(&folders.iter().map(|folder| folder_name(folder)).collect::<Vec<_>>());
        let rows: Vec<RunRow> = rows.iter().rev().map(told).collect();
        let width = usize::from(Term::stdout().size().1);
        table(&rows, short, SystemTime::now(), width).iter().try_for_each(|line| output.line(line))?;
        return Ok(ExitCode::Success);
    }
    for row in rows {
        if output.format == Format::Jsonl {
            output.line(&row.to_string())?;
            continue;
        }
        let field = |name: &str| escape::terminal(row[name].as_str().unwrap_or_default());
        let time: String = field("started_at").chars().take(16).collect();
        let about = escape::excerpt(row["prompt"].as_str().or(row["why"].as_str()).unwrap_or_default());
        output.line(&format!(
            "{}  {time:16}  {:12}  {:20}  {about}",
            field("run"),
            field("outcome"),
            field("roleset")
        ))?;
    }
    Ok(ExitCode::Success)
}

/// What there is to say of a run, for programs.
fn row(folder: &Path) -> Value {
    let state = read(&folder.join(FILE_NAME)).map_err(|e| e.to_string()).and_then(|journal| {
        RunState::replay(&journal.records).map_err(|ReplayError { line, why }| format!("line {line}: {why}"))
    });
    let run = folder_name(folder);
    match state {
        Ok(state) => {
            let setup = &state.opened().setup;
            // Without an end on record the run is under way, or its process died.
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

/// The same for a person.
fn told(row: &Value) -> RunRow {
    let field = |name: &str| row[name].as_str().unwrap_or_default();
    let line = |text: &str| escape::terminal(&escape::one_line(text));
    RunRow {
        id: escape::terminal(field("run")),
        started: humantime::parse_rfc3339(field("started_at")).ok(),
        outcome: line(field("outcome")),
        question: line(row["prompt"].as_str().or(row["why"].as_str()).unwrap_or_default()),
        answer: line(field("answer")),
    }
}
