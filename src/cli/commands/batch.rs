//! `consensus batch`: makes many runs, in shards.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use tokio::sync::watch;

use super::batch_plan::PlannedBatch;
use super::batch_source::{OpenTasks, open};
use super::reused::{reused, tell_reused};
use crate::batch::{
    BatchError, BatchNote, BatchStats, CommandGrader, CommandNote, EndCounts, OpenColumns, Options, Shard,
    State, feed, note, note_servers, run, status,
};
use crate::cli::args::{BatchArgs, BatchCommand, CanonicalArg, Format, GraderArg};
use crate::cli::batch_story::{BatchStory, in_words};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::runtime::block_on;
use crate::cli::signals::{self, Leaves, REPEATABLE};
use crate::config::{CHECK_TIMEOUT_MS, FileConfig};
use crate::engine::StopRequest;
use crate::files::private_folder;
use crate::otlp::SpanQueue;
use crate::program::VERSION;
use crate::provider::Reused;
use crate::provider::launch::{Launched, Lifeline};
use crate::sandbox::{Confinement, Sandbox};
use protocol::core::ExitCode;
use protocol::text::escape;

/// The message if a signal or the deadline comes before anything is asked.
const UNBEGUN: &str = "before the batch began; nothing was asked, and the same command begins it";

pub(crate) fn batch(args: &BatchArgs, output: &Output) -> anyhow::Result<ExitCode> {
    require_matching(args)?;
    match (&args.command, &args.tasks, args.folder()) {
        (Some(BatchCommand::Status { dir }), ..) => tell_status(dir, output),
        (None, Some(tasks), Some(out)) if args.dry_run => plan_all(args, tasks, out, output),
        (None, Some(tasks), Some(out)) => block_on(run_all(args, tasks, out, output))?,
        (None, ..) => Err(UsageError("a batch needs TASKS and --output DIR".to_owned()).into()),
    }
}

/// Refuses options that do not go together.
fn require_matching(args: &BatchArgs) -> Result<(), UsageError> {
    let draws = args.words.or(args.programs);
    let samples = args.words.unwrap_or_default() + args.programs.unwrap_or_default();
    let is_same = |one: &Path, other: &Path| {
        one.canonicalize().ok().zip(other.canonicalize().ok()).is_some_and(|(one, other)| one == other)
    };
    let from_itself = args.from_bank.as_deref().zip(args.folder()).filter(|(bank, out)| is_same(bank, out));
    let why = match (&args.bank, from_itself) {
        _ if args.form.grader == Some(GraderArg::Command) && args.grader_command.is_none() => {
            "--grader command needs --grader-command COMMAND".to_owned()
        }
        (None, _) if draws.is_some() => {
            "--words and --programs go with --bank DIR, and not with --output".to_owned()
        }
        (Some(_), _) if samples == 0 => {
            "a bank needs samples: give --words N, --programs N or both".to_owned()
        }
        (_, Some((_, out))) => format!("`{}` is the bank itself; give another --output", out.display()),
        (_, None) => return Ok(()),
    };
    Err(UsageError(why))
}

async fn run_all(args: &BatchArgs, tasks: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening =
        signals::listen(Leaves { unbegun: UNBEGUN, begun: REPEATABLE }, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let reused = reused(&args.reuse.reuse)?;
    let given = BatchNeeds { file, running: None, reused: Arc::clone(&reused) };
    let ended = run_batch(args, tasks, out, given, output, || {
        let stop = stopped_by(listening.begin(), args.limits.deadline, began);
        tokio::spawn(tell_stopping(stop.clone(), *output));
        stop
    });
    let ended = ended.await;
    tell_reused(&reused, output);
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
    pub(super) running: Option<Launched>,
    /// The batches whose replies are used again.
    pub(super) reused: Arc<Reused>,
}

/// The end of a batch.
pub(super) struct BatchEnd {
    pub(super) figures: BatchStats,
    pub(super) is_stopped: bool,
    /// The server that was launched for it, still running.
    pub(super) server: Option<Launched>,
}

/// Returns the exit code of a batch that has ended.
pub(super) fn exit_code(figures: &BatchStats, is_stopped: bool, is_late: bool) -> ExitCode {
    match () {
        () if is_stopped && is_late => ExitCode::Budget,
        () if is_stopped => ExitCode::Interrupted,
        () if figures.refused > 0 => ExitCode::Usage,
        () if figures.ended.failed > 0 => ExitCode::Provider,
        () if figures.ended.budget > 0 => ExitCode::Budget,
        () => ExitCode::Success,
    }
}

/// Makes the folder of a batch, or of a server's runs.
pub(super) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let made = private_folder(folder);
    Ok(made.map_err(|why| UsageError(format!("cannot make the folder `{}`: {why}", folder.display())))?)
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
    tell_vote(args, &file, output);
    let OpenTasks { source, data, lines, documents } = open(tasks)?;
    make_folder(out)?;
    let mut shard = Shard::open(out, args.shard)?;
    let log = out.join(args.shard.file_name("server", "log"));
    let confinement = args.params.sandbox.confinement(&file);
    let (columns, server) = OpenColumns::open(args.columns(), file, running, &log, output).await?;
    let data = data.filter(|_| columns.all().iter().all(|column| column.sought.is_none()));
    let (shards, columns_noted) = (args.shard.count, columns.notes().to_vec());
    let noted =
        BatchNote { shards, command: command(), columns: columns_noted, data, keep_old: args.keep_old };
    note(out, &noted).map_err(|why| of_bank(args, why))?;
    let (sandbox, grader) = sandbox_and_grader(args, &columns, confinement).await?;
    let traced = args.otlp.collector()?.map(|to| SpanQueue::start(shard.journal_path(), to)).transpose()?;
    let (spans, sending) = traced.unzip();
    let stop = begin();
    let lifeline = server.as_ref().map(Launched::lifeline);
    let clients = Arc::new(args.flow.clients().reusing(reused));
    let options = Options { clients, spans, ..options(args, documents, lines, (sandbox, grader), lifeline) };
    let story = BatchStory::new(*output, out, args.shard)?;
    let tasks = feed(source, args.form.form(tasks, args.grader_command.as_ref()));
    let ended = Box::pin(run(&mut shard, tasks, &columns, options, stop.clone(), &story)).await;
    if let Some(sending) = sending {
        sending.end().await;
    }
    // Servers describe themselves after the runs, so that a slow one delays no run.
    if ended.is_ok() && *stop.borrow() == StopRequest::None {
        note_servers(out, &columns.servers().await)?;
    }
    let is_stopped = *stop.borrow() != StopRequest::None;
    Ok(BatchEnd { figures: story.finish(ended, is_stopped)?, is_stopped, server })
}

