//! The scheduler: keeps the requested number of runs under way until all cells of a shard have ended.
//!
//! The input is task lines, the columns in which they are run, and a shard. The output is a journal and results in the shard's
//! folder, and figures for a watcher. A failed run does not stop others; if the journal cannot be written, all runs stop.
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

use super::batch_stats::BatchStats;
use super::cells::{Cells, OwnCell, Work};
use super::error::BatchError;
use super::grading::Grades;
use super::matrix::{Cell, Column};
use super::open_run::{
    Common, Next, Options, Unfit, as_written, begin, graded, graded_again, rescore, run_cell,
};
use super::result_line::{EndedRun, Graded, ResultLine};
use super::shard::Shard;
use super::task::TaskLine;
use super::task_reader::{Line, TaskReader};
use crate::engine::StopRequest;
use crypto::Digest;
use protocol::OutcomeKind;

/// The time between two progress reports.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// A source of columns.
pub trait Columns {
    /// Returns the columns of a task: those of the batch, or those of the roleset that it names.
    ///
    /// # Errors
    ///
    /// Returns the reason why the columns cannot be had.
    fn of(&self, roleset: Option<&str>) -> impl Future<Output = Result<Arc<[Column]>, String>>;
}

/// A watcher of the progress of a batch.
pub trait Watcher {
    /// Reports a line that cannot be run: its number, the task's id if it has one, and the reason.
    fn refused(&self, number: u64, id: Option<&str>, why: &str);
    /// Reports a run that has ended.
    fn ended(&self, row: &ResultLine);
    /// Reports the current figures.
    fn so_far(&self, figures: &BatchStats);
    /// Reports a run that was put down on request before its end.
    fn put_down(&self, _run: Uuid) {}
    /// Reports a run that had ended before, and has its line of results now.
    fn had_ended(&self, _run: Uuid) {}
    /// Reports a run that cannot go on, where that ends no other.
    fn broken(&self, _run: Uuid, _why: &BatchError) {}
}

/// Runs all cells of a shard. Ends early, with running runs interrupted, once `stop` says so.
///
/// # Errors
///
/// Returns [`BatchError`]; durable records remain.
pub async fn run(
    shard: &mut Shard,
    feed: TaskReader,
    columns: &impl Columns,
    options: Options,
    stop: watch::Receiver<StopRequest>,
    watcher: &impl Watcher,
) -> Result<BatchStats, BatchError> {
    // More threads than runs would have nothing to do.
    let threads = options.threads.min(options.concurrency).max(1);
    let common = Arc::new(Common::new(options));
    let scheduler = Scheduler {
        shard,
        columns,
        common: &common,
        workers: LocalPoolHandle::new(threads),
        watcher,
        stop,
        began: Instant::now(),
        cells: None,
        running: JoinSet::new(),
        handles: Vec::new(),
        left: None,
        is_read: false,
        lines_read: 0,
    };
    scheduler.run(feed).await
}

/// A piece of work and its end; `None` if the batch was stopped before its text was graded.
type Ended = (Work, Result<Option<Done>, BatchError>);

/// The end of a piece of work.
enum Done {
    /// A run has ended, now or under an earlier command.
    Run { ended: Box<EndedRun>, made_of: Digest, is_new: bool },
    /// A run with a line of results was graded again.
    GradeAgain { known: Box<Graded>, grades: Box<Grades> },
}

/// The state of a shard that is under way.
struct Scheduler<'a, C, W> {
    shard: &'a mut Shard,
    columns: &'a C,
    common: &'a Arc<Common>,
    workers: LocalPoolHandle,
    watcher: &'a W,
    stop: watch::Receiver<StopRequest>,
    began: Instant,
    /// The cells of the last line that was read.
    cells: Option<Cells>,
    running: JoinSet<Result<Ended, JoinError>>,
    /// The handles that abort running runs, each with its column.
    handles: Vec<(AbortHandle, Arc<[Column]>, usize)>,
    /// The reason why a cell was left for another time.
    left: Option<String>,
    /// Whether every line has been read.
    is_read: bool,
    lines_read: u64,
}

