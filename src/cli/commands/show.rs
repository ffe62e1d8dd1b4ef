//! `consensus show`: prints a recorded run in short, in full, or as it went.

use std::io::IsTerminal as _;
use std::path::Path;

use crate::cli::args::{Format, ShowArgs};
use crate::cli::commands::replay;
use crate::cli::journals::{self, FoundJournal};
use crate::cli::output::Output;
use crate::cli::pager;
use crate::engine::RunState;
use crate::eval::EvalPlan;
use crate::journal::LockedJournal;
use crate::report::{PageForm, RunResult, run_page, summary, transcript, worth};
use crate::run::restore;
use protocol::core::ExitCode;
use protocol::text::escape;

pub(crate) fn show(args: &ShowArgs, output: &Output) -> anyhow::Result<ExitCode> {
    if let Some(run) = &args.run {
        EvalPlan::require_batch(Path::new(run))?;
    }
    if args.replay {
        return replay::replay(args, output);
    }
    let FoundJournal { journal, redactions, .. } = journals::open(args)?;
    if args.format == Format::Jsonl {
        for record in &journal.records {
            output.line(&serde_json::to_string(record)?)?;
        }
    } else if args.format == Format::Json {
        let state = RunState::replay(&journal.records)?;
        output.print(&RunResult::new(&state, journal.head).to_json())?;
    } else if args.format != Format::Text {
        output.print(&run_page(&journal.records, journal.head, PageForm::Whole)?)?;
    } else if args.full {
        pager::print(&escape::terminal(&transcript(&journal.records)?), output)?;
    } else {
        let state = RunState::replay(&journal.records)?;
        let result = RunResult::new(&state, journal.head);
        let worth = worth(&result);
        let result = restore(result, &state, &redactions, output);
        let is_under_way = state.outcome().is_none() && LockedJournal::is_held(&journal.path);
        let text = escape::terminal(&summary(&state.opened().setup, &result, is_under_way));
        pager::print(&bold_first_line(&text), output)?;
        let run = &result.run;
        let (shown, verified) = match args.batch() {
            Some(folder) => (format!("{} {run}", folder.display()), folder.display().to_string()),
            None => (run.clone(), run.clone()),
        };
        output.status(&format!(
            "`consensus show --full {shown}` shows the whole transcript, `consensus verify {verified}` checks it"
        ));
        if let Some(worth) = worth {
            output.status(&worth);
        }
    }
    Ok(ExitCode::Success)
}

/// Returns the text with its first line in bold, if a person reads it.
fn bold_first_line(text: &str) -> String {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match text.split_once('\n') {
        Some((first, rest)) if std::io::stdout().is_terminal() && !is_plain => {
            format!("\u{1b}[1m{first}\u{1b}[0m\n{rest}")
        }
        Some(_) | None => text.to_owned(),
    }
}
