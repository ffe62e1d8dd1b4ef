//! One run of a batch: its starting point, and its way to an end.
//!
//! The input is a cell and the state of its run in the shard. The output is its result, or the reason why it is not run. The scheduler,
//! not this module, decides which runs are under way at once.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

use super::circuit_breaker::CircuitBreaker;
use super::grading::{CommandGrader, grade};
use crate::batch::folder::{BatchError, BudgetNote, ShardOf};
use crate::batch::plan::{Cell, Variant, Work, read_documents};
use crate::batch::store::{BatchStats, CellState, Grades, ResultOnRecord, ResultParts, Retry, Shard};
use crate::batch::tasks::{Grader, TaskLine};
use crate::engine::{
    Engine, EngineError, PreparedRun, Redaction, Resumption, RunEvent, RunObserver, RunState, StopRequest,
};
use crate::journal::{Entry, Limits, Record, RunWriter};
use crate::otlp::SpanQueue;
use crate::provider::Clients;
use crate::provider::launch::Lifeline;
use crate::run::explain_fixed_limits;
use crate::sandbox::Sandbox;
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::pacing::{BudgetRuling, PacedRun};

/// The reason why a run that shares a budget does not continue without one.
const NO_BUDGET: &str = "its run waits for a budget of tokens; give --budget-tokens as before";

/// The options of a batch.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shard to run.
    pub shard: ShardOf,
    /// The seeds of each task in each variant.
    pub seeds: std::ops::Range<u64>,
    /// The most runs that are under way at once.
    pub concurrency: usize,
    /// The most threads that work on runs.
    pub threads: usize,
    /// The connections of all runs, and the replies that are used again in place of calls.
    pub clients: Arc<Clients>,
    /// The limits of each run.
    pub limits: Limits,
    /// The kinds of ends after which a run is tried again.
    pub retry: Retry,
    /// The folder of documents that are named by a relative path.
    pub documents: PathBuf,
    /// The number of task lines, if it is known.
    pub task_lines: Option<u64>,
    /// The sandbox for checks of final texts, for programs and for the grader's command.
    pub sandbox: Sandbox,
    /// The user's command that grades the texts of tasks whose grader is a command.
    pub grader: Option<CommandGrader>,
    /// The lifeline of the server, if this program launched it.
    pub lifeline: Option<Lifeline>,
    /// Whether the batch ends once further calls would fail, because a server is gone or refuses the key.
    pub gives_up: bool,
    /// The queue of runs whose spans are sent to a collector, if there is one.
    pub spans: Option<SpanQueue>,
    /// The budget of tokens that the votes share, if they share one.
    pub budget: Option<BudgetNote>,
}

/// The starting point of a run.
pub(super) enum RunStart {
    New(Box<PreparedRun>),
    Resumed {
        records: Vec<Record>,
        endpoints: Vec<Endpoint>,
        limits: Limits,
        /// The ruling of a budget that the run waits for.
        ruling: Option<BudgetRuling>,
        redaction: Option<Box<Redaction>>,
    },
}

/// The next step for a cell.
pub(super) enum CellStep {
    /// Its run begins or continues.
    Run { writer: RunWriter, start: RunStart, fingerprint: Digest },
    /// Its run has ended, and its text is to be graded before it has a line of results.
    Grade { ended: Box<ResultParts>, fingerprint: Digest },
    /// Its run has a line of results, and the user's command may have to grade its texts again.
    GradeAgain(Box<ResultOnRecord>),
    /// Its run waits for the budget that it shares.
    Waiting,
    /// Nothing is left to do.
    Done,
    /// The run would fail for this reason, so it is left for a later call of the program.
    Postponed(String),
}

/// The state that the runs on all threads share.
pub(super) struct BatchContext {
    pub(super) options: Options,
    figures: Mutex<BatchStats>,
    breaker: Mutex<CircuitBreaker>,
}

impl BatchContext {
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

    /// Returns why a run of this variant would fail, if it would.
    pub(super) fn predict_failure(&self, variant: &Variant) -> Option<String> {
        if !self.options.gives_up {
            return None;
        }
        self.breaker().predict_failure(&variant.endpoints, &self.options.clients)
    }
}

