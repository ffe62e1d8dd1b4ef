//! The scheduler: keeps the requested number of runs under way until all cells of a shard have ended.
//!
//! The input is task lines, the variants in which they are run, and a shard. The output is a journal and results in the shard's
//! folder, and figures for an observer. A failed run does not stop others; if the journal cannot be written, all runs stop.
//!
//! The scheduler has a thread of its own for tasks and results. The runs are spread over worker threads, each with an event loop,
//! and a run never moves to another thread. Nothing else starts threads for runs.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::task::{AbortOnDropHandle, LocalPoolHandle};
use tracing::Instrument as _;
use uuid::Uuid;

use super::open_run::{
    BatchContext, CannotRun, CellStep, EndedRun, Options, find_ruled_step, find_step, grade_again, grade_run,
    redact_task, rescore, run_cell,
};
use super::rounds::Rounds;
use crate::batch::folder::BatchError;
use crate::batch::plan::{Cell, Cells, OwnCell, TaskReader, TaskRow, Variant, VariantSet, Work};
use crate::batch::store::{BatchStats, Grades, ResultLine, ResultOnRecord, ResultParts, Shard};
use crate::batch::tasks::TaskLine;
use crate::engine::{RunObserver, StopRequest};
use crypto::Digest;
use protocol::OutcomeKind;
use protocol::pacing::{BudgetRuling, PacedRun, RoundPlan};

/// The time between two progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(500);

/// An observer of the progress of a batch.
pub trait BatchObserver {
    /// Reports a line that cannot be run: its number, the task's id if it has one, and the reason.
    fn on_refusal(&self, number: u64, id: Option<&str>, why: &str);
    /// Reports a run that has ended.
    fn on_end(&self, row: &ResultLine);
    /// Reports the current figures.
    fn on_progress(&self, figures: &BatchStats);
    /// Reports a run that was put down on request before its end.
    fn on_put_down(&self, _run: Uuid) {}
    /// Reports a run that had ended before, and has its line of results now.
    fn on_earlier_end(&self, _run: Uuid) {}
    /// Reports a run that cannot continue, where that ends no other.
    fn on_failure(&self, _run: Uuid, _why: &BatchError) {}
    /// Reports what a budget of so many tokens permits next.
    fn on_ruling(&self, _plan: &RoundPlan, _budget: u64) {}
    /// Makes an observer of one run, which is moved to the thread of the run and dropped at its end.
    fn observe_run(&self, _run: Uuid) -> Box<dyn RunObserver + Send> {
        Box::new(())
    }
}

/// Runs all cells of a shard. Ends early, with running runs interrupted, once `stop` says so.
///
/// Returns [`BatchError`]; durable records remain.
pub async fn run(
    shard: &mut Shard,
    feed: TaskReader,
    variants: Option<&VariantSet>,
    options: Options,
    stop: watch::Receiver<StopRequest>,
    observer: &impl BatchObserver,
) -> Result<BatchStats, BatchError> {
    // More threads than runs would have nothing to do.
    let threads = options.threads.min(options.concurrency).max(1);
    let rounds = match &options.budget {
        Some(note) => Some(Rounds::open(shard.journal_path(), note)?),
        None => None,
    };
    let context = Arc::new(BatchContext::new(options));
    let scheduler = Scheduler {
        shard,
        variants,
        context: &context,
        workers: LocalPoolHandle::new(threads),
        observer,
        stop,
        began: Instant::now(),
        cells: None,
        rounds,
        running: JoinSet::new(),
        handles: Vec::new(),
        left: None,
        is_read: false,
        lines_read: 0,
    };
    scheduler.run(feed).await
}

/// A run that is about to begin or to continue.
struct PieceOfWork {
    work: Work,
    /// The ruling of a budget that it waits for.
    ruling: Option<BudgetRuling>,
}

/// A piece of work, and how it ended.
struct EndedWork {
    work: Work,
    /// `None` if the batch was stopped before the text was graded.
    end: Result<Option<WorkEnd>, BatchError>,
}

/// The end of a piece of work.
enum WorkEnd {
    /// A run has ended, now or under an earlier command.
    Run { ended: Box<ResultParts>, paced: Option<PacedRun>, fingerprint: Digest, is_new: bool },
    /// A run with a line of results was graded again.
    GradeAgain { known: Box<ResultOnRecord>, grades: Box<Grades> },
}

