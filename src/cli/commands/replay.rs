//! `consensus replay`: prints a run again, from its journal and without a network.

use crate::cli::answer::{print_answer, print_result};
use crate::cli::args::{Format, ShowArgs};
use crate::cli::journals::{self, FoundJournal};
use crate::cli::output::Output;
use crate::cli::progress::ProgressPrinter;
use crate::engine::{ReplayError, RunState};
use crate::journal::Entry;
use crate::report::RunResult;
use crate::run::restore;
use protocol::core::ExitCode;

pub(crate) fn replay(args: &ShowArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let FoundJournal { journal, dir, redactions } = journals::open(args)?;
    let story = ProgressPrinter::new(*output);
    let mut state = RunState::open(&journal.records[0]).map_err(|why| ReplayError { line: 1, why })?;
    for (index, record) in journal.records.iter().enumerate() {
        // The charge is computed first, since the call is no longer open once the reply is applied.
        let charged = match &record.event {
            Entry::Replied(replied) => Some((replied, state.charge(replied))),
            Entry::Opened(_)
            | Entry::Asked(_)
            | Entry::Lost(_)
            | Entry::Found(_)
            | Entry::Executed(_)
            | Entry::LeftOut(_)
            | Entry::Permitted(_)
            | Entry::Closed(_)
            | Entry::Stopped { .. }
            | Entry::Resumed { .. } => None,
        };
        if index > 0 {
            state.apply(record).map_err(|why| ReplayError { line: record.seq + 1, why })?;
        }
        if let Some((replied, usage)) = charged {
            story.print_reply(state.agent_name(replied.call.agent), replied, usage, None);
        }
        if let Entry::Lost(lost) = &record.event {
            story.print_loss(state.agent_name(lost.call.agent), lost);
        }
        if let (Entry::Executed(_), Some((execution, executed))) =
            (&record.event, state.executions_made().last())
        {
            story.print_execution(executed, execution);
        }
        if args.format == Format::Jsonl {
            output.line(&serde_json::to_string(record)?)?;
        }
    }
    story.finish();
    let result = RunResult::new(&state, journal.head);
    print_result(output, &result, &dir, state.endpoints());
    print_answer(output, &restore(result, &state, &redactions, output), false)
}
