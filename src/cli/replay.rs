//! `consensus replay`: the run again, from its journal and without any network.

use super::args::RunRef;
use super::error::IntegrityError;
use super::global::Format;
use super::output::Output;
use super::progress::ProgressPrinter;
use super::{answer, locate};
use crate::core::ExitCode;
use crate::engine::{Mismatch, RunState};
use crate::journal::{Entry, FILE_NAME, read};
use crate::report::RunResult;

pub(super) fn replay(args: &RunRef, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = locate::run_folder(args)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let mismatch =
        |line, why: Mismatch| IntegrityError(format!("the journal's line {line} does not verify: {why}"));
    let story = ProgressPrinter::new(*output);
    let mut ledger = RunState::open(&journal.records[0]).map_err(|why| mismatch(1, why))?;
    for record in &journal.records {
        // Once the reply is taken its call is not open any more.
        let charged = match &record.event {
            Entry::Replied(replied) => Some((replied, ledger.charge(replied))),
            Entry::Opened(_)
            | Entry::Asked(_)
            | Entry::Found(_)
            | Entry::Stopped { .. }
            | Entry::Resumed { .. } => None,
        };
        if record.seq > 0 {
            ledger.apply(record).map_err(|why| mismatch(record.seq + 1, why))?;
        }
        if let Some((replied, usage)) = charged {
            story.reply(ledger.agent_name(replied.call.agent), replied, usage, None);
        }
        if output.format == Format::Jsonl {
            output.line(&serde_json::to_string(record)?)?;
        }
    }
    story.finish();
    let result = RunResult::new(&ledger, journal.head);
    answer::tell(output, &result, &dir, ledger.endpoints());
    answer::print(output, &answer::restore(result, &ledger, &dir, output), false)
}
