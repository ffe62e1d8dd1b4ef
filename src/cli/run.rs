//! `consensus run`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use tokio::sync::watch;
use uuid::Uuid;

use super::answer::{self, AnswerFile};
use super::output::Output;
use super::progress::ProgressPrinter;
use super::run_args::RunArgs;
use super::runtime::block_on;
use super::settings::{self, PreparedRun};
use super::{locate, metrics, plan, signals};
use crate::api::Session;
use crate::config::FileConfig;
use crate::core::{Endpoint, ExitCode};
use crate::engine::{Engine, Redaction, RunState, StopRequest};
use crate::journal::{RunSpec, read};
use crate::provider::launch::Launched;
use crate::report::RunResult;

/// What a signal or the deadline leaves before anything is asked.
const UNBEGUN: &str = "before the run began; nothing was asked, and there is nothing to resume";

pub(super) fn run(args: &RunArgs, output: &Output) -> anyhow::Result<ExitCode> {
    if args.dry_run {
        return plan::plan(args, output);
    }
    let began = Instant::now();
    let listening = signals::listen(UNBEGUN, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let id = Uuid::now_v7();
    // The low half of the id is random; a seed that is not given is drawn from it and recorded.
    let seed = args.seed.unwrap_or(id.as_u64_pair().1 >> 11);
    let dir = settings::runs_dir(args.runs_dir.as_ref(), &file).join(id.to_string());
    block_on(async {
        // Before a server is started, which can take minutes.
        let mut copy = AnswerFile::open(args.output.as_deref())?;
        let PreparedRun { opened, server, corpus, redaction, why } =
            settings::opened(args, &file, seed, &dir, output).await?;
        let stop = listening.begin();
        copy.empty()?;
        introduce(output, &opened, why, &id);
        let story = ProgressPrinter::new(*output);
        let redaction = redaction.map(|redaction| saved(redaction, &dir)).transpose()?;
        let started = Engine::start(&dir, &id.to_string(), opened, &story);
        if let (Err(_), Some(redaction)) = (&started, &redaction) {
            redaction.discard();
        }
        let mut engine = started?;
        engine.count_from(began);
        if let Some(corpus) = corpus {
            engine.lend(corpus);
        }
        if let Some(redaction) = redaction {
            engine.redact_by(redaction);
        }
        let (result, written) = finish(&mut engine, server, stop, &dir, &story, output).await?;
        // An answer that was paid for is printed, whatever became of its files.
        let code = answer::print(output, &result, args.fail_on_degraded)?;
        copy.write(&result)?;
        note_in_session(engine.ledger(), &result, &dir, output);
        written?;
        metrics::write(args.metrics_file.as_deref(), &dir, output);
        Ok(code)
    })?
}

/// Writes the table of what was redacted, before anything with a token in it is written or sent.
fn saved(mut redaction: Redaction, dir: &Path) -> anyhow::Result<Redaction> {
    settings::private_folder(dir)?;
    redaction.save().with_context(|| format!("cannot write into `{}`", dir.display()))?;
    Ok(redaction)
}

/// Runs an engine to its end and writes the run's files; returns the result, and whether they could be written.
pub(super) async fn finish(
    engine: &mut Engine<'_>,
    server: Option<Launched>,
    stop: watch::Receiver<StopRequest>,
    dir: &Path,
    story: &ProgressPrinter,
    output: &Output,
) -> anyhow::Result<(RunResult, anyhow::Result<()>)> {
    if let Some(server) = &server {
        engine.attach(&server.lifeline());
    }
    let ended = engine.run(stop).await;
    story.finish();
    if let Some(server) = server {
        server.end().await;
    }
    ended?;
    let result = RunResult::new(engine.ledger(), engine.journal_head());
    let journal: PathBuf = dir.join(crate::journal::FILE_NAME);
    let written = answer::write_files(dir, &result, &read(&journal)?.records);
    answer::tell(output, &result, dir, engine.ledger().endpoints());
    Ok((answer::restore(result, engine.ledger(), dir, output), written))
}

/// Adds a run to the session that its record names, if it names one and the session does not say so already.
pub(super) fn note_in_session(ledger: &RunState, result: &RunResult, dir: &Path, output: &Output) {
    let RunSpec { setup, session: Some(place), .. } = ledger.opened() else { return };
    let added = Session::open(&locate::folder_of_runs(dir), &place.name)
        .and_then(|mut session| session.add(&setup.task.prompt, result));
    // A run that was paid for ends as it did, also if the next one of its session will not know of it.
    if let Err(why) = added {
        output.insist(&format!(
            "the run was not added to its session, which `consensus resume` makes up for: {why}"
        ));
    }
}

/// Tells which run begins, by which roleset and where; `why` says how the roleset was chosen if no flag names it.
pub(super) fn introduce(output: &Output, opened: &RunSpec, why: Option<&str>, id: &Uuid) {
    let labels: Vec<String> = opened.endpoints.iter().map(Endpoint::label).collect();
    let mut distinct = labels.clone();
    distinct.dedup();
    let (roleset, seed) = (&opened.setup.roleset, opened.setup.seed);
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let line = format!("run {id}: {roleset}{why}, seed {seed}, {}", distinct.join(" and "));
    output.tell(&crate::text::escape::terminal(&line));
}