/// The state of a shard that is under way.
struct Scheduler<'a, W> {
    shard: &'a mut Shard,
    /// The variants of tasks that bring none of their own.
    variants: Option<&'a VariantSet>,
    context: &'a Arc<BatchContext>,
    workers: LocalPoolHandle,
    observer: &'a W,
    stop: watch::Receiver<StopRequest>,
    began: Instant,
    /// The cells of the last line that was read.
    cells: Option<Cells>,
    /// The rounds of votes that share a budget of tokens, if they share one.
    rounds: Option<Rounds>,
    running: JoinSet<Result<EndedWork, JoinError>>,
    /// The handles that abort running runs, each with its variant.
    handles: Vec<(AbortHandle, Arc<[Variant]>, usize)>,
    /// The reason why a cell was left for another time.
    left: Option<String>,
    /// Whether every line has been read.
    is_read: bool,
    lines_read: u64,
}

impl<W: BatchObserver> Scheduler<'_, W> {
    async fn run(mut self, mut feed: TaskReader) -> Result<BatchStats, BatchError> {
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_stopping = *self.stop.borrow_and_update() != StopRequest::None;
            let has_room = self.running.len() < self.context.options.concurrency && !is_stopping;
            if has_room && let Some(PieceOfWork { work, ruling }) = self.next_work() {
                // A line may have a million cells that are done or belong to another shard; running runs continue meanwhile.
                tokio::task::coop::consume_budget().await;
                if self.context.options.shard.has(work.run) && self.begin(work, ruling)? {
                    // Running runs continue while the next one is prepared.
                    tokio::task::yield_now().await;
                }
                continue;
            }
            let is_waiting = self.cells.as_ref().is_some_and(|cells| cells.left() > 0);
            if self.running.is_empty() && (is_stopping || self.is_read && !is_waiting) {
                if is_stopping || !self.begin_round()? {
                    break;
                }
                continue;
            }
            tokio::select! {
                biased;
                Ok(()) = self.stop.changed() => {}
                _ = ticks.tick() => self.report()?,
                line = feed.next(), if !is_waiting && !self.is_read && has_room => self.take_line(line).await?,
                Some(ended) = self.running.join_next() => self.take_end(ended.flatten())?,
            }
        }
        self.finish()
    }

    /// Returns the next cell of the line, or the next run of the round.
    fn next_work(&mut self) -> Option<PieceOfWork> {
        if let Some(work) = self.cells.as_mut().and_then(Iterator::next) {
            return Some(PieceOfWork { work, ruling: None });
        }
        let (work, ruling) = self.rounds.as_mut()?.next_run()?;
        Some(PieceOfWork { work, ruling: Some(ruling) })
    }

    /// Begins the next round of votes that share a budget, once no run is under way. Returns whether there is one.
    fn begin_round(&mut self) -> Result<bool, BatchError> {
        let Some(rounds) = &mut self.rounds else { return Ok(false) };
        // A run that was left for another time has yet to end its round.
        if self.left.is_some() {
            return Ok(false);
        }
        let Some(plan) = rounds.begin_next()? else { return Ok(false) };
        let budget = self.context.options.budget.as_ref().map_or(0, |budget| budget.tokens_a_shard);
        self.observer.on_ruling(plan, budget);
        Ok(true)
    }

    /// Begins the run of a cell, if anything is left to do. Returns whether it is under way.
    fn begin(&mut self, work: Work, ruling: Option<BudgetRuling>) -> Result<bool, BatchError> {
        let stop = work.stop.clone().unwrap_or_else(|| self.stop.clone());
        if work.stop.is_some() && *stop.borrow() != StopRequest::None {
            self.observer.on_put_down(work.run);
            return Ok(false);
        }
        let context = Arc::clone(self.context);
        let found = match ruling {
            Some(ruling) => find_ruled_step(self.shard, &work, self.context, ruling),
            None => find_step(self.shard, &work, self.context),
        };
        match found {
            Ok(CellStep::Run { writer, start, fingerprint }) => {
                let table = self.shard.table_of(work.run);
                let (variants, variant) = (Arc::clone(&work.variants), work.variant);
                let observer = self.observer.observe_run(work.run);
                let run = self.spawn(work, async move |work| {
                    let EndedRun { parts, paced } =
                        run_cell(writer, start, &context, stop.clone(), observer).await?;
                    let ended = unless_aborted(stop, grade_run(parts, &context, work, table)).await?;
                    Ok(ended.map(|ended| WorkEnd::Run {
                        ended: Box::new(ended),
                        paced,
                        fingerprint,
                        is_new: true,
                    }))
                });
                self.handles.push((run, variants, variant));
                return Ok(true);
            }
            Ok(CellStep::Grade { ended, fingerprint }) => {
                let table = self.shard.table_of(work.run);
                self.spawn(work, async move |work| {
                    let ended = unless_aborted(stop, grade_run(*ended, &context, work, table)).await?;
                    Ok(ended.map(|ended| WorkEnd::Run {
                        ended: Box::new(ended),
                        paced: None,
                        fingerprint,
                        is_new: false,
                    }))
                });
                return Ok(true);
            }
            Ok(CellStep::GradeAgain(known)) => {
                let table = self.shard.table_of(work.run);
                self.spawn(work, async move |work| {
                    let grades = unless_aborted(stop, grade_again(&known, &context, work, table)).await?;
                    Ok(grades.map(|grades| WorkEnd::GradeAgain { known, grades: Box::new(grades) }))
                });
                return Ok(true);
            }
            Ok(CellStep::Waiting) => {
                if let Some(rounds) = &mut self.rounds {
                    rounds.keep(work);
                }
            }
            Ok(CellStep::Done) => self.observer.on_earlier_end(work.run),
            Ok(CellStep::Postponed(why)) => self.left = Some(why),
            Err(CannotRun::Line(why)) => {
                // The other cells of the line would fail for the same reason.
                let line = self.cells.as_mut().map(|cells| {
                    cells.passed += cells.left();
                    cells.number
                });
                self.refuse(line.unwrap_or_default(), Some(&work.task.id), &why);
            }
            Err(CannotRun::Batch(why)) if !self.context.options.gives_up && !why.is_systemic() => {
                self.observer.on_failure(work.run, &why);
            }
            Err(CannotRun::Batch(why)) => return Err(why),
        }
        Ok(false)
    }

    /// Runs a piece of work beside the others, on the thread that has the fewest of them.
    fn spawn(
        &mut self,
        work: Work,
        go: impl AsyncFnOnce(&Work) -> Result<Option<WorkEnd>, BatchError> + Send + 'static,
    ) -> AbortHandle {
        self.context.figures().under_way += 1;
        let gives_up = self.context.options.gives_up;
        let work = async move || {
            // The lines of the log name the run that they are about.
            let span = tracing::info_span!("run", run = %work.run);
            // A run is large, and each wrapper around it would hold it once more.
            let run = Box::pin(go(&work)).instrument(span);
            let end = match AssertUnwindSafe(run).catch_unwind().await {
                Ok(end) => end,
                // One run of a server ends no other.
                Err(panic) if !gives_up => {
                    let why = panic.downcast_ref::<&str>().map(|why| (*why).to_owned());
                    let why = why.or(panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                    Err(BatchError::Panic(why))
                }
                Err(panic) => std::panic::resume_unwind(panic),
            };
            EndedWork { work, end }
        };
        self.running.spawn(AbortOnDropHandle::new(self.workers.spawn_pinned(work)))
    }

    fn refuse(&self, number: u64, id: Option<&str>, why: &str) {
        self.context.figures().refused += 1;
        self.observer.on_refusal(number, id, why);
    }

    /// Takes the next line, or the end of the tasks.
    async fn take_line(&mut self, row: Option<std::io::Result<TaskRow>>) -> Result<(), BatchError> {
        let Some(row) = row else {
            self.is_read = true;
            return Ok(());
        };
        let TaskRow { number, task, own } = row.map_err(BatchError::Tasks)?;
        self.lines_read = number;
        match self.expand(number, task, own).await {
            Ok(of_line) => self.cells = Some(of_line),
            Err((id, why)) => self.refuse(number, id.as_deref(), &why),
        }
        Ok(())
    }

    /// Returns the cells of a line, or the task's id, if it has one, and the reason why the line has no cells.
    async fn expand(
        &self,
        number: u64,
        task: Result<TaskLine, (Option<String>, String)>,
        own: Option<OwnCell>,
    ) -> Result<Cells, (Option<String>, String)> {
        let task = Arc::new(task?);
        if let Some(OwnCell { variant, seed, stop }) = own {
            let (variants, seeds) = ([variant].into(), seed..seed + 1);
            return Ok(Cells { number, task, variants, seeds, stop: Some(stop), passed: 0 });
        }
        let Some(variants) = self.variants else {
            return Err((Some(task.id.clone()), "the line names no roleset".to_owned()));
        };
        let variants = variants.find(task.roleset.as_deref()).await;
        let variants = variants.map_err(|why| (Some(task.id.clone()), why))?;
        Ok(Cells { number, task, variants, seeds: self.context.options.seeds.clone(), stop: None, passed: 0 })
    }

    fn take_end(&mut self, ended: Result<EndedWork, JoinError>) -> Result<(), BatchError> {
        self.context.figures().under_way -= 1;
        let EndedWork { work, end } = match ended {
            Ok(ended) => ended,
            Err(put_down) if put_down.is_cancelled() => return Ok(()),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let end = match end {
            // A single run that cannot be read or called ends no other run of a server. A journal that cannot be written ends all.
            Err(why) if !self.context.options.gives_up && !why.is_systemic() => {
                self.observer.on_failure(work.run, &why);
                return Ok(());
            }
            end => end?,
        };
        match end {
            Some(WorkEnd::Run { ended, paced, fingerprint, is_new }) => {
                let work = match (&mut self.rounds, paced) {
                    (Some(rounds), Some(run)) => rounds.note(work, run),
                    (Some(_) | None, _) => Some(work),
                };
                if let Some(work) = work {
                    self.add(&work, fingerprint, *ended, is_new)?;
                }
            }
            Some(WorkEnd::GradeAgain { known, grades }) => {
                rescore(self.shard, &work, self.context, &known, *grades)?;
            }
            None => {}
        }
        self.give_up()
    }

    /// Adds the line of results of a run, unless it was interrupted on request.
    fn add(
        &mut self,
        work: &Work,
        fingerprint: Digest,
        ended: ResultParts,
        is_new: bool,
    ) -> Result<(), BatchError> {
        let task = redact_task(work, self.shard)?;
        let row = ResultLine::new(&Cell { task: &task, ..work.cell() }, fingerprint, ended);
        if row.result.outcome == OutcomeKind::Interrupted {
            self.observer.on_put_down(work.run);
            return Ok(());
        }
        self.shard.append(&row)?;
        if let Some(spans) = &self.context.options.spans {
            spans.add(work.run);
        }
        let mut figures = self.context.figures();
        figures.ended.add(row.result.outcome, row.right);
        figures.before += u64::from(!is_new);
        // The observer may look at the figures.
        drop(figures);
        if is_new {
            self.observer.on_end(&row);
        } else {
            self.observer.on_earlier_end(work.run);
        }
        Ok(())
    }

    /// Reports progress, and aborts runs that wait for a server that is gone. They make room for runs on other servers.
    fn report(&mut self) -> Result<(), BatchError> {
        self.observer.on_progress(&self.measure());
        self.give_up()?;
        let (context, left) = (self.context, &mut self.left);
        self.handles.retain(|(run, variants, variant)| {
            if run.is_finished() {
                return false;
            }
            let Some(why) = context.predict_failure(&variants[*variant]) else { return true };
            run.abort();
            *left = Some(why);
            false
        });
        Ok(())
    }

    /// Ends the batch if no variant of its last line can be run. A run interrupted on request does not count against a server.
    fn give_up(&self) -> Result<(), BatchError> {
        let Some(cells) = &self.cells else { return Ok(()) };
        if *self.stop.borrow() != StopRequest::None {
            return Ok(());
        }
        let mut first = None;
        for variant in cells.variants.iter() {
            let Some(why) = self.context.predict_failure(variant) else { return Ok(()) };
            first.get_or_insert(why);
        }
        match first {
            Some(why) => Err(BatchError::CircuitOpen { why }),
            None => Ok(()),
        }
    }

    fn measure(&self) -> BatchStats {
        let Options { shard, task_lines, .. } = &self.context.options;
        let waiting = self.cells.as_ref().map_or(0, Cells::left) / shard.count;
        let lines = match task_lines {
            Some(lines) if !self.is_read => *lines,
            Some(_) | None => self.lines_read,
        };
        let all = task_lines.is_some() || self.is_read;
        let figures = self.context.figures();
        figures.at(self.began.elapsed(), waiting, self.lines_read, all.then_some(lines), self.is_read)
    }

    fn finish(self) -> Result<BatchStats, BatchError> {
        self.shard.sync()?;
        let figures = self.measure();
        self.observer.on_progress(&figures);
        if let Some(why) = self.left
            && *self.stop.borrow() == StopRequest::None
        {
            return Err(BatchError::CircuitOpen { why });
        }
        Ok(figures)
    }
}

/// Awaits a grade, or returns `None` if the batch is to stop at once meanwhile; the same command grades the text later.
async fn unless_aborted<T>(
    mut stop: watch::Receiver<StopRequest>,
    grade: impl Future<Output = Result<T, BatchError>>,
) -> Result<Option<T>, BatchError> {
    tokio::select! {
        biased;
        grade = grade => grade.map(Some),
        Ok(_) = stop.wait_for(|request| *request == StopRequest::Abort) => Ok(None),
    }
}
