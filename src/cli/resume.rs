//! `consensus resume`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;

use super::answer::{self, AnswerFile};
use super::args::ResumeArgs;
use super::error::{IntegrityError, UsageError};
use super::output::Output;
use super::progress::ProgressPrinter;
use super::runtime::block_on;
use super::{docs, launch, locate, metrics, run, settings, signals};
use crate::config::{Chosen, FileConfig, launch_command, resumed_endpoints};
use crate::core::{Endpoint, ExitCode};
use crate::engine::{Changes, Engine, Redaction, RunState};
use crate::journal::{Journal, Limits, Writer};
use crate::provider::launch::Launched;
use crate::retrieval::Corpus;

/// What a signal or the deadline leaves before anything is asked.
const UNCHANGED: &str = "before the run went on; nothing was asked, and it can be resumed as before";

pub(super) fn resume(args: &ResumeArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening = signals::listen(UNCHANGED, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let dir = locate::run_folder_by(&args.which, &file)?;
    block_on(async {
        let (writer, journal) = Writer::reopen(&dir)?;
        if journal.torn_bytes > 0 {
            output.tell(&format!("cut a torn last line of {} bytes off the journal", journal.torn_bytes));
        }
        let mut copy = AnswerFile::open(args.output.as_deref())?;
        let Prepared { now, server, corpus, redaction } =
            prepare(args, &file, &journal, &dir, output).await?;
        let stop = listening.begin();
        copy.empty()?;
        let story = ProgressPrinter::new(*output);
        let mut engine = Engine::resume(writer, &journal, now, &story)?;
        if answer::is_complete(engine.ledger().outcome()) {
            output.tell("the run has ended already; this is its result");
        }
        engine.count_from(began);
        if let Some(corpus) = corpus {
            engine.lend(corpus);
        }
        if let Some(redaction) = redaction {
            engine.redact_by(redaction);
        }
        let (result, written) = run::finish(&mut engine, server, stop, &dir, &story, output).await?;
        let code = answer::print(output, &result, args.fail_on_degraded)?;
        copy.write(&result)?;
        run::note_in_session(engine.ledger(), &result, &dir, output);
        written?;
        metrics::write(args.metrics_file.as_deref(), &dir, output);
        Ok(code)
    })?
}

/// What a resume needs besides the journal; nothing, for a run that has ended.
#[derive(Default)]
struct Prepared {
    now: Changes,
    server: Option<Launched>,
    corpus: Option<Corpus>,
    redaction: Option<Redaction>,
}

/// Finds out where models are called from here on, and which limits hold: what is given now over
/// what held before.
async fn prepare(
    args: &ResumeArgs,
    file: &FileConfig,
    journal: &Journal,
    dir: &Path,
    output: &Output,
) -> anyhow::Result<Prepared> {
    let mismatch = |(line, why)| IntegrityError(format!("the journal's line {line} does not verify: {why}"));
    let ledger = RunState::replay(&journal.records).map_err(mismatch)?;
    if answer::is_complete(ledger.outcome()) {
        return Ok(Prepared::default());
    }
    // Before a server is started in vain.
    let redaction = ledger.opened().redacted.then(|| Redaction::load(dir)).transpose();
    let mut redaction =
        redaction.map_err(|why| UsageError(format!("the run needs its table of redactions: {why}")))?;
    let places = ledger.opened().library.as_ref().map_or(&[][..], |library| &library.places);
    let original = |place: &PathBuf| match &redaction {
        Some(redaction) => redaction.redactions().restore(&place.to_string_lossy()).into(),
        None => place.clone(),
    };
    let places: Vec<PathBuf> = places.iter().map(original).collect();
    let corpus = docs::open_beside(&places, output).await.context("the run needs its documents again")?;
    let (corpus, library) = corpus.unzip();
    let mut chosen = Chosen {
        model: args.model.clone(),
        base_url: args.base_url.clone(),
        launch: args.launch.clone(),
        allow_http: args.allow_http,
        ..Chosen::default()
    };
    // A configured server is started again for a run that had one, and for no other.
    let is_launched = |endpoint: &Endpoint| matches!(endpoint, Endpoint::OpenAi(e) if e.launched);
    let wants_server = args.launch.is_some() || ledger.endpoints().iter().any(is_launched);
    let command = if wants_server { launch_command(&chosen, file, None)? } else { None };
    let server = launch::launch(command.as_ref(), &mut chosen, file, &dir.join(launch::LOG), output).await?;
    let searches = ledger.library().is_some();
    let endpoints = resumed_endpoints(ledger.endpoints(), searches, &chosen, file).await?;
    let (given, before) = (settings::limits(&args.limits), ledger.limits());
    settings::check_prices(given, &endpoints)?;
    let limits = Limits {
        tokens_total_max: given.tokens_total_max.or(before.tokens_total_max),
        cost_micro_usd_max: given.cost_micro_usd_max.or(before.cost_micro_usd_max),
        deadline_ms: given.deadline_ms.or(before.deadline_ms),
    };
    // As it is written: with tokens.
    let library = match &mut redaction {
        Some(redaction) => {
            let library = library.map(|library| redaction.library(library));
            redaction.save_if_new().context("the table of redactions cannot be written")?;
            library
        }
        None => library,
    };
    let now = Changes { limits: Some(limits), endpoints: Some(endpoints), library };
    Ok(Prepared { now, server, corpus, redaction })
}