impl<C: Columns, W: Watcher> Scheduler<'_, C, W> {
    async fn run(mut self, mut feed: TaskReader) -> Result<BatchStats, BatchError> {
        let mut ticks = tokio::time::interval(TOLD_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_stopping = *self.stop.borrow_and_update() != StopRequest::None;
            let has_room = self.running.len() < self.common.options.concurrency && !is_stopping;
            if has_room && let Some(work) = self.cells.as_mut().and_then(Iterator::next) {
                // A line may have a million cells that are done or belong to another shard; running runs continue meanwhile.
                tokio::task::coop::consume_budget().await;
                if self.common.options.shard.has(work.run) && self.begin(work)? {
                    // Running runs continue while the next one is prepared.
                    tokio::task::yield_now().await;
                }
                continue;
            }
            let is_waiting = self.cells.as_ref().is_some_and(|cells| cells.left() > 0);
            if self.running.is_empty() && (is_stopping || self.is_read && !is_waiting) {
                break;
            }
            tokio::select! {
                biased;
                Ok(()) = self.stop.changed() => {}
                _ = ticks.tick() => self.look()?,
                line = feed.next(), if !is_waiting && !self.is_read && has_room => self.take_line(line).await?,
                Some(ended) = self.running.join_next() => self.take_end(ended.flatten())?,
            }
        }
        self.finish()
    }

    /// Begins the run of a cell, if anything is left to do. Returns whether it is under way.
    fn begin(&mut self, work: Work) -> Result<bool, BatchError> {
        let stop = work.stop.clone().unwrap_or_else(|| self.stop.clone());
        if work.stop.is_some() && *stop.borrow() != StopRequest::None {
            self.watcher.put_down(work.run);
            return Ok(false);
        }
        let common = Arc::clone(self.common);
        match begin(self.shard, &work, self.common) {
            Ok(Next::Go { writer, start, made_of }) => {
                let table = self.shard.table_of(work.run);
                let (columns, column) = (Arc::clone(&work.columns), work.column);
                let run = self.spawn(work, async move |work| {
                    let ended = run_cell(work.run, writer, start, &common, stop.clone()).await?;
                    let ended = unless_aborted(stop, graded(ended, &common, work, table)).await?;
                    Ok(ended.map(|ended| Done::Run { ended: Box::new(ended), made_of, is_new: true }))
                });
                self.handles.push((run, columns, column));
                return Ok(true);
            }
            Ok(Next::Grade { ended, made_of }) => {
                let table = self.shard.table_of(work.run);
                self.spawn(work, async move |work| {
                    let ended = unless_aborted(stop, graded(*ended, &common, work, table)).await?;
                    Ok(ended.map(|ended| Done::Run { ended: Box::new(ended), made_of, is_new: false }))
                });
                return Ok(true);
            }
            Ok(Next::GradeAgain(known)) => {
                let table = self.shard.table_of(work.run);
                self.spawn(work, async move |work| {
                    let grades = unless_aborted(stop, graded_again(&known, &common, work, table)).await?;
                    Ok(grades.map(|grades| Done::GradeAgain { known, grades: Box::new(grades) }))
                });
                return Ok(true);
            }
            Ok(Next::Done) => self.watcher.had_ended(work.run),
            Ok(Next::Left(why)) => self.left = Some(why),
            Err(Unfit::Line(why)) => {
                // The other cells of the line would fail for the same reason.
                let line = self.cells.as_mut().map(|cells| {
                    cells.passed += cells.left();
                    cells.number
                });
                self.refuse(line.unwrap_or_default(), Some(&work.task.id), &why);
            }
            Err(Unfit::Batch(why)) if !self.common.options.gives_up && !why.is_systemic() => {
                self.watcher.broken(work.run, &why);
            }
            Err(Unfit::Batch(why)) => return Err(why),
        }
        Ok(false)
    }

    /// Lets a piece of work go on beside the others, on the thread that has the fewest of them.
    fn spawn(
        &mut self,
        work: Work,
        go: impl AsyncFnOnce(&Work) -> Result<Option<Done>, BatchError> + Send + 'static,
    ) -> AbortHandle {
        self.common.figures().under_way += 1;
        let gives_up = self.common.options.gives_up;
        let work = async move || {
            // The lines of the log name the run that they are about.
            let span = tracing::info_span!("run", run = %work.run);
            // A run is large, and each wrapper around it would hold it once more.
            let run = Box::pin(go(&work)).instrument(span);
            let done = AssertUnwindSafe(run).catch_unwind().await;
            let done = match done {
                Ok(done) => done,
                // One run of a server ends no other.
                Err(panic) if !gives_up => {
                    let why = panic.downcast_ref::<&str>().map(|why| (*why).to_owned());
                    let why = why.or(panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                    Err(BatchError::Panic(why))
                }
                Err(panic) => std::panic::resume_unwind(panic),
            };
            (work, done)
        };
        self.running.spawn(AbortOnDropHandle::new(self.workers.spawn_pinned(work)))
    }

    fn refuse(&self, number: u64, id: Option<&str>, why: &str) {
        self.common.figures().refused += 1;
        self.watcher.refused(number, id, why);
    }

    /// Takes the next line, or the end of the tasks.
    async fn take_line(&mut self, line: Option<std::io::Result<Line>>) -> Result<(), BatchError> {
        let Some(line) = line else {
            self.is_read = true;
            return Ok(());
        };
        let Line { number, task, own } = line.map_err(BatchError::Tasks)?;
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
        if let Some(OwnCell { column, seed, stop }) = own {
            let (columns, seeds) = ([column].into(), seed..seed + 1);
            return Ok(Cells { number, task, columns, seeds, stop: Some(stop), passed: 0 });
        }
        let columns = self.columns.of(task.roleset.as_deref()).await;
        let columns = columns.map_err(|why| (Some(task.id.clone()), why))?;
        Ok(Cells { number, task, columns, seeds: self.common.options.seeds.clone(), stop: None, passed: 0 })
    }

    fn take_end(&mut self, ended: Result<Ended, JoinError>) -> Result<(), BatchError> {
        self.common.figures().under_way -= 1;
        let (work, done) = match ended {
            Ok(ended) => ended,
            Err(put_down) if put_down.is_cancelled() => return Ok(()),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let done = match done {
            // A single run that cannot be read or called ends no other run of a server. A journal that cannot be written ends all.
            Err(why) if !self.common.options.gives_up && !why.is_systemic() => {
                self.watcher.broken(work.run, &why);
                return Ok(());
            }
            done => done?,
        };
        match done {
            Some(Done::Run { ended, made_of, is_new }) => self.add(&work, made_of, *ended, is_new)?,
            Some(Done::GradeAgain { known, grades }) => {
                rescore(self.shard, &work, self.common, &known, *grades)?;
            }
            None => {}
        }
        self.give_up()
    }

    /// Adds the line of results of a run, unless it was interrupted on request.
    fn add(&mut self, work: &Work, made_of: Digest, ended: EndedRun, is_new: bool) -> Result<(), BatchError> {
        let task = as_written(work, self.shard)?;
        let row = ResultLine::new(&Cell { task: &task, ..work.cell() }, made_of, ended);
        if row.result.outcome == OutcomeKind::Interrupted {
            self.watcher.put_down(work.run);
            return Ok(());
        }
        self.shard.add(&row)?;
        if let Some(spans) = &self.common.options.spans {
            spans.add(work.run);
        }
        let mut figures = self.common.figures();
        figures.ended.add(row.result.outcome, row.right);
        figures.before += u64::from(!is_new);
        // The watcher may look at the figures.
        drop(figures);
        if is_new {
            self.watcher.ended(&row);
        } else {
            self.watcher.had_ended(work.run);
        }
        Ok(())
    }

    /// Reports progress, and aborts runs that wait for a server that is gone. They make room for runs on other servers.
    fn look(&mut self) -> Result<(), BatchError> {
        self.watcher.so_far(&self.so_far());
        self.give_up()?;
        let (common, left) = (self.common, &mut self.left);
        self.handles.retain(|(run, columns, column)| {
            let why =
                Some(run).filter(|run| !run.is_finished()).and_then(|_| common.verdict(&columns[*column]));
            if why.is_some() {
                run.abort();
                left.clone_from(&why);
            }
            why.is_none() && !run.is_finished()
        });
        Ok(())
    }

    /// Ends the batch if no column of its last line can be run. A run interrupted on request does not count against a server.
    fn give_up(&self) -> Result<(), BatchError> {
        let cells = self.cells.as_ref().filter(|_| *self.stop.borrow() == StopRequest::None);
        let verdicts = cells.map(|cells| cells.columns.iter().map(|column| self.common.verdict(column)));
        let verdict: Option<Vec<String>> = verdicts.and_then(Iterator::collect);
        let why = verdict.and_then(|verdict| verdict.into_iter().next());
        why.map_or(Ok(()), |why| Err(BatchError::CircuitOpen { why }))
    }

    fn so_far(&self) -> BatchStats {
        let Options { shard, tasks_lines, .. } = &self.common.options;
        let waiting = self.cells.as_ref().map_or(0, Cells::left) / shard.count;
        let lines = tasks_lines.filter(|_| !self.is_read).unwrap_or(self.lines_read);
        let all = tasks_lines.is_some() || self.is_read;
        let figures = self.common.figures();
        figures.at(self.began.elapsed(), waiting, self.lines_read, all.then_some(lines), self.is_read)
    }

    fn finish(self) -> Result<BatchStats, BatchError> {
        self.shard.sync()?;
        let figures = self.so_far();
        self.watcher.so_far(&figures);
        match self.left.filter(|_| *self.stop.borrow() == StopRequest::None) {
            Some(why) => Err(BatchError::CircuitOpen { why }),
            None => Ok(figures),
        }
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
