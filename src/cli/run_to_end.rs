//! Drives a command's asynchronous work to its end, and a run with its story, its answer, its files and its exit code.

use std::path::Path;

use tokio::sync::watch;

use super::answer::{print_answer, print_result};
use super::args::EndArgs;
use super::metrics;
use super::output::Output;
use super::progress::ProgressPrinter;
use crate::engine::{Engine, StopRequest};
use crate::journal::REDACTIONS_FILE;
use crate::otlp::Collector;
use crate::run::{AnswerFile, FinishedRun, drive, note_in_session, restore};
use protocol::core::ExitCode;
use protocol::{Outcome, OutcomeKind};

/// Runs one piece of asynchronous work to its end.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A thread that still reads documents does not delay the command.
    runtime.shutdown_background();
    Ok(done)
}

/// The places in which a run leaves its story, its answer and its files.
pub(super) struct RunOutputs<'a> {
    pub(super) dir: &'a Path,
    pub(super) story: &'a ProgressPrinter,
    pub(super) copy: &'a mut AnswerFile,
    pub(super) args: &'a EndArgs,
    /// The collector of the run's trace, if there is one.
    pub(super) collector: Option<Collector>,
    pub(super) output: &'a Output,
}

impl RunOutputs<'_> {
    /// Drives the run to its end, and returns the exit code.
    pub(super) async fn run_to_end(
        self,
        engine: &mut Engine<'_>,
        stop: watch::Receiver<StopRequest>,
    ) -> anyhow::Result<ExitCode> {
        let Self { dir, story, copy, args, collector, output } = self;
        let had_ended = engine.state().outcome().is_some_and(Outcome::is_final);
        let ended = drive(engine, stop, dir).await;
        story.finish();
        let FinishedRun { result, records, written } = ended?;
        let state = engine.state();
        print_result(output, &result, dir, state.endpoints());
        let result = restore(result, state, &dir.join(REDACTIONS_FILE), output);
        // An answer that was paid for is printed, even if its files cannot be written.
        let code = print_answer(output, &result, args.fail_on_degraded)?;
        copy.write(&result)?;
        note_in_session(state, &result, dir, output);
        written?;
        // The trace of a run is sent once, when it has ended for good.
        if !had_ended
            && result.outcome != OutcomeKind::Interrupted
            && let Some(collector) = collector
            && let Err(why) = collector.send(&records).await
        {
            output.warn(&why.to_string());
        }
        metrics::write(args.metrics.metrics_file.as_deref(), dir, output);
        Ok(code)
    }
}
