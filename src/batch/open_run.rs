//! One run of a batch: its starting point, and its way to an end.
//!
//! The input is a cell, and what its shard knows about it. The output is its result, or the reason why it is not run. The scheduler,
//! not this module, decides which runs are under way at once.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

use super::batch_stats::BatchStats;
use super::cells::{Work, documents};
use super::circuit_breaker::CircuitBreaker;
use super::error::BatchError;
use super::grader::Grader;
use super::grading::{CommandGrader, Grades, grade};
use super::matrix::{Cell, Column};
use super::result_line::{EndedRun, Graded};
use super::shard::{CellState, Retry, Shard};
use super::shard_id::ShardOf;
use super::task::TaskLine;
use crate::engine::{
    Engine, EngineError, Observer, PreparedRun, Redaction, Resumption, RunEvent, RunState, Sought,
    StopRequest,
};
use crate::journal::{Entry, Limits, Record, RunWriter};
use crate::otlp::SpanQueue;
use crate::provider::Clients;
use crate::provider::launch::Lifeline;
use crate::run::only_under;
use crate::sandbox::Sandbox;
use crypto::Digest;
use protocol::core::Endpoint;

/// The options of a batch.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shard to run.
    pub shard: ShardOf,
    /// The seeds of each task in each column.
    pub seeds: std::ops::Range<u64>,
    /// The most runs that are under way at once.
    pub concurrency: usize,
    /// The most threads that work on runs.
    pub threads: usize,
    /// The connections of all runs, and the replies that are used again in place of calls.
    pub clients: Arc<Clients>,
    /// The limits of each run.
    pub limits: Limits,
    /// The ends that are tried again.
    pub retry: Retry,
    /// The folder of documents that are named by a relative path.
    pub documents: PathBuf,
    /// The number of task lines, if it is known.
    pub tasks_lines: Option<u64>,
    /// The means to run checks of final texts, programs and the grader's command.
    pub sandbox: Sandbox,
    /// The user's command that grades the texts of tasks whose grader is a command.
    pub grader: Option<CommandGrader>,
    /// The lifeline of the server, if this program launched it.
    pub lifeline: Option<Lifeline>,
    /// Whether the batch ends once further calls would fail, because a server is gone or refuses the key.
    pub gives_up: bool,
    /// The queue of runs whose spans are sent to a collector, if there is one.
    pub spans: Option<SpanQueue>,
    /// The onlooker of every run.
    pub onlooker: Option<Arc<dyn Onlooker>>,
}

/// An onlooker of all runs, from whatever thread they are on.
pub trait Onlooker: std::fmt::Debug + Send + Sync {
    /// Takes an event of a run. The events of one run come in order.
    fn on_event(&self, run: Uuid, event: &RunEvent<'_>);
}

/// The starting point of a run.
pub(super) enum Start {
    New(Box<PreparedRun>),
    Again {
        records: Vec<Record>,
        endpoints: Vec<Endpoint>,
        limits: Limits,
        redaction: Option<Box<Redaction>>,
    },
}

/// The next step for a cell.
pub(super) enum Next {
    /// Its run begins or continues.
    Go { writer: RunWriter, start: Start, made_of: Digest },
    /// Its run has ended, and its text is to be graded before a line of results tells of it.
    Grade { ended: Box<EndedRun>, made_of: Digest },
    /// Its run has a line of results, and its text may have to be graded again by the user's command.
    GradeAgain(Box<Graded>),
    /// Nothing is left to do.
    Done,
    /// The run would fail for this reason and is left for another time.
    Left(String),
}

/// The state that all runs share, on whatever thread they are.
pub(super) struct Common {
    pub(super) options: Options,
    figures: Mutex<BatchStats>,
    breaker: Mutex<CircuitBreaker>,
}

impl Common {
    /// Returns the state at the start.
    pub(super) fn new(options: Options) -> Self {
        Self { options, figures: Mutex::new(BatchStats::new()), breaker: Mutex::default() }
    }

    /// Returns the figures of the batch.
    pub(super) fn figures(&self) -> MutexGuard<'_, BatchStats> {
        // The figures are counts, so they are whole even if a thread panicked.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn breaker(&self) -> MutexGuard<'_, CircuitBreaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why a run of this column would fail, if it would.
    pub(super) fn verdict(&self, column: &Column) -> Option<String> {
        if !self.options.gives_up {
            return None;
        }
        self.breaker().verdict(&column.endpoints, &self.options.clients)
    }
}

/// An observer that counts the usage of a run as it happens.
pub(super) struct Meter<'a> {
    pub(super) common: &'a Common,
    pub(super) run: Uuid,
    pub(super) endpoints: Vec<Endpoint>,
}

