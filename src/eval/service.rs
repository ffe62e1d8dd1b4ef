//! An evaluation as a service: a plain request is planned, its batches are run one after the other, and their results are counted.
//!
//! The banks come first, and then each arm. A server that is launched serves one batch after the other, as long as the model stays the
//! same. Each batch continues where it was interrupted, so the whole does too.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::data::{EvalData, read_data};
use super::error::EvalError;
use super::folder::{hold, tasks_file, write_tasks};
use super::items::{ARMS, EvalResults};
use super::plan::{EvalPlan, PlannedArm, PlannedBank};
use super::planning::plan_evaluation;
use super::report::write_report;
use super::request::{EvalRequest, ReplySource};
use super::summary::Summary;
use crate::batch::{
    BatchEnd, BatchError, BatchRequest, Draws, PlannedBatch, ReadyBatch, TaskLine, is_batch, make_folder,
    note_plan, results,
};
use crate::config::FileConfig;
use crate::engine::StopRequest;
use crate::files::private_folder;
use crate::journal::Limits;
use crate::provider::ReusedReplies;
use crate::provider::launch::LaunchedServer;
use crate::run::Reporter;
use protocol::core::ExitCode;
use protocol::text::{counted, escape};

/// An evaluation with its plan, which is not yet written.
pub struct PlannedEvaluation {
    pub request: EvalRequest,
    pub file: FileConfig,
    pub data: EvalData,
    pub plan: EvalPlan,
}

/// A batch of an evaluation.
pub struct EvalJob {
    pub heading: String,
    pub batch: BatchRequest,
}

impl PlannedEvaluation {
    /// Reads the data and the configuration, and plans the evaluation. Where nothing is run, settings without the user's trust are left
    /// out.
    pub fn new(request: EvalRequest, is_dry_run: bool) -> Result<Self, EvalError> {
        let form = request.form.clone();
        let data = read_data(&request.data, form, request.canonical, request.items_max)?;
        let file = if is_dry_run { FileConfig::load_to_read()? } else { FileConfig::load()? };
        let plan = plan_evaluation(&request, &data, &file)?;
        request.require_apart()?;
        request.bars.require_comparable(&data.note.name, data.kind, &data.tasks)?;
        Ok(Self { request, file, data, plan })
    }

    /// Returns the tasks of the part of the evaluation that this process makes.
    pub fn own_tasks(&self) -> impl Iterator<Item = &TaskLine> {
        let shard = self.request.shard;
        let own = (0..).zip(&self.data.tasks).filter(move |(at, _)| at % shard.count == shard.index);
        own.map(|(_, task)| task)
    }

    /// Writes the plan, and returns the folder in which this process works, with the file of its tasks: that of the evaluation, or that of
    /// its part.
    pub fn write(&self) -> Result<PathBuf, EvalError> {
        let EvalRequest { folder, shard, .. } = &self.request;
        make_folder(folder)?;
        self.plan.put(folder, &self.data.tasks)?;
        let part = self.plan.part(folder, shard.index);
        if shard.count > 1 {
            private_folder(&part).map_err(EvalError::io("make", &part))?;
            write_tasks(&part, self.own_tasks())?;
        }
        Ok(part)
    }

    /// Returns the batches in their order; `part` is the folder of their folders, and `tasks` the file of their tasks.
    pub fn jobs(&self, part: &Path, tasks: &Path) -> Result<Vec<EvalJob>, EvalError> {
        let mut jobs = Vec::new();
        for bank in &self.plan.banks {
            let PlannedBank { folder, roleset, model, settings, words, programs, .. } = bank;
            let replies = ReplySource::Drawn(Draws { words: *words, programs: *programs });
            let batch = self.request.batch(roleset, model, settings, None, part.join(folder), replies)?;
            let samples = match (words, programs) {
                (0, programs) => counted(*programs, "program"),
                (words, 0) => format!("{} in words", counted(*words, "sample")),
                (words, programs) => {
                    format!("{} in words and {}", counted(*words, "sample"), counted(*programs, "program"))
                }
            };
            let batch = BatchRequest { tasks: tasks.to_owned(), ..batch };
            jobs.push(EvalJob { heading: format!("bank: {samples} of each task"), batch });
        }
        for arm in &self.plan.arms {
            let PlannedArm { name, roleset, model, settings, bank, is_on_curve, .. } = arm;
            let replies = match bank {
                Some(bank) => ReplySource::Bank(part.join(&self.plan.banks[*bank].folder)),
                None => ReplySource::Model,
            };
            let batch = self.request.batch(roleset, model, settings, Some(name), part.join(ARMS), replies)?;
            let mut batch = BatchRequest { tasks: tasks.to_owned(), ..batch };
            // The number of samples bounds a point of the curve, so no other limit does.
            if *is_on_curve {
                batch.limits = Limits::default();
            }
            jobs.push(EvalJob { heading: format!("arm {name}"), batch });
        }
        Ok(jobs)
    }

