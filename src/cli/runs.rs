//! `consensus runs`.

use serde_json::json;

use super::args::RunsArgs;
use super::global::Format;
use super::output::Output;
use super::{locate, settings};
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::engine::RunState;
use crate::journal::{FILE_NAME, read};
use crate::protocol::Outcome;
use crate::text::escape;

pub(super) fn runs(args: &RunsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = settings::runs_dir(args.runs_dir.as_ref(), &FileConfig::load_to_read()?);
    let mut rows = Vec::new();
    for folder in locate::run_folders(&dir) {
        let ledger = read(&folder.join(FILE_NAME)).map_err(|e| e.to_string()).and_then(|journal| {
            RunState::replay(&journal.records).map_err(|(line, why)| format!("line {line}: {why}"))
        });
        let run = locate::folder_name(&folder);
        rows.push(match ledger {
            Ok(ledger) => {
                let setup = &ledger.opened().setup;
                // Without an end on record the run is under way, or its process died.
                let outcome = ledger.outcome().map_or("open", Outcome::name);
                let started_at = &ledger.started_at;
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
        output.tell(&format!("there is no run in `{}`", dir.display()));
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
