//! The batches of an evaluation: banks first, and then each arm.
//!
//! The input is the plan of an evaluation and its flags. The output is the runs in the folder, or what they would take. A server that is
//! launched serves one batch after the other, as long as the model stays the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use super::batch::{BatchEnd, BatchNeeds, exit_code, run_batch};
use super::batch_plan::{PlannedBatch, PlannedSum};
use super::reused::{print_reuse, read_reused};
use crate::batch::{BatchError, BatchStats, Draws, TaskLine, is_batch, note_plan, results};
use crate::cli::args::{BatchArgs, EvalArgs, Format, Replies};
use crate::cli::error::UsageError;
use crate::cli::eval_table::{power_lines, power_rows};
use crate::cli::output::Output;
use crate::config::FileConfig;
use crate::engine::StopRequest;
use crate::eval::{ARMS, EvalData, EvalPlan, PlannedArm, PlannedBank, tasks_file, write_tasks};
use crate::files::{Scratch, private_folder};
use crate::provider::ReusedReplies;
use crate::provider::launch::LaunchedServer;
use protocol::core::ExitCode;
use protocol::text::{counted, escape};

struct EvalJob {
    heading: String,
    batch: BatchArgs,
    folder: PathBuf,
}

/// Returns the batches of an evaluation in their order.
fn jobs(args: &EvalArgs, plan: &EvalPlan, part: &Path) -> Result<Vec<EvalJob>, UsageError> {
    let mut jobs = Vec::new();
    for bank in &plan.banks {
        let PlannedBank { folder, roleset, model, settings, words, programs, .. } = bank;
        let (folder, draws) = (part.join(folder), Draws { words: *words, programs: *programs });
        let batch = args.batch(roleset, model, settings, None, folder.clone(), &Replies::Drawn(draws))?;
        let samples = match (words, programs) {
            (0, programs) => counted(*programs, "program"),
            (words, 0) => format!("{} in words", counted(*words, "sample")),
            (words, programs) => {
                format!("{} in words and {}", counted(*words, "sample"), counted(*programs, "program"))
            }
        };
        jobs.push(EvalJob { heading: format!("bank: {samples} of each task"), batch, folder });
    }
    for arm in &plan.arms {
        let PlannedArm { name, roleset, model, settings, bank, is_on_curve, .. } = arm;
        let bank = bank.map(|bank| part.join(&plan.banks[bank].folder));
        let replies = bank.as_deref().map_or(Replies::Model, Replies::Bank);
        let folder = part.join(ARMS);
        let mut batch = args.batch(roleset, model, settings, Some(name), folder.clone(), &replies)?;
        // The number of samples bounds a point of the curve, so no other limit does.
        batch.has_run_limits = !is_on_curve;
        jobs.push(EvalJob { heading: format!("arm {name}"), batch, folder });
    }
    Ok(jobs)
}

/// Runs all batches, and returns the first exit code that is no success.
pub(super) async fn run_all(
    args: &EvalArgs,
    plan: &EvalPlan,
    part: &Path,
    stop: &watch::Receiver<StopRequest>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let reused = read_reused(&args.reuse.reuse)?;
    let code = run_each(args, plan, part, stop, &reused, output).await;
    print_reuse(&reused, output);
    code
}

async fn run_each(
    args: &EvalArgs,
    plan: &EvalPlan,
    part: &Path,
    stop: &watch::Receiver<StopRequest>,
    reused: &Arc<ReusedReplies>,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let tasks = tasks_file(part);
    let mut code = ExitCode::Success;
    let mut server: Option<(String, LaunchedServer)> = None;
    for EvalJob { heading, batch, folder } in jobs(args, plan, part)? {
        if *stop.borrow() != StopRequest::None {
            break;
        }
        output.status(&escape::terminal(&heading));
        let file = FileConfig::load()?;
        note_plan(&folder, plan.sha256())?;
        let model = batch.server.model.clone().unwrap_or_default();
        let is_called = batch.from_bank.is_none();
        let running = if is_called { take_server(&mut server, &model).await } else { None };
        let given = BatchNeeds { file, running, reused: Arc::clone(reused) };
        let ended = run_batch(&batch, &tasks, &folder, given, output, || stop.clone());
        let BatchEnd { figures, is_stopped, server: running } = Box::pin(ended).await?;
        match running {
            Some(running) if is_called => server = Some((model, running)),
            Some(running) => running.end().await,
            None => {}
        }
        if code == ExitCode::Success {
            code = batch_exit_code(&batch, figures, is_stopped);
        }
        // An arm that counts samples would lack those that a bank lacks.
        if batch.bank.is_some() && code != ExitCode::Success {
            break;
        }
    }
    if let Some((_, server)) = server {
        server.end().await;
    }
    Ok(code)
}