impl Observer for Meter<'_> {
    fn on_event(&self, event: RunEvent<'_>) {
        if let Some(onlooker) = &self.common.options.onlooker {
            onlooker.on_event(self.run, &event);
        }
        match event {
            RunEvent::Answered { replied, usage, .. } => {
                let endpoint = self.endpoints.get(replied.call.agent);
                let cost = usage.cost(endpoint.and_then(Endpoint::price));
                self.common.figures().count(&usage, cost);
                if let Some(endpoint) = endpoint {
                    self.common.breaker().answered(endpoint);
                }
            }
            RunEvent::Failed { call, error } => {
                if let Some(endpoint) = self.endpoints.get(call.agent) {
                    self.common.breaker().failed(endpoint, error);
                }
            }
            RunEvent::Again { error, wait, .. } => tracing::warn!("{error}; next try in {wait:.1?}"),
            RunEvent::Writing
            | RunEvent::Written(_)
            | RunEvent::Calling { .. }
            | RunEvent::Streaming { .. }
            | RunEvent::Remarked { .. }
            | RunEvent::Cancelled { .. }
            | RunEvent::Executing { .. }
            | RunEvent::Executed { .. }
            | RunEvent::Stopping { .. } => {}
        }
    }
}

/// The reason why a cell is not run.
pub(super) enum Unfit {
    /// The line cannot be run.
    Line(String),
    /// The batch cannot continue.
    Batch(BatchError),
}

impl From<BatchError> for Unfit {
    fn from(why: BatchError) -> Self {
        Self::Batch(why)
    }
}

/// Finds the starting point of a cell's run, if there is anything left to do.
pub(super) fn begin(shard: &mut Shard, work: &Work, common: &Common) -> Result<Next, Unfit> {
    let options = &common.options;
    let cell = work.cell();
    let run = work.run;
    let Column { roleset, model, sought, .. } = cell.column;
    if sought.is_none() && shard.has_redacted(roleset, model) {
        return Err(BatchError::Private { roleset: roleset.clone() }.into());
    }
    let standing = shard.standing(run, options.retry)?;
    if matches!(standing, CellState::New | CellState::Begun)
        && let Some(why) = common.verdict(cell.column)
    {
        return Ok(Next::Left(why));
    }
    let made_of = |records: &[Record]| {
        let made_of = made_of(records);
        common.figures().changed += u64::from(made_of != cell.made_of());
        made_of
    };
    match standing {
        CellState::New => {
            let documents = documents(&cell.task.documents, &options.documents).map_err(Unfit::Line)?;
            let begin = |sought: &Sought| Redaction::new(shard.redactions(run), sought.clone());
            let redaction = cell.column.sought.as_ref().map(begin);
            let prepared = cell.prepared(documents, redaction, options.limits, shard.plan());
            let prepared = prepared.map_err(Unfit::Line)?;
            if sought.is_some() {
                shard.begin_redacted(run);
            }
            let start = Start::New(Box::new(prepared));
            Ok(Next::Go { writer: shard.writer(run), start, made_of: cell.made_of() })
        }
        CellState::Begun => {
            let (writer, records) = shard.take(run)?;
            let made_of = made_of(&records);
            let redaction = gone_on_with(shard, run, sought.is_some()).map_err(Unfit::Line)?;
            let limits = cell.column.limits_of_run(options.limits);
            if let Some(why) = refusal(&records, limits) {
                return Err(Unfit::Line(why));
            }
            let start = Start::Again {
                records,
                endpoints: cell.column.endpoints.clone(),
                limits,
                redaction: redaction.map(Box::new),
            };
            Ok(Next::Go { writer, start, made_of })
        }
        CellState::Unreported => {
            let (writer, records) = shard.take(run)?;
            let state = RunState::replay(&records).map_err(|why| BatchError::from(EngineError::from(why)))?;
            let made_of = made_of(&records);
            Ok(Next::Grade { ended: Box::new(EndedRun::new(&state, writer.head())), made_of })
        }
        CellState::Ended(known) if is_graded_by_command(common, work, &known) => Ok(Next::GradeAgain(known)),
        CellState::Ended(known) => {
            rescore(shard, work, common, &known, [None, None])?;
            Ok(Next::Done)
        }
    }
}

/// Returns whether the user's command decides if an ended run is right. If anything but the answer has changed since the run, the answer
/// may belong to another question.
fn is_graded_by_command(common: &Common, work: &Work, known: &Graded) -> bool {
    let cell = work.cell();
    let is_its = common.options.grader.is_some() && cell.task.grader == Grader::Command;
    is_its && known.outcome.is_final() && known.made_of == cell.made_of()
}

/// Compares an ended run with the current answer of its task and with the grades that the user's command gives now, and counts it.
pub(super) fn rescore(
    shard: &mut Shard,
    work: &Work,
    common: &Common,
    known: &Graded,
    grades: Grades,
) -> Result<(), BatchError> {
    let cell = work.cell();
    let before = [known.right, known.blind_right];
    let task = as_written(work, shard)?;
    let is_same = known.made_of == cell.made_of();
    // A command that forgets the grader takes no verdict back.
    let is_forgotten = common.options.grader.is_none() && known.has_grade() && cell.task.answer.is_none();
    let (rights, grades) = if is_same && !is_forgotten {
        (known.rights(&Cell { task: &task, ..cell }, &grades), grades)
    } else {
        (before, known.grades())
    };
    if rights != before || grades != known.grades() {
        shard.rescore(work.run, rights, &grades)?;
    }
    let mut figures = common.figures();
    figures.rescored += u64::from(rights != before);
    figures.ended.add(known.outcome, rights[0]);
    figures.changed += u64::from(!is_same);
    figures.before += 1;
    Ok(())
}