/// An observer that counts the usage of a run as it happens.
struct UsageObserver<'a> {
    context: &'a BatchContext,
    endpoints: Vec<Endpoint>,
    /// The caller's observer of this run, which gets every event.
    inner: Box<dyn RunObserver + Send>,
}

impl RunObserver for UsageObserver<'_> {
    fn on_event(&self, event: RunEvent<'_>) {
        self.inner.on_event(event);
        match event {
            RunEvent::Answered { replied, usage, .. } => {
                let endpoint = self.endpoints.get(replied.call.agent);
                let cost = usage.cost(endpoint.and_then(Endpoint::price));
                self.context.figures().count(&usage, cost);
                if let Some(endpoint) = endpoint {
                    self.context.breaker().record_answer(endpoint);
                }
            }
            RunEvent::Failed { call, error } => {
                if let Some(endpoint) = self.endpoints.get(call.agent) {
                    self.context.breaker().record_failure(endpoint, error);
                }
            }
            RunEvent::Again { error, wait, .. } => tracing::warn!("{error}; next try in {wait:.1?}"),
            RunEvent::Lost { agent, lost } => {
                tracing::warn!(
                    "{agent}: its server failed, and the run continues without it: {}",
                    lost.cause
                );
            }
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

/// The reason why a cell cannot be run.
pub(super) enum CannotRun {
    /// No cell of this line of tasks can be run, for this reason.
    Line(String),
    /// The batch cannot continue.
    Batch(BatchError),
}

impl From<BatchError> for CannotRun {
    fn from(why: BatchError) -> Self {
        Self::Batch(why)
    }
}

/// A run as a pass leaves it.
pub(super) struct EndedRun {
    pub(super) parts: ResultParts,
    /// The run as the ledger of its budget has it, if it shares one.
    pub(super) paced: Option<PacedRun>,
}

/// Finds the next step for a cell. For a run that has begun, this takes its writer and its records from the shard.
pub(super) fn find_step(
    shard: &mut Shard,
    work: &Work,
    context: &BatchContext,
) -> Result<CellStep, CannotRun> {
    let options = &context.options;
    let cell = work.cell();
    let run = work.run;
    let Variant { roleset, model, sought, .. } = cell.variant;
    if sought.is_none() && shard.has_redacted(roleset, model) {
        return Err(BatchError::Private { roleset: roleset.clone() }.into());
    }
    let state = shard.state_of(run, options.retry)?;
    if matches!(state, CellState::New | CellState::Begun)
        && let Some(why) = context.predict_failure(cell.variant)
    {
        return Ok(CellStep::Postponed(why));
    }
    match state {
        CellState::New => {
            let documents =
                read_documents(&cell.task.documents, &options.documents).map_err(CannotRun::Line)?;
            let redaction =
                sought.as_ref().map(|sought| Redaction::new(shard.redactions(run), sought.clone()));
            let prepared = cell.prepare(documents, redaction, options.limits, shard.plan());
            let prepared = prepared.map_err(CannotRun::Line)?;
            if sought.is_some() {
                shard.begin_redacted(run);
            }
            let start = RunStart::New(Box::new(prepared));
            Ok(CellStep::Run { writer: shard.writer(run), start, fingerprint: cell.fingerprint() })
        }
        CellState::Begun => {
            let (writer, records) = shard.take(run)?;
            let is_changed = original_fingerprint(&records) != cell.fingerprint();
            context.figures().changed += u64::from(is_changed);
            if is_paced(&records) {
                if options.budget.is_none() {
                    return Err(CannotRun::Line(NO_BUDGET.to_owned()));
                }
                let state = RunState::replay(&records);
                if state.map_err(|why| BatchError::from(EngineError::from(why)))?.is_waiting() {
                    return Ok(CellStep::Waiting);
                }
            }
            resume_step(shard, work, context, writer, records, None)
        }
        CellState::Unreported => {
            let (writer, records) = shard.take(run)?;
            let state = RunState::replay(&records).map_err(|why| BatchError::from(EngineError::from(why)))?;
            let fingerprint = original_fingerprint(&records);
            context.figures().changed += u64::from(fingerprint != cell.fingerprint());
            Ok(CellStep::Grade { ended: Box::new(ResultParts::new(&state, writer.head())), fingerprint })
        }
        CellState::Ended(known) if is_graded_by_command(context, work, &known) => {
            Ok(CellStep::GradeAgain(known))
        }
        CellState::Ended(known) => {
            rescore(shard, work, context, &known, [None, None])?;
            Ok(CellStep::Done)
        }
    }
}

/// Finds the step by which a run that waits follows the ruling of its budget.
pub(super) fn find_ruled_step(
    shard: &mut Shard,
    work: &Work,
    context: &BatchContext,
    ruling: BudgetRuling,
) -> Result<CellStep, CannotRun> {
    if let BudgetRuling::Permit(_) = ruling
        && let Some(why) = context.predict_failure(work.cell().variant)
    {
        return Ok(CellStep::Postponed(why));
    }
    let (writer, records) = shard.take_again(work.run)?;
    resume_step(shard, work, context, writer, records, Some(ruling)).map_err(|why| match why {
        // The lines of tasks have been read, so none of them is to blame.
        CannotRun::Line(why) => BatchError::Usage(format!("task `{}`: {why}", work.task.id)).into(),
        CannotRun::Batch(_) => why,
    })
}

/// Returns the step that continues a run with these records.
fn resume_step(
    shard: &Shard,
    work: &Work,
    context: &BatchContext,
    writer: RunWriter,
    records: Vec<Record>,
    ruling: Option<BudgetRuling>,
) -> Result<CellStep, CannotRun> {
    let variant = work.cell().variant;
    let fingerprint = original_fingerprint(&records);
    let redaction =
        load_redaction(shard, work.run, variant.sought.is_some()).map_err(CannotRun::Line)?.map(Box::new);
    let limits = variant.limits_of_run(context.options.limits);
    if let Some(why) = explain_refusal(&records, limits) {
        return Err(CannotRun::Line(why));
    }
    let endpoints = variant.endpoints.clone();
    let start = RunStart::Resumed { records, endpoints, limits, ruling, redaction };
    Ok(CellStep::Run { writer, start, fingerprint })
}

/// Returns true if a run with these records shares a budget of tokens.
fn is_paced(records: &[Record]) -> bool {
    let first = records.first().map(|record| &record.event);
    matches!(first, Some(Entry::Opened(opened)) if opened.setup.params.is_paced())
}

/// Returns whether the user's command decides if an ended run is right. It does not decide if the task or the variant has changed since
/// the run, because the run's text may then answer another question.
fn is_graded_by_command(context: &BatchContext, work: &Work, known: &ResultOnRecord) -> bool {
    let cell = work.cell();
    let is_by_command = context.options.grader.is_some() && cell.task.grader == Grader::Command;
    is_by_command && known.outcome.is_final() && known.fingerprint == cell.fingerprint()
}

/// Grades an ended run by the current answer of its task and by these current grades of the user's command, and counts the run.
pub(super) fn rescore(
    shard: &mut Shard,
    work: &Work,
    context: &BatchContext,
    known: &ResultOnRecord,
    grades: Grades,
) -> Result<(), BatchError> {
    let cell = work.cell();
    let before = [known.right, known.blind_right];
    let task = redact_task(work, shard)?;
    let is_same = known.fingerprint == cell.fingerprint();
    // Grades from an earlier call of the program remain if the present call names no grader.
    let keeps_grades = context.options.grader.is_none() && known.has_grade() && cell.task.answer.is_none();
    let (rights, grades) = if is_same && !keeps_grades {
        (known.rights(&Cell { task: &task, ..cell }, &grades), grades)
    } else {
        (before, known.grades())
    };
    if rights != before || grades != known.grades() {
        shard.rescore(work.run, rights, &grades)?;
    }
    let mut figures = context.figures();
    figures.rescored += u64::from(rights != before);
    figures.ended.add(known.outcome, rights[0]);
    figures.changed += u64::from(!is_same);
    figures.before += 1;
    Ok(())
}

/// Loads the table of redactions with which an interrupted run continues; `None` for a run that is not redacted.
///
/// The error says why the run cannot continue: its table is missing, or it was begun without one and would send text that is now to be
/// redacted.
fn load_redaction(shard: &Shard, run: Uuid, is_wanted: bool) -> Result<Option<Redaction>, String> {
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

/// Returns the task of a cell, with its answer in the words of the run: a redacted run has tokens in place of the redacted text.
pub(super) fn redact_task<'a>(work: &'a Work, shard: &Shard) -> Result<Cow<'a, TaskLine>, BatchError> {
    let Some(answer) = &work.task.answer else { return Ok(Cow::Borrowed(&*work.task)) };
    if !shard.is_redacted(work.run) {
        return Ok(Cow::Borrowed(&*work.task));
    }
    let redaction = Redaction::load(shard.redactions(work.run))
        .map_err(|why| BatchError::Redactions { run: work.run, why })?;
    let answer = Some(redaction.redact(answer));
    Ok(Cow::Owned(TaskLine { answer, ..TaskLine::clone(&work.task) }))
}

/// Adds the grades of the user's command to a run that has ended. `table` is the table of a redacted run.
pub(super) async fn grade_run(
    mut ended: ResultParts,
    context: &BatchContext,
    work: &Work,
    table: Option<PathBuf>,
) -> Result<ResultParts, BatchError> {
    if ended.result.outcome.is_final() {
        let [text, blind] = ended.texts();
        ended.grades =
            grade(context.options.grader.as_ref(), work, [&text, &blind], [None, None], table).await?;
    }
    Ok(ended)
}

/// Returns the grades of a run that has a line of results. A grade on record is used again if it is by the same command and of the same
/// text. `table` is the table of a redacted run.
pub(super) async fn grade_again(
    known: &ResultOnRecord,
    context: &BatchContext,
    work: &Work,
    table: Option<PathBuf>,
) -> Result<Grades, BatchError> {
    grade(context.options.grader.as_ref(), work, known.texts(), known.grades(), table).await
}

/// Returns the reason why a run with these records cannot continue under these limits, if there is one.
fn explain_refusal(records: &[Record], limits: Limits) -> Option<String> {
    let Entry::Opened(opened) = &records.first()?.event else { return None };
    let resumed = records.iter().rev().find_map(|record| {
        if let Entry::Resumed { limits, .. } = &record.event { Some(*limits) } else { None }
    });
    let now = resumed.unwrap_or(opened.limits);
    if opened.allows(now, limits) { None } else { Some(explain_fixed_limits(now)) }
}

/// Returns the SHA-256 of the task and the variant with which a run was begun, without the text of documents. It equals that of the cell
/// if neither has changed.
fn original_fingerprint(records: &[Record]) -> Digest {
    let Some(Entry::Opened(opened)) = records.first().map(|record| &record.event) else {
        return Digest::ZERO;
    };
    opened.cell.as_ref().map_or(Digest::ZERO, |cell| cell.fingerprint)
}

/// Runs one cell to its end, or until it waits for its budget.
pub(super) async fn run_cell(
    writer: RunWriter,
    start: RunStart,
    context: &BatchContext,
    stop: watch::Receiver<StopRequest>,
    inner: Box<dyn RunObserver + Send>,
) -> Result<EndedRun, BatchError> {
    let BatchContext { options, .. } = context;
    let endpoints = match &start {
        RunStart::New(prepared) => prepared.spec().endpoints.clone(),
        RunStart::Resumed { endpoints, .. } => endpoints.clone(),
    };
    let observer = UsageObserver { context, endpoints, inner };
    let mut engine = match start {
        RunStart::New(prepared) => {
            let prepared = prepared.on_shared_server(options.lifeline.clone());
            let prepared = prepared.with_sandbox(Some(options.sandbox.clone()));
            Engine::start_shared(writer, prepared, &options.clients, &observer)?
        }
        RunStart::Resumed { records, endpoints, limits, ruling, redaction } => {
            let resumption = Resumption::new(limits, endpoints).with_ruling(ruling);
            let resumption = resumption.on_shared_server(options.lifeline.clone());
            let resumption = resumption.with_sandbox(Some(options.sandbox.clone()));
            let resumption = resumption.with_redaction(redaction.map(|redaction| *redaction));
            Engine::resume_shared(writer, &records, resumption, &options.clients, &observer)?
        }
    };
    engine.run(stop).await?;
    let state = engine.state();
    let paced = state.paced().map(|(_, run)| run);
    Ok(EndedRun { parts: ResultParts::new(state, engine.journal_head()), paced })
}
