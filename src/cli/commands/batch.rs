//! `consensus batch`: makes many runs, in shards.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use tokio::sync::watch;

use super::batch_plan::{OpenTasks, PlannedBatch, open_tasks};
use super::reused::{print_reuse, read_reused};
use crate::batch::{
    BatchError, BatchNote, BatchStats, CommandGrader, CommandNote, EndCounts, Grader, Options, ProcessState,
    Shard, VariantSet, feed, note, note_servers, run, status,
};
use crate::cli::args::{BatchArgs, BatchCommand, Format};
use crate::cli::batch_story::{BatchStory, describe_ends};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::run_to_end::block_on;
use crate::cli::signals::{self, REPEATABLE, StopMessages};
use crate::config::{CHECK_TIMEOUT_MS, FileConfig};
use crate::engine::StopRequest;
use crate::files::private_folder;
use crate::otlp::SpanQueue;
use crate::program::VERSION;
use crate::provider::ReusedReplies;
use crate::provider::launch::{LaunchedServer, Lifeline};
use crate::sandbox::{Confinement, Sandbox};
use protocol::core::ExitCode;
use protocol::text::{CanonicalKind, escape};

/// The message if a signal or the deadline comes before anything is asked.
const UNBEGUN: &str = "before the batch began; nothing was asked, and the same command begins it";

pub(crate) fn batch(args: &BatchArgs, output: &Output) -> anyhow::Result<ExitCode> {
    require_matching(args)?;
    match (&args.command, &args.tasks, args.folder()) {
        (Some(BatchCommand::Status { dir }), ..) => print_status(dir, output),
        (None, Some(tasks), Some(out)) if args.dry_run => plan_all(args, tasks, out, output),
        (None, Some(tasks), Some(out)) => block_on(run_all(args, tasks, out, output))?,
        (None, ..) => Err(UsageError("a batch needs TASKS and --output DIR".to_owned()).into()),
    }
}

/// Refuses options that do not go together.
fn require_matching(args: &BatchArgs) -> Result<(), UsageError> {
    if args.form.grader == Some(Grader::Command) && args.grader_command.is_none() {
        return Err(UsageError("--grader command needs --grader-command COMMAND".to_owned()));
    }
    if args.bank.is_none() && (args.words.is_some() || args.programs.is_some()) {
        let why = "--words and --programs go with --bank DIR, and not with --output";
        return Err(UsageError(why.to_owned()));
    }
    let samples = args.words.unwrap_or_default() + args.programs.unwrap_or_default();
    if args.bank.is_some() && samples == 0 {
        let why = "a bank needs samples: give --words N, --programs N or both";
        return Err(UsageError(why.to_owned()));
    }
    if let (Some(bank), Some(out)) = (&args.from_bank, args.folder())
        && is_same_place(bank, out)
    {
        return Err(UsageError(format!("`{}` is the bank itself; give another --output", out.display())));
    }
    Ok(())
}

