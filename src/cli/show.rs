//! `consensus show`.

use super::args::RunRef;
use super::error::IntegrityError;
use super::global::Format;
use super::locate;
use super::output::Output;
use crate::core::ExitCode;
use crate::engine::RunState;
use crate::journal::{FILE_NAME, read};
use crate::report::{RunResult, transcript, worth};
use crate::text::escape;

pub(super) fn show(args: &RunRef, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = locate::run_folder(args)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let mismatch = |(line, why)| IntegrityError(format!("the journal's line {line} does not verify: {why}"));
    match output.format {
        Format::Text => {
            let text = transcript(&journal.records).map_err(mismatch)?;
            output.print(&escape::terminal(&text))?;
            let ledger = RunState::replay(&journal.records).map_err(mismatch)?;
            if let Some(worth) = worth(&RunResult::new(&ledger, journal.head), ledger.endpoints()) {
                output.tell(&worth);
            }
        }
        Format::Json | Format::Csv | Format::Html => {
            let ledger = RunState::replay(&journal.records).map_err(mismatch)?;
            output.print(&RunResult::new(&ledger, journal.head).to_json())?;
        }
        Format::Jsonl => {
            for record in &journal.records {
                output.line(&serde_json::to_string(record)?)?;
            }
        }
    }
    Ok(ExitCode::Success)
}
