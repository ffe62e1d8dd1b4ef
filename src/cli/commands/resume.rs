//! `consensus resume`: resumes a run that was interrupted, failed, or hit a limit.

use std::time::Instant;

use crate::cli::args::ResumeArgs;
use crate::cli::output::Output;
use crate::cli::progress::ProgressPrinter;
use crate::cli::run_to_end::{RunOutputs, block_on};
use crate::cli::signals::{self, RESUMABLE, StopMessages};
use crate::config::FileConfig;
use crate::engine::Engine;
use crate::journal::Writer;
use crate::run::{AnswerFile, prepare_resume};
use protocol::Outcome;
use protocol::core::ExitCode;

/// The message if a signal or the deadline comes before anything is asked.
const UNCHANGED: &str = "before the run continued; nothing was asked, and it can be resumed as before";

pub(crate) fn resume(args: &ResumeArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening =
        signals::listen(StopMessages { unbegun: UNCHANGED, begun: RESUMABLE }, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let collector = args.ending.otlp.collector()?;
    let dir = args.folder(&file)?;
    block_on(async {
        let (writer, journal) = Writer::reopen(&dir)?;
        if journal.torn_bytes > 0 {
            output.status(&format!("cut a torn last line of {} bytes off the journal", journal.torn_bytes));
        }
        let mut copy = AnswerFile::open(args.output.as_deref())?;
        let resumption = prepare_resume(&args.request(&file), &file, &journal, &dir, output).await?;
        let stop = listening.begin();
        copy.empty()?;
        let story = ProgressPrinter::new(*output);
        let mut engine = Engine::resume(writer, &journal, resumption.count_from(began), &story)?;
        if engine.state().outcome().is_some_and(Outcome::is_final) {
            output.status("the run has ended already; this is its result");
        }
        let outputs =
            RunOutputs { dir: &dir, story: &story, copy: &mut copy, args: &args.ending, collector, output };
        outputs.run_to_end(&mut engine, stop).await
    })?
}