/// Names the vote for numbers, if no roleset is named. The tasks of a batch may be of any kind, so its default roleset is the same for all.
fn tell_vote(args: &BatchArgs, file: &FileConfig, output: &Output) {
    let is_named = !args.roleset.is_empty() || file.roleset.is_some();
    if !is_named && matches!(args.params.canonical, Some(CanonicalArg::Number)) {
        output.status("no roleset is named, so a pair answers; on numbers, a small model was right more often with --roleset vote_number --on-disagreement leader, for a third of the tokens of a pair");
    }
}

/// Returns the options of a batch's runs.
fn options(
    args: &BatchArgs,
    documents: PathBuf,
    tasks_lines: Option<u64>,
    (sandbox, grader): (Sandbox, Option<CommandGrader>),
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
        onlooker: None,
    }
}

/// Returns the error in the words of a bank, which has neither arms nor another folder to choose.
fn of_bank(args: &BatchArgs, why: BatchError) -> anyhow::Error {
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
async fn sandbox_and_grader(
    args: &BatchArgs,
    columns: &OpenColumns,
    confinement: Confinement,
) -> anyhow::Result<(Sandbox, Option<CommandGrader>)> {
    // A line of TASKS may name a roleset with a check, so there is a sandbox in any case.
    let sandbox = Sandbox::new(confinement)?;
    if args.grader_command.is_some() || columns.all().iter().any(|column| column.setup.executes()) {
        sandbox.probe().await?;
    }
    let time_max = args.params.check.check_timeout.unwrap_or(Duration::from_millis(CHECK_TIMEOUT_MS));
    let command = args.grader_command.clone();
    let grader = command.map(|command| CommandGrader {
        command,
        time_max,
        sandbox: sandbox.clone(),
        again: args.regrade,
    });
    Ok((sandbox, grader))
}

/// Prints the calls, tokens and cost that the batch would take, for `--dry-run`.
fn plan_all(args: &BatchArgs, tasks: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load_to_read()?;
    tell_vote(args, &file, output);
    let planned = PlannedBatch::new(args, &file, tasks, out, output)?;
    if output.format == Format::Text {
        planned.tell(output)?;
    } else {
        output.json(&planned.to_json())?;
    }
    Ok(planned.exit_code())
}

/// Returns the command for the manifest. It lacks the shard, which differs between processes, and everything that may be secret.
fn command() -> CommandNote {
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
    let mut is_secret = false;
    let mut word = |word: &str| {
        if std::mem::take(&mut is_secret) {
            return "…".to_owned();
        }
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let lower = name.to_ascii_lowercase();
        let is_named = ["key", "token", "secret", "password"].iter().any(|kind| lower.contains(kind));
        is_secret = is_named && value.is_none() && name.starts_with('-');
        if is_named && value.is_some() { format!("{name}=…") } else { word.to_owned() }
    };
    // A command that does not split into words is not written down at all.
    shlex::split(command)
        .map_or_else(|| "…".to_owned(), |words| words.iter().map(|w| word(w)).collect::<Vec<_>>().join(" "))
}

/// Reports that a signal has come, since the open calls may take minutes.
pub(super) async fn tell_stopping(mut stop: watch::Receiver<StopRequest>, output: Output) {
    if stop.changed().await.is_ok() && *stop.borrow() == StopRequest::Finish {
        output.status("finishing calls in flight; press Ctrl-C again to stop now");
    }
}

/// Returns a receiver of requests to stop, which come from signals and from the deadline.
pub(super) fn stopped_by(
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
fn tell_status(dir: &Path, output: &Output) -> anyhow::Result<ExitCode> {
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
                State::Ended => "ended".to_owned(),
                State::Stopped => format!("stopped {}", progress.updated_at),
                State::Running if shard.is_live == Some(false) => {
                    format!("died after {}; the same command continues it", progress.updated_at)
                }
                State::Running => {
                    format!("{} under way at {}", progress.figures.under_way, progress.updated_at)
                }
            },
        };
        output.line(&escape::terminal(&format!(
            "shard {:>4}  {:>8}  {}; {state}",
            shard.index,
            shard.ended.all(),
            in_words(&shard.ended)
        )))?;
    }
    output.line(&format!("all         {:>8}  {}", sum.all(), in_words(&sum)))?;
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
