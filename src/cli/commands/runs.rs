//! `consensus runs`.

use serde_json::json;

use crate::cli::args::{Format, RunsArgs};
use crate::cli::output::Output;
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::engine::{ReplayError, RunState};
use crate::journal::{FILE_NAME, read};
use crate::protocol::Outcome;
use crate::run::{folder_name, run_folders, runs_folder};
use crate::text::escape;

pub(crate) fn runs(args: &RunsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = runs_folder(args.runs_dir.as_ref(), &FileConfig::load_to_read()?);
    let mut rows = Vec::new();
    for folder in run_folders(&dir) {
        let state = read(&folder.join(FILE_NAME)).map_err(|e| e.to_string()).and_then(|journal| {
            RunState::replay(&journal.records)
                .map_err(|ReplayError { line, why }| format!("line {line}: {why}"))
        });
        let run = folder_name(&folder);
        rows.push(match state {
            Ok(state) => {
                let setup = &state.opened().setup;
                // Without an end on record the run is under way, or its process died.
                let outcome = state.outcome().map_or("open", Outcome::name);
                let started_at = &state.started_at;
                json!({"run": run, "started_at": started_at, "outcome": outcome, "roleset": setup.roleset, "prompt": setup.task.prompt})
            }
            Err(why) => json!({"run": run, "outcome": "damaged", "why": why}),
        });
    }
    if output.format == Format::Json {
        output.json(&json!(rows))?;
        return Ok(ExitCode::Success);
    }
    if rows.is_empty() {
        output.status(&format!("there is no run in `{}`", dir.display()));
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
