//! `consensus resume`.

use super::args::ResumeArgs;
use super::output::Output;
use super::progress::Story;
use super::{ExitCode, answer, block_on, locate, run, settings, signals};
use crate::engine::Engine;
use crate::journal::{Limits, Writer};

pub(super) fn resume(args: &ResumeArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = locate::run_folder(&args.which)?;
    block_on(async {
        let stop = signals::listen()?;
        let (writer, journal) = Writer::reopen(&dir)?;
        if journal.torn_bytes > 0 {
            output.tell(&format!("cut a torn last line of {} bytes off the journal", journal.torn_bytes));
        }
        let given = settings::limits(&args.limits);
        let limits = (given != Limits::default()).then_some(given);
        let story = Story::new(*output);
        let mut engine = Engine::resume(writer, &journal, limits, &story)?;
        if answer::is_complete(engine.ledger().outcome()) {
            output.tell("the run has ended already; this is its result");
        }
        let result = run::finish(&mut engine, stop, &dir, &story, output).await?;
        answer::print(output, &result, args.fail_on_degraded)
    })?
}