pub(super) fn is_same_place(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

async fn run_all(args: &BatchArgs, tasks: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening =
        signals::listen(StopMessages { unbegun: UNBEGUN, begun: REPEATABLE }, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let reused = read_reused(&args.reuse.reuse)?;
    let given = BatchNeeds { file, running: None, reused: Arc::clone(&reused) };
    let ended = run_batch(args, tasks, out, given, output, || {
        let stop = stop_at_deadline(listening.begin(), args.limits.deadline, began);
        tokio::spawn(print_stopping(stop.clone(), *output));
        stop
    });
    let ended = ended.await;
    print_reuse(&reused, output);
    let BatchEnd { figures, is_stopped, server } = ended?;
    if let Some(server) = server {
        server.end().await;
    }
    if output.format != Format::Text {
        output.json(&json!({"shard": args.shard.to_string(), "figures": figures}))?;
    }
    let is_late = args.limits.deadline.is_some_and(|deadline| began.elapsed() >= deadline);
    Ok(exit_code(&figures, is_stopped, is_late))
}

/// What a batch needs that several batches can share.
pub(super) struct BatchNeeds {
    pub(super) file: FileConfig,
    /// A server that --launch has started before.
    pub(super) running: Option<LaunchedServer>,
    /// The batches whose replies are used again.
    pub(super) reused: Arc<ReusedReplies>,
}

pub(super) struct BatchEnd {
    pub(super) figures: BatchStats,
    pub(super) is_stopped: bool,
    /// The server that was launched for it, still running.
    pub(super) server: Option<LaunchedServer>,
}

pub(super) fn exit_code(figures: &BatchStats, is_stopped: bool, is_late: bool) -> ExitCode {
    if is_stopped {
        if is_late { ExitCode::Budget } else { ExitCode::Interrupted }
    } else if figures.refused > 0 {
        ExitCode::Usage
    } else if figures.ended.failed > 0 {
        ExitCode::Provider
    } else if figures.ended.budget > 0 {
        ExitCode::Budget
    } else {
        ExitCode::Success
    }
}

/// Makes the folder of a batch, or of a server's runs.
pub(super) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    private_folder(folder)
        .map_err(|why| UsageError(format!("cannot make the folder `{}`: {why}", folder.display())))?;
    Ok(())
}

/// Runs a batch to its end or until it is stopped. `begin` declares that it begins, and returns the receiver of requests to stop.
pub(super) async fn run_batch(
    args: &BatchArgs,
    tasks: &Path,
    out: &Path,
    given: BatchNeeds,
    output: &Output,
    begin: impl FnOnce() -> watch::Receiver<StopRequest>,
) -> anyhow::Result<BatchEnd> {
    let BatchNeeds { file, running, reused } = given;
    suggest_vote(args, &file, output);
    let OpenTasks { source, data, lines, documents } = open_tasks(tasks)?;
    make_folder(out)?;
    let mut shard = Shard::open(out, args.shard)?;
    let log = out.join(args.shard.file_name("server", "log"));
    let confinement = args.params.sandbox.confinement(&file);
    let (variants, server) = VariantSet::open(args.variant_request(), file, running, &log, output).await?;
    let is_redacted = variants.all().iter().any(|variant| variant.sought.is_some());
    let batch_note = BatchNote {
        shards: args.shard.count,
        command: note_command(),
        variants: variants.notes().to_vec(),
        data: if is_redacted { None } else { data },
        keep_old: args.keep_old,
    };
    note(out, &batch_note).map_err(|why| bank_error(args, why))?;
    let (sandbox, grader) = open_sandbox_and_grader(args, &variants, confinement).await?;
    let traced = args.otlp.collector()?.map(|to| SpanQueue::start(shard.journal_path(), to)).transpose()?;
    let (spans, sending) = traced.unzip();
    let stop = begin();
    let lifeline = server.as_ref().map(LaunchedServer::lifeline);
    let clients = Arc::new(args.flow.clients().reusing(reused));
    let options = Options { clients, spans, ..options(args, documents, lines, sandbox, grader, lifeline) };
    let story = BatchStory::new(*output, out, args.shard)?;
    let tasks = feed(source, args.form.form(tasks, args.grader_command.as_ref()));
    let ended = Box::pin(run(&mut shard, tasks, Some(&variants), options, stop.clone(), &story)).await;
    if let Some(sending) = sending {
        sending.end().await;
    }
    // Servers describe themselves after the runs, so that a slow one delays no run.
    if ended.is_ok() && *stop.borrow() == StopRequest::None {
        note_servers(out, &variants.servers().await)?;
    }
    let is_stopped = *stop.borrow() != StopRequest::None;
    Ok(BatchEnd { figures: story.finish(ended, is_stopped)?, is_stopped, server })
}

/// Names the vote for numbers, if no roleset is named. The tasks of a batch may be of any kind, so its default roleset is the same for all.
fn suggest_vote(args: &BatchArgs, file: &FileConfig, output: &Output) {
    let is_named = !args.roleset.is_empty() || file.roleset.is_some();
    if !is_named && args.params.canonical == Some(CanonicalKind::Number) {
        output.status("no roleset is named, so a pair answers; on numbers, a small model was right more often with --roleset vote_number --on-disagreement leader, for a third of the tokens of a pair");
    }
}

fn options(
    args: &BatchArgs,
    documents: PathBuf,
    tasks_lines: Option<u64>,
    sandbox: Sandbox,
    grader: Option<CommandGrader>,
    lifeline: Option<Lifeline>,
) -> Options {
    Options {
        shard: args.shard,
        seeds: args.first_seed..args.first_seed + args.seeds,
        concurrency: args.flow.runs_at_once as usize,
        threads: args.flow.threads(),
        clients: Arc::default(),
        limits: args.run_limits(),
        retry: args.retried(),
        documents,
        tasks_lines,
        sandbox,
        grader,
        lifeline,
        gives_up: true,
        spans: None,
        observer: None,
    }
}

/// Returns the error in the words of a bank, which has neither arms nor another folder to choose.
fn bank_error(args: &BatchArgs, why: BatchError) -> anyhow::Error {
    match (why, &args.bank) {
        (BatchError::Settings { .. }, Some(bank)) => {
            let bank = bank.display();
            UsageError(format!("the bank `{bank}` was drawn with other settings, and cannot grow; name another folder for --bank"))
                .into()
        }
        (why, _) => why.into(),
    }
}

/// Returns the sandbox of all commands, which works if one is sure to run, and the command that grades texts, if one is given.
async fn open_sandbox_and_grader(
    args: &BatchArgs,
    variants: &VariantSet,
    confinement: Confinement,
) -> anyhow::Result<(Sandbox, Option<CommandGrader>)> {
    // A line of TASKS may name a roleset with a check, so there is a sandbox in any case.
    let sandbox = Sandbox::new(confinement)?;
    if args.grader_command.is_some() || variants.all().iter().any(|variant| variant.setup.executes()) {
        sandbox.probe().await?;
    }
    let time_max = args.params.check_timeout.unwrap_or(Duration::from_millis(CHECK_TIMEOUT_MS));
    let Some(command) = args.grader_command.clone() else { return Ok((sandbox, None)) };
    let grader = CommandGrader { command, time_max, sandbox: sandbox.clone(), again: args.regrade };
    Ok((sandbox, Some(grader)))
}

/// Prints the calls, tokens and cost that the batch would take, for `--dry-run`.
fn plan_all(args: &BatchArgs, tasks: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load_to_read()?;
    suggest_vote(args, &file, output);
    let planned = PlannedBatch::new(args, &file, tasks, out, output)?;
    if output.format == Format::Text {
        planned.print(output)?;
    } else {
        output.json(&planned.to_json())?;
    }
    Ok(planned.exit_code())
}

/// Returns the command for the manifest. It lacks the shard, which differs between processes, and everything that may be secret.
fn note_command() -> CommandNote {
    let mut words: Vec<String> = Vec::new();
    let (mut is_left_out, mut is_launch) = (false, false);
    for word in std::env::args_os().skip(1) {
        let word = word.to_string_lossy().into_owned();
        if std::mem::take(&mut is_left_out) {
            continue;
        }
        if std::mem::take(&mut is_launch) {
            words.push(without_secrets(&word));
            continue;
        }
        let (name, value) = word.split_once('=').map_or((&*word, None), |(name, value)| (name, Some(value)));
        if name == "--launch" {
            is_launch = value.is_none();
            words.push(value.map_or(word.clone(), |value| format!("--launch={}", without_secrets(value))));
        } else if let "--shard" | "--redact-pattern" = name {
            is_left_out = value.is_none();
            words.extend((name != "--shard").then(|| format!("{name}=…")));
        } else {
            // The query of an address may hold a key.
            let address = word.split_once('?').filter(|(address, _)| address.contains("://"));
            words.push(address.map_or(word.clone(), |(address, _)| format!("{address}?…")));
        }
    }
    CommandNote {
        at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        program: format!("consensus {VERSION}"),
        words,
    }
}

/// Returns the command of a server without the values of flags whose names say that they are secret.
fn without_secrets(command: &str) -> String {
    // A command that does not split into words is not written down at all.
    let Some(words) = shlex::split(command) else { return "…".to_owned() };
    let (mut shown, mut is_secret) = (Vec::new(), false);
    for word in &words {
        if std::mem::take(&mut is_secret) {
            shown.push("…".to_owned());
            continue;
        }
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        let has_value = name.len() < word.len();
        let lower = name.to_ascii_lowercase();
        let is_named = ["key", "token", "secret", "password"].iter().any(|kind| lower.contains(kind));
        is_secret = is_named && !has_value && name.starts_with('-');
        shown.push(if is_named && has_value { format!("{name}=…") } else { word.clone() });
    }
    shown.join(" ")
}

/// Reports that a signal has come, since the open calls may take minutes.
pub(super) async fn print_stopping(mut stop: watch::Receiver<StopRequest>, output: Output) {
    if stop.changed().await.is_ok() && *stop.borrow() == StopRequest::Finish {
        output.status("finishing calls in flight; press Ctrl-C again to stop now");
    }
}

/// Returns a receiver of requests to stop, which come from signals and from the deadline.
pub(super) fn stop_at_deadline(
    mut signals: watch::Receiver<StopRequest>,
    deadline: Option<Duration>,
    began: Instant,
) -> watch::Receiver<StopRequest> {
    let Some(deadline) = deadline else { return signals };
    let (sender, stop) = watch::channel(StopRequest::None);
    tokio::spawn(async move {
        let late = tokio::time::sleep_until((began + deadline).into());
        tokio::pin!(late);
        let mut is_late = false;
        loop {
            tokio::select! {
                () = &mut late, if !is_late => is_late = true,
                Ok(()) = signals.changed() => {}
            }
            let asked = *signals.borrow_and_update();
            let request = if is_late { StopRequest::Abort } else { asked };
            if sender.send(request).is_err() || request == StopRequest::Abort {
                return;
            }
        }
    });
    stop
}

/// Prints the state of each shard, for `consensus batch status`.
fn print_status(dir: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let shards = status(dir)?;
    let mut sum = EndCounts::default();
    for shard in &shards {
        sum.merge(&shard.ended);
    }
    if output.format != Format::Text {
        output.json(&json!({"ended": sum, "shards": shards}))?;
        return Ok(ExitCode::Success);
    }
    for shard in &shards {
        let state = match &shard.progress {
            None => "not begun".to_owned(),
            Some(progress) => match progress.state {
                ProcessState::Ended => "ended".to_owned(),
                ProcessState::Stopped => format!("stopped {}", progress.updated_at),
                ProcessState::Running if shard.is_live == Some(false) => {
                    format!("died after {}; the same command continues it", progress.updated_at)
                }
                ProcessState::Running => {
                    format!("{} under way at {}", progress.figures.under_way, progress.updated_at)
                }
            },
        };
        output.line(&escape::terminal(&format!(
            "shard {:>4}  {:>8}  {}; {state}",
            shard.index,
            shard.ended.all(),
            describe_ends(&shard.ended)
        )))?;
    }
    output.line(&format!("all         {:>8}  {}", sum.all(), describe_ends(&sum)))?;
    Ok(ExitCode::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_command_is_written_without_secrets() {
        for (command, shown) in [
            ("vllm --max-model-len 8192", "vllm --max-model-len 8192"),
            ("vllm --api-key 'two words' --port 1", "vllm --api-key … --port 1"),
            ("vllm --api-key=abc --hf-token def", "vllm --api-key=… --hf-token …"),
            ("env HF_TOKEN=abc vllm", "env HF_TOKEN=… vllm"),
            ("vllm --api-key 'open", "…"),
        ] {
            assert_eq!(without_secrets(command), shown);
        }
    }
}