    /// Runs all batches in the folder of this process's part, and returns the first exit code that is no success. `run_batch` runs one of
    /// them, and shows it.
    pub async fn run(
        &self,
        part: &Path,
        reused: &Arc<ReusedReplies>,
        stop: &watch::Receiver<StopRequest>,
        reporter: &dyn Reporter,
        run_batch: impl AsyncFn(ReadyBatch) -> Result<BatchEnd, BatchError>,
    ) -> Result<ExitCode, EvalError> {
        let mut code = ExitCode::Success;
        let mut server: Option<(String, LaunchedServer)> = None;
        for EvalJob { heading, batch } in self.jobs(part, &tasks_file(part))? {
            if *stop.borrow() != StopRequest::None {
                break;
            }
            reporter.status(&escape::terminal(&heading));
            let file = FileConfig::load()?;
            note_plan(&batch.folder, self.plan.sha256())?;
            let servers = &batch.variants.settings.servers;
            let model = servers.model.clone().unwrap_or_default();
            let (is_called, is_bank) = (servers.bank.is_none(), batch.variants.draws.is_some());
            let running = if is_called { take_server(&mut server, &model).await } else { None };
            let ready = Box::pin(batch.prepare(file, running, Arc::clone(reused), reporter)).await?;
            let mut ended = Box::pin(run_batch(ready)).await?;
            match ended.server.take() {
                Some(running) if is_called => server = Some((model, running)),
                Some(running) => running.end().await,
                None => {}
            }
            // An arm that reaches the limits of its runs has given no answer, which is a result as any; a bank that does lacks samples.
            if !is_bank {
                ended.figures.ended.budget = 0;
            }
            if code == ExitCode::Success {
                code = ended.exit_code(false);
            }
            // An arm that counts samples would lack those that a bank lacks.
            if is_bank && code != ExitCode::Success {
                break;
            }
        }
        if let Some((_, server)) = server {
            server.end().await;
        }
        Ok(code)
    }
}

impl EvalJob {
    /// Returns whether the replies come from a bank.
    pub fn is_from_bank(&self) -> bool {
        self.batch.variants.settings.servers.bank.is_some()
    }

    /// Returns the time that the missing runs take, by the runs that have ended; `None` without one.
    pub fn time_left(&self, planned: &PlannedBatch) -> Result<Option<Duration>, BatchError> {
        let (mut sum, mut count) = (0_u64, 0);
        let BatchRequest { folder, variants, work, .. } = &self.batch;
        if is_batch(folder) {
            results(folder, |row| {
                if variants.arm.as_ref().is_none_or(|arm| *arm == row.arm) {
                    sum = sum.saturating_add(row.timing.total_ms);
                    count += 1;
                }
            })?;
        }
        if planned.left() == 0 {
            return Ok(Some(Duration::ZERO));
        }
        // The runs that are left in each of the places for runs at once.
        let runs = planned.left().div_ceil(u64::from(work.runs).max(1));
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        Ok(sum.checked_div(count).map(|mean| Duration::from_millis(mean).saturating_mul(runs)))
    }
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

/// Computes the report of an evaluation from the results on record, and writes its files.
pub fn compute_report(
    folder: &Path,
    plan: &EvalPlan,
    tasks: &[TaskLine],
) -> Result<(EvalResults, Summary), EvalError> {
    let _held = hold(folder)?;
    let results = EvalResults::read(folder, plan, tasks)?;
    let summary = Summary::new(plan, &results);
    write_report(folder, plan, tasks, &results, &summary)?;
    Ok((results, summary))
}
