//! `consensus show`.

use crate::cli::args::{Format, ShowArgs};
use crate::cli::journals;
use crate::cli::output::Output;
use crate::core::ExitCode;
use crate::engine::RunState;
use crate::report::{RunResult, transcript, worth};
use crate::text::escape;

pub(crate) fn show(args: &ShowArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let journal = journals::open(args)?.journal;
    match output.format {
        Format::Text => {
            let text = transcript(&journal.records)?;
            output.print(&escape::terminal(&text))?;
            let state = RunState::replay(&journal.records)?;
            if let Some(worth) = worth(&RunResult::new(&state, journal.head), state.endpoints()) {
                output.status(&worth);
            }
        }
        Format::Json | Format::Own(_) => {
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
