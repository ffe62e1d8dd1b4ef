//! `consensus batch`: makes many runs, in shards.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::plan::print_planned;
use super::reused::{print_reuse, read_reused};
use crate::batch::{BatchRequest, EndCounts, Grader, PlannedBatch, ProcessState, status};
use crate::cli::args::{BatchArgs, BatchCommand, Format};
use crate::cli::batch_story::{describe_ends, run_batch};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::run_to_end::block_on;
use crate::cli::signals::{self, REPEATABLE, StopMessages, print_stopping, stop_at_deadline};
use crate::config::FileConfig;
use crate::files::is_same_place;
use protocol::core::ExitCode;
use protocol::text::escape;

/// The message if a signal or the deadline comes before anything is asked.
const UNBEGUN: &str = "before the batch began; nothing was asked, and the same command begins it";

pub(crate) fn batch(args: &BatchArgs, output: &Output) -> anyhow::Result<ExitCode> {
    require_matching(args)?;
    match (&args.command, &args.tasks, args.folder()) {
        (Some(BatchCommand::Status { dir }), ..) => print_status(dir, output),
        (None, Some(tasks), Some(out)) if args.dry_run => plan_all(&args.request(tasks, out), output),
        (None, Some(tasks), Some(out)) => block_on(run_all(args, args.request(tasks, out), output))?,
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

async fn run_all(args: &BatchArgs, request: BatchRequest, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let deadline = args.limits.deadline;
    let listening = signals::listen(StopMessages { unbegun: UNBEGUN, begun: REPEATABLE }, deadline, output)?;
    let file = FileConfig::load()?;
    let reused = read_reused(&args.reuse.reuse)?;
    let ended = async {
        let batch = Box::pin(request.prepare(file, None, Arc::clone(&reused), output)).await?;
        let stop = stop_at_deadline(listening.begin(), deadline, began);
        tokio::spawn(print_stopping(stop.clone(), *output));
        Box::pin(run_batch(batch, &stop, output)).await
    };
    let ended = Box::pin(ended).await;
    print_reuse(&reused, output);
    let mut ended = ended?;
    if let Some(server) = ended.server.take() {
        server.end().await;
    }
    if output.format != Format::Text {
        output.json(&json!({"shard": args.shard.to_string(), "figures": ended.figures}))?;
    }
    Ok(ended.exit_code(deadline.is_some_and(|deadline| began.elapsed() >= deadline)))
}

/// Prints the calls, tokens and cost that the batch would take, for `--dry-run`.
fn plan_all(request: &BatchRequest, output: &Output) -> anyhow::Result<ExitCode> {
    let file = FileConfig::load_to_read()?;
    let planned = PlannedBatch::new(request, &file, output)?;
    if output.format == Format::Text {
        print_planned(&planned, output)?;
    } else {
        output.json(&planned.to_json())?;
    }
    Ok(planned.exit_code())
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