/// Loads the table with which an interrupted run continues; `None` for a run that is not redacted.
///
/// # Errors
///
/// Returns why the run cannot continue: its table is missing, or it was begun without one and would send text that is now to be
/// redacted.
fn gone_on_with(shard: &Shard, run: Uuid, is_wanted: bool) -> Result<Option<Redaction>, String> {
    match (shard.is_redacted(run), is_wanted) {
        (true, _) => Redaction::load(shard.redactions(run)).map(Some),
        (false, false) => Ok(None),
        (false, true) => Err(
            "its run was begun without --redact, and would send text that is to be redacted now; leave out \
                              --redact, or give another --output"
                .to_owned(),
        ),
    }
}

/// Returns the task of a cell, with its answer as the run writes it: a redacted run has tokens in it.
pub(super) fn as_written<'a>(work: &'a Work, shard: &Shard) -> Result<Cow<'a, TaskLine>, BatchError> {
    let is_redacted = shard.is_redacted(work.run);
    let Some(answer) = work.task.answer.as_ref().filter(|_| is_redacted) else {
        return Ok(Cow::Borrowed(&*work.task));
    };
    let redaction = Redaction::load(shard.redactions(work.run))
        .map_err(|why| BatchError::Redactions { run: work.run, why })?;
    let answer = Some(redaction.written(answer));
    Ok(Cow::Owned(TaskLine { answer, ..TaskLine::clone(&work.task) }))
}

/// Adds the grades of the user's command to a run that has ended. `table` is the table of a redacted run.
pub(super) async fn graded(
    mut ended: EndedRun,
    common: &Common,
    work: &Work,
    table: Option<PathBuf>,
) -> Result<EndedRun, BatchError> {
    if ended.result.outcome.is_final() {
        let [text, blind] = ended.given();
        ended.grades =
            grade(common.options.grader.as_ref(), work, [&text, &blind], [None, None], table).await?;
    }
    Ok(ended)
}

/// Returns the grades of a run that has a line of results: those on record where they fit. `table` is the table of a redacted run.
pub(super) async fn graded_again(
    known: &Graded,
    common: &Common,
    work: &Work,
    table: Option<PathBuf>,
) -> Result<Grades, BatchError> {
    grade(common.options.grader.as_ref(), work, known.given(), known.grades(), table).await
}

/// Returns the reason why a run with these records cannot go on under these limits, if there is one.
fn refusal(records: &[Record], limits: Limits) -> Option<String> {
    let Entry::Opened(opened) = &records.first()?.event else { return None };
    let resumed = records.iter().rev().find_map(|record| {
        if let Entry::Resumed { limits, .. } = &record.event { Some(*limits) } else { None }
    });
    let now = resumed.unwrap_or(opened.limits);
    (!opened.allows(now, limits)).then(|| only_under(now))
}

/// Returns the SHA-256 of what a run was begun with, documents aside. It equals that of the cell if nothing has changed.
fn made_of(records: &[Record]) -> Digest {
    let Some(Entry::Opened(opened)) = records.first().map(|record| &record.event) else {
        return Digest::ZERO;
    };
    opened.cell.as_ref().map_or(Digest::ZERO, |cell| cell.made_of)
}

/// Runs one cell to its end.
pub(super) async fn run_cell(
    run: Uuid,
    writer: RunWriter,
    start: Start,
    common: &Common,
    stop: watch::Receiver<StopRequest>,
) -> Result<EndedRun, BatchError> {
    let Common { options, .. } = common;
    let endpoints = match &start {
        Start::New(prepared) => prepared.spec().endpoints.clone(),
        Start::Again { endpoints, .. } => endpoints.clone(),
    };
    let meter = Meter { common, run, endpoints };
    let mut engine = match start {
        Start::New(prepared) => {
            let prepared = prepared.on_server(options.lifeline.clone());
            let prepared = prepared.with_sandbox(Some(options.sandbox.clone()));
            Engine::start_shared(writer, prepared, &options.clients, &meter)?
        }
        Start::Again { records, endpoints, limits, redaction } => {
            let now = Resumption::new(limits, endpoints).on_server(options.lifeline.clone());
            let now = now.with_sandbox(Some(options.sandbox.clone()));
            let now = now.with_redaction(redaction.map(|redaction| *redaction));
            Engine::resume_shared(writer, &records, now, &options.clients, &meter)?
        }
    };
    engine.run(stop).await?;
    Ok(EndedRun::new(engine.state(), engine.journal_head()))
}
