//! `consensus batch`: many runs, in shards.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::watch;

use crate::batch::{EndCounts, OpenColumns, Options, Retry, Shard, State, feed, run, status};
use crate::cli::args::{BatchArgs, BatchCommand, Format, RetryArg};
use crate::cli::batch_story::{BatchStory, in_words};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::runtime::block_on;
use crate::cli::signals;
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::engine::StopRequest;
use crate::files::private_folder;
use crate::journal::Limits;
use crate::provider::Flow;
use crate::provider::launch::Launched;

/// What a signal or the deadline leaves before anything is asked.
const UNBEGUN: &str = "before the batch began; nothing was asked, and the same command begins it";

pub(crate) fn batch(args: &BatchArgs, output: &Output) -> anyhow::Result<ExitCode> {
    match (&args.command, &args.tasks, &args.out) {
        (Some(BatchCommand::Status { dir }), ..) => tell_status(dir, output),
        (None, Some(tasks), Some(out)) => block_on(run_all(args, tasks, out, output))?,
        (None, ..) => Err(UsageError("a batch needs TASKS and --out DIR".to_owned()).into()),
    }
}

async fn run_all(args: &BatchArgs, tasks: &Path, out: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening = signals::listen(UNBEGUN, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let (source, tasks_bytes, documents) = source(tasks)?;
    let made = private_folder(out);
    made.map_err(|why| UsageError(format!("cannot make the folder `{}`: {why}", out.display())))?;
    let mut shard = Shard::open(out, args.shard)?;
    let log = out.join(args.shard.file_name("server", "log"));
    let (columns, server) = OpenColumns::open(args.columns(), file, &log, output).await?;
    let stop = stopped_by(listening.begin(), args.limits.deadline, began);
    tokio::spawn(tell_stopping(stop.clone(), *output));
    let options = Options {
        shard: args.shard,
        seeds: args.seed..args.seed + args.seeds,
        concurrency: args.concurrency as usize,
        flow: Flow { max: args.requests_at_once as usize },
        // The deadline is that of the whole batch.
        limits: Limits { deadline_ms: None, ..args.limits.limits() },
        retry: Retry {
            failed: args.retry.contains(&RetryArg::Failed),
            budget: args.retry.contains(&RetryArg::Budget),
        },
        documents,
        tasks_bytes,
        lifeline: server.as_ref().map(Launched::lifeline),
    };
    let story = BatchStory::new(*output, out, args.shard)?;
    let ended = run(&mut shard, feed(source), &columns, options, stop.clone(), &story).await;
    if let Some(server) = server {
        server.end().await;
    }
    let is_stopped = *stop.borrow() != StopRequest::None;
    let figures = story.finish(ended, is_stopped)?;
    if output.format != Format::Text {
        output.json(&json!({"shard": args.shard.to_string(), "figures": figures}))?;
    }
    let is_late = args.limits.deadline.is_some_and(|deadline| began.elapsed() >= deadline);
    Ok(match () {
        () if is_stopped && is_late => ExitCode::Budget,
        () if is_stopped => ExitCode::Interrupted,
        () if figures.refused > 0 => ExitCode::Usage,
        () if figures.ended.failed > 0 => ExitCode::Provider,
        () if figures.ended.budget > 0 => ExitCode::Budget,
        () => ExitCode::Success,
    })
}

/// A source of tasks, its length if that is known, and where documents are that they name.
type Source = (Box<dyn std::io::Read + Send>, Option<u64>, std::path::PathBuf);

fn source(tasks: &Path) -> anyhow::Result<Source> {
    if tasks.as_os_str() == "-" {
        return Ok((Box::new(std::io::stdin()), None, std::path::PathBuf::new()));
    }
    let wrong = |why| UsageError(format!("cannot read the tasks `{}`: {why}", tasks.display()));
    let file = std::fs::File::open(tasks).map_err(wrong)?;
    let about = file.metadata().map_err(wrong)?;
    if about.is_dir() {
        return Err(wrong(std::io::ErrorKind::IsADirectory.into()).into());
    }
    let documents = tasks.parent().map(Path::to_owned).unwrap_or_default();
    Ok((Box::new(file), about.is_file().then_some(about.len()), documents))
}

/// Tells that a signal was heard, since the open calls may take minutes.
async fn tell_stopping(mut stop: watch::Receiver<StopRequest>, output: Output) {
    if stop.changed().await.is_ok() && *stop.borrow() == StopRequest::Finish {
        output.status("stopping after the open calls; once more to stop at once");
    }
}

/// Stops at a signal, or when the time is over.
fn stopped_by(
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

/// `consensus batch status`.
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
                    format!("died after {}; the same command goes on with it", progress.updated_at)
                }
                State::Running => {
                    format!("{} under way at {}", progress.figures.under_way, progress.updated_at)
                }
            },
        };
        output.line(&format!(
            "shard {:>4}  {:>8}  {}; {state}",
            shard.index,
            shard.ended.all(),
            in_words(&shard.ended)
        ))?;
    }
    output.line(&format!("all         {:>8}  {}", sum.all(), in_words(&sum)))?;
    Ok(ExitCode::Success)
}