/// Returns the server that runs for this model. One for another model is ended.
async fn take_server(server: &mut Option<(String, LaunchedServer)>, model: &str) -> Option<LaunchedServer> {
    let (of, running) = server.take()?;
    if of == model {
        return Some(running);
    }
    running.end().await;
    None
}

/// Returns the exit code of a batch. An arm that reaches the limits of its runs has given no answer, which is a result as any; a bank that
/// does lacks samples.
fn batch_exit_code(batch: &BatchArgs, mut figures: BatchStats, is_stopped: bool) -> ExitCode {
    if batch.bank.is_none() {
        figures.ended.budget = 0;
    }
    exit_code(&figures, is_stopped, false)
}

/// Prints what the evaluation would take, and what so many items can find.
pub(super) fn print_plan(
    args: &EvalArgs,
    file: &FileConfig,
    plan: &EvalPlan,
    data: &EvalData,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    let scratch = Scratch::new(&std::env::temp_dir(), "eval")?;
    // The scratch folder itself is locked as long as it is in use.
    let folder = scratch.path().join("tasks");
    private_folder(&folder)?;
    write_tasks(&folder, own_tasks(args, data))?;
    let tasks = tasks_file(&folder);
    let part = plan.part(args.out.as_deref().unwrap_or(Path::new("")), args.shard.index);
    let (mut sum, mut time, mut refused) = (PlannedSum::zero(), Some(Duration::ZERO), false);
    let is_text = output.format == Format::Text;
    let mut batches = Vec::new();
    for EvalJob { heading, batch, folder } in jobs(args, plan, &part)? {
        if batch.from_bank.is_some() {
            print_heading(output, &format!("{heading}: from a bank, without calls"))?;
            continue;
        }
        print_heading(output, &heading)?;
        let planned = PlannedBatch::new(&batch, file, &tasks, &folder, output)?;
        if is_text {
            planned.print(output)?;
        } else {
            let mut batch = planned.to_json();
            batch["batch"] = json!(heading);
            batches.push(batch);
        }
        planned.add_to(&mut sum);
        refused |= planned.exit_code() != ExitCode::Success;
        let one = mean_time(&folder, batch.arm.as_deref())?;
        let more = if planned.left() == 0 {
            Some(Duration::ZERO)
        } else {
            one.map(|one| one.saturating_mul(runs_in_each_place(&planned, args)))
        };
        time = time.zip(more).map(|(time, more)| time.saturating_add(more));
    }
    print_heading(output, "in all")?;
    if is_text {
        sum.print(output)?;
    } else {
        let mut whole = sum.to_json(time);
        whole["batches"] = json!(batches);
        whole["power"] = json!(power_rows(plan));
        output.json(&whole)?;
    }
    let duration = match time {
        Some(time) => {
            let time = humantime::format_duration(Duration::from_secs(time.as_secs()));
            format!("about {time}, by the runs that have ended")
        }
        None => "the time is not known before some runs of every batch have ended; --pilot N makes a few"
            .to_owned(),
    };
    print_heading(output, &duration)?;
    for line in power_lines(plan) {
        print_heading(output, &line)?;
    }
    Ok(if refused { ExitCode::Usage } else { ExitCode::Success })
}

/// Returns the tasks of the part of the evaluation that this process makes.
pub(super) fn own_tasks<'a>(args: &EvalArgs, data: &'a EvalData) -> impl Iterator<Item = &'a TaskLine> {
    let shard = args.shard;
    let own = (0..).zip(&data.tasks).filter(move |(at, _)| at % shard.count == shard.index);
    own.map(|(_, task)| task)
}

/// Returns the number of runs that are left in each of the places for runs at once.
fn runs_in_each_place(planned: &PlannedBatch, args: &EvalArgs) -> u32 {
    let places = u64::from(args.flow.runs_at_once).max(1);
    u32::try_from(planned.left().div_ceil(places)).unwrap_or(u32::MAX)
}

/// Returns the mean time of the runs of an arm, or of a bank, that have ended; `None` without one.
fn mean_time(folder: &Path, arm: Option<&str>) -> Result<Option<Duration>, BatchError> {
    let (mut sum, mut count) = (0_u64, 0);
    if is_batch(folder) {
        results(folder, |row| {
            if arm.is_none_or(|arm| arm == row.arm) {
                sum = sum.saturating_add(row.timing.total_ms);
                count += 1;
            }
        })?;
    }
    Ok(sum.checked_div(count).map(Duration::from_millis))
}

/// Prints a line between the figures of a plan: beside them where people read, and apart from them where programs do.
fn print_heading(output: &Output, line: &str) -> anyhow::Result<()> {
    let line = escape::terminal(line);
    if output.format == Format::Text {
        return output.line(&line);
    }
    output.status(&line);
    Ok(())
}
