//! `consensus run`: has agents work on a task until they agree.

use std::time::Instant;

use crate::cli::args::RunArgs;
use crate::cli::commands::plan;
use crate::cli::output::Output;
use crate::cli::progress::ProgressPrinter;
use crate::cli::run_to_end::{RunOutputs, block_on};
use crate::cli::signals::{self, RESUMABLE, StopMessages};
use crate::config::FileConfig;
use crate::engine::Engine;
use crate::run::{AnswerFile, RunId, draft, introduce};
use protocol::core::ExitCode;

/// The message if a signal or the deadline comes before anything is asked.
const UNBEGUN: &str = "before the run began; nothing was asked, and there is nothing to resume";

pub(crate) fn run(args: &RunArgs, output: &Output) -> anyhow::Result<ExitCode> {
    if args.dry_run {
        return plan::plan(args, output);
    }
    let began = Instant::now();
    let listening =
        signals::listen(StopMessages { unbegun: UNBEGUN, begun: RESUMABLE }, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let id = RunId::new();
    let collector = args.ending.otlp.collector()?;
    let request = args.request(&file, id.seed());
    let dir = request.runs_dir.join(id.to_string());
    block_on(async {
        // The file is opened before a server is started, which can take minutes.
        let mut copy = AnswerFile::open(args.output.as_deref())?;
        let draft = draft(&request, &file)?;
        let why = draft.why;
        let prepared = draft.prepare(&request, &file, &dir, output).await?;
        let stop = listening.begin();
        copy.empty()?;
        if !output.is_brief() {
            introduce(prepared.spec(), why, id, output);
        }
        let story = ProgressPrinter::new(*output);
        let mut engine = Engine::start(&dir, &id.to_string(), prepared.count_from(began), &story)?;
        let outputs =
            RunOutputs { dir: &dir, story: &story, copy: &mut copy, args: &args.ending, collector, output };
        outputs.run_to_end(&mut engine, stop).await
    })?
}
