//! `consensus show`.

use crate::cli::args::{Format, RunRef};
use crate::cli::output::Output;
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::engine::RunState;
use crate::journal::{FILE_NAME, read};
use crate::report::{RunResult, transcript, worth};
use crate::text::escape;

pub(crate) fn show(args: &RunRef, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = args.folder(&FileConfig::load_to_read()?)?;
    let journal = read(&dir.join(FILE_NAME))?;
    match output.format {
        Format::Text => {
            let text = transcript(&journal.records)?;
            output.print(&escape::terminal(&text))?;
            let state = RunState::replay(&journal.records)?;
            if let Some(worth) = worth(&RunResult::new(&state, journal.head), state.endpoints()) {
                output.status(&worth);
            }
        }
        Format::Json | Format::Csv | Format::Html => {
            let state = RunState::replay(&journal.records)?;
            output.print(&RunResult::new(&state, journal.head).to_json())?;
        }
        Format::Jsonl => {
            for record in &journal.records {
                output.line(&serde_json::to_string(record)?)?;
            }
        }
    }
    Ok(ExitCode::Success)
}
