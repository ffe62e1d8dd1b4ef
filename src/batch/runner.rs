//! Keeping as many runs under way as are wanted, until all cells of a shard have ended.
//!
//! In: lines of tasks, the columns that they are run in, a shard. Out: a journal and results in the shard's folder, and figures for
//! whoever watches. One that fails stops no other; where the journal cannot be written, all stop.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use super::error::BatchError;
use super::feed::{Feed, Line};
use super::figures::Figures;
use super::matrix::{Cell, Column, ShardOf};
use super::row::{Ending, Row};
use super::shard::{Retry, Shard, Standing};
use super::task::{DocumentLine, LINE_BYTES_MAX, TaskLine};
use crate::engine::{Changes, Engine, EngineError, Ledger, Moment, Observer, StopRequest};
use crate::journal::{Entry, Limits, Opened, Record, Strand};
use crate::protocol::{Document, Setup, Task};
use crate::provider::launch::Lifeline;
use crate::provider::{Clients, Endpoint, Flow, ProviderError};
use crate::report::RunResult;

/// How often a watcher is told how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// When it is said that all further calls would fail too: after what has gone wrong without an answer in between.
struct Patience {
    /// So many calls, for reasons that all others share; each was repeated for a while.
    of_all: usize,
    /// So many, for whatever reason.
    any: usize,
    /// So many times every server was left out, each time for longer.
    outs: u32,
}

/// Where there was no answer yet: the address may be wrong, or a key.
const AT_FIRST: Patience = Patience { of_all: 4, any: 16, outs: 3 };

/// Where there was one: a server may come back.
const LATER: Patience = Patience { of_all: 16, any: 64, outs: 10 };

/// Where columns come from.
pub trait Columns {
    /// The columns of a task: those of the batch, or those of the roleset that it names.
    ///
    /// # Errors
    ///
    /// Why there are none, in words.
    fn of(&self, roleset: Option<&str>) -> impl Future<Output = Result<Rc<[Column]>, String>>;
}

/// Whoever wants to know how far a batch is.
pub trait Watcher {
    /// A line cannot be run: its number, the task's id if it has one, and why.
    fn refused(&self, number: u64, id: Option<&str>, why: &str);
    /// A run has ended.
    fn ended(&self, row: &Row);
    /// It is so far.
    fn so_far(&self, figures: &Figures);
}

/// How a batch is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which part of it.
    pub shard: ShardOf,
    /// Seeds of each task in each column.
    pub seeds: std::ops::Range<u64>,
    /// So many runs are under way at once.
    pub concurrency: usize,
    /// So many requests one server is given at once.
    pub flow: Flow,
    /// What each run may use.
    pub limits: Limits,
    /// Which ends are not taken as they are.
    pub retry: Retry,
    /// Where documents are that are named by a relative path.
    pub documents: PathBuf,
    /// The length of the tasks in bytes, if it is known.
    pub tasks_bytes: Option<u64>,
    /// Set if this program launched the server.
    pub lifeline: Option<Lifeline>,
}

/// What a run goes on from.
enum Start {
    New(Box<Opened>),
    Again(Vec<Record>, Vec<Endpoint>),
}

/// What a task needs to be run, kept while a run of it is under way.
struct Work {
    task: Rc<TaskLine>,
    column: usize,
    columns: Rc<[Column]>,
    seed: u64,
    run: Uuid,
}

impl Work {
    fn cell(&self) -> Cell<'_> {
        Cell { task: &self.task, column: &self.columns[self.column], seed: self.seed }
    }
}

/// What all runs share.
struct Common {
    options: Options,
    clients: Clients,
    figures: RefCell<Figures>,
    in_vain: RefCell<InVain>,
}

/// Calls that have failed one after another.
#[derive(Debug, Default)]
struct InVain {
    of_all: usize,
    any: usize,
    was_answered: bool,
    /// Why the last one failed.
    why: String,
}

impl InVain {
    fn answered(&mut self) {
        *self = Self { was_answered: true, ..Self::default() };
    }

    fn failed(&mut self, error: &ProviderError) {
        self.of_all += usize::from(error.is_of_all());
        self.any += 1;
        self.why = error.to_string();
    }

    /// Why no more runs are begun, if that is so.
    fn verdict(&self, clients: &Clients) -> Option<String> {
        let patience = if self.was_answered { LATER } else { AT_FIRST };
        let is_enough = self.of_all >= patience.of_all || self.any >= patience.any;
        if is_enough { Some(self.why.clone()) } else { clients.lost(patience.outs) }
    }
}

/// Counts what a run uses, as it is used.
struct Meter<'a> {
    common: &'a Common,
    endpoints: Vec<Endpoint>,
}

impl Observer for Meter<'_> {
    fn notice(&self, moment: Moment<'_>) {
        match moment {
            Moment::Answered { replied, .. } => {
                let price = self.endpoints.get(replied.call.agent).and_then(Endpoint::price);
                self.common.figures.borrow_mut().count(&replied.usage, replied.usage.cost(price));
                self.common.in_vain.borrow_mut().answered();
            }
            Moment::Failed { error } => self.common.in_vain.borrow_mut().failed(error),
            Moment::Writing
            | Moment::Written(_)
            | Moment::Calling { .. }
            | Moment::Streaming { .. }
            | Moment::Remarked { .. }
            | Moment::Cancelled { .. }
            | Moment::Stopping { .. } => {}
        }
    }
}

/// Runs all cells of a shard. Ends early, with what is under way put down, once `stop` says so.
///
/// # Errors
///
/// [`BatchError`]; what is durable stays so.
pub async fn run(
    shard: &mut Shard,
    feed: Feed,
    columns: &impl Columns,
    options: Options,
    stop: watch::Receiver<StopRequest>,
    watcher: &impl Watcher,
) -> Result<Figures, BatchError> {
    // Each run is a task of its own, on this thread: what it waits for wakes it, and no other.
    let (clients, figures) = (Clients::new(options.flow), RefCell::new(Figures::new()));
    let common = Rc::new(Common { options, clients, figures, in_vain: RefCell::default() });
    LocalSet::new().run_until(run_all(shard, feed, columns, &common, stop, watcher)).await
}

async fn run_all(
    shard: &mut Shard,
    mut feed: Feed,
    columns: &impl Columns,
    common: &Rc<Common>,
    mut stop: watch::Receiver<StopRequest>,
    watcher: &impl Watcher,
) -> Result<Figures, BatchError> {
    let began = Instant::now();
    let Common { options, figures, in_vain, clients } = &**common;
    // What is put down on request fails for no fault of a server.
    let give_up = |stop: &watch::Receiver<StopRequest>| {
        let verdict = in_vain.borrow().verdict(clients).filter(|_| *stop.borrow() == StopRequest::None);
        verdict.map_or(Ok(()), |why| Err(BatchError::InVain { why }))
    };
    let so_far = |waiting: usize, bytes_read, is_read: bool| {
        let bytes = options.tasks_bytes.filter(|_| !is_read).unwrap_or(bytes_read);
        let cells = options.tasks_bytes.is_some() || is_read;
        figures.borrow().at(began.elapsed(), waiting as u64, bytes_read, cells.then_some(bytes), is_read)
    };
    let refused = |number, id: Option<&str>, why: &str| {
        figures.borrow_mut().refused += 1;
        watcher.refused(number, id, why);
    };
    let mut waiting: VecDeque<(u64, Work)> = VecDeque::new();
    let mut running = JoinSet::new();
    let (mut is_read, mut bytes_read) = (false, 0);
    let mut ticks = tokio::time::interval(TOLD_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_stopping = *stop.borrow_and_update() != StopRequest::None;
        let has_room = running.len() < options.concurrency && !is_stopping;
        if has_room && let Some((number, work)) = waiting.pop_front() {
            match begin(shard, &work, options, figures) {
                Ok(Some((strand, start))) => {
                    figures.borrow_mut().under_way += 1;
                    let (common, stop) = (Rc::clone(common), stop.clone());
                    running.spawn_local(async move { (work, go(strand, start, &common, stop).await) });
                    // Those that are there go on while the next one is made ready.
                    tokio::task::yield_now().await;
                }
                Ok(None) => {}
                Err(Unfit::Line(why)) => {
                    // The others of its line would not do better.
                    waiting.retain(|(other, _)| *other != number);
                    refused(number, Some(&work.task.id), &why);
                }
                Err(Unfit::Batch(why)) => return Err(why),
            }
            continue;
        }
        if running.is_empty() && (is_stopping || is_read && waiting.is_empty()) {
            break;
        }
        tokio::select! {
            biased;
            Ok(()) = stop.changed() => {}
            _ = ticks.tick() => {
                watcher.so_far(&so_far(waiting.len(), bytes_read, is_read));
                give_up(&stop)?;
            }
            line = feed.next(), if waiting.is_empty() && !is_read && has_room => {
                let Some(line) = line else {
                    is_read = true;
                    continue;
                };
                let Line { number, bytes_read: so_far, task } = line.map_err(BatchError::Tasks)?;
                bytes_read = so_far;
                match expand(task, columns, options).await {
                    Ok(cells) => waiting.extend(cells.into_iter().map(|work| (number, work))),
                    Err((id, why)) => refused(number, id.as_deref(), &why),
                }
            }
            Some(ended) = running.join_next() => {
                figures.borrow_mut().under_way -= 1;
                let (work, result) = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
                let row = Row::new(&work.cell(), result?);
                if row.ending() != Ending::Interrupted {
                    shard.add(&row)?;
                    figures.borrow_mut().ended.add(row.ending(), row.right);
                    watcher.ended(&row);
                }
                give_up(&stop)?;
            }
        }
    }
    shard.sync()?;
    let figures = so_far(waiting.len(), bytes_read, is_read);
    watcher.so_far(&figures);
    Ok(figures)
}

/// Why a cell is not run.
enum Unfit {
    /// It cannot be.
    Line(String),
    /// Nothing can.
    Batch(BatchError),
}

impl From<BatchError> for Unfit {
    fn from(why: BatchError) -> Self {
        Self::Batch(why)
    }
}

/// Finds what a cell goes on from; `None` where there is nothing left to do.
fn begin(
    shard: &mut Shard,
    work: &Work,
    options: &Options,
    figures: &RefCell<Figures>,
) -> Result<Option<(Strand, Start)>, Unfit> {
    let cell = work.cell();
    let run = work.run;
    match shard.standing(run, options.retry)? {
        Standing::New => {
            let documents = documents(&cell.task.documents, &options.documents).map_err(Unfit::Line)?;
            let opened = cell.opened(documents, options.limits).map_err(Unfit::Line)?;
            Ok(Some((shard.strand(run), Start::New(Box::new(opened)))))
        }
        Standing::Begun => {
            let (strand, records) = shard.take(run)?;
            figures.borrow_mut().changed += u64::from(!is_of(&records, &cell));
            Ok(Some((strand, Start::Again(records, cell.column.endpoints.clone()))))
        }
        Standing::Unreported => {
            let (strand, records) = shard.take(run)?;
            let ledger = Ledger::replay(&records)
                .map_err(|(line, why)| BatchError::from(EngineError::Mismatch { line, why }))?;
            let row = Row::new(&cell, RunResult::new(&ledger, strand.head()));
            let ending = row.ending();
            shard.add(&row)?;
            let mut figures = figures.borrow_mut();
            figures.ended.add(ending, row.right);
            figures.before += 1;
            Ok(None)
        }
        Standing::Ended(known) => {
            // No model has seen the answer: where it is another now, the run is only held against it again.
            let rights = known.rights(&cell);
            let mut figures = figures.borrow_mut();
            if rights != [known.right, known.blind_right] {
                shard.rescore(run, rights)?;
                figures.rescored += 1;
            }
            figures.ended.add(known.outcome, rights[0]);
            figures.changed += u64::from(known.made_of != cell.made_of());
            figures.before += 1;
            Ok(None)
        }
    }
}

/// Whether a run was begun as what its cell is now, documents aside.
fn is_of(records: &[Record], cell: &Cell<'_>) -> bool {
    let Some(Entry::Opened(opened)) = records.first().map(|record| &record.event) else { return false };
    let was = &opened.setup;
    let now = Setup {
        task: Task { prompt: cell.task.prompt.clone(), ..was.task.clone() },
        seed: cell.seed,
        canonical: cell.canonical().clone(),
        ..cell.column.setup.clone()
    };
    *was == now
}

/// Runs one cell to its end.
async fn go(
    strand: Strand,
    start: Start,
    common: &Common,
    stop: watch::Receiver<StopRequest>,
) -> Result<RunResult, BatchError> {
    let Common { options, clients, .. } = common;
    let endpoints = match &start {
        Start::New(opened) => opened.endpoints.clone(),
        Start::Again(_, endpoints) => endpoints.clone(),
    };
    let meter = Meter { common, endpoints };
    let mut engine = match start {
        Start::New(opened) => Engine::start_among(strand, *opened, clients, &meter)?,
        Start::Again(records, endpoints) => {
            let now = Changes { limits: Some(options.limits), endpoints: Some(endpoints), library: None };
            Engine::resume_among(strand, &records, now, clients, &meter)?
        }
    };
    if let Some(lifeline) = &options.lifeline {
        engine.attach(lifeline);
    }
    engine.run(stop).await?;
    Ok(RunResult::new(engine.ledger(), engine.journal_head()))
}

/// All cells of a line that belong to this shard, or the task's id, if it has one, and why there are none.
async fn expand(
    task: Result<TaskLine, (Option<String>, String)>,
    columns: &impl Columns,
    options: &Options,
) -> Result<Vec<Work>, (Option<String>, String)> {
    let task = Rc::new(task?);
    let columns = columns.of(task.roleset.as_deref()).await.map_err(|why| (Some(task.id.clone()), why))?;
    let mut cells = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        for seed in options.seeds.clone() {
            let run = Cell { task: &task, column, seed }.run();
            if options.shard.has(run) {
                let (task, columns) = (Rc::clone(&task), Rc::clone(&columns));
                cells.push(Work { task, column: at, columns, seed, run });
            }
        }
    }
    Ok(cells)
}

/// Reads the documents of a task.
fn documents(lines: &[DocumentLine], folder: &Path) -> Result<Vec<Document>, String> {
    let read = |line: &DocumentLine| match line {
        DocumentLine::Text(document) => Ok(document.clone()),
        DocumentLine::File(path) => {
            let place = folder.join(path);
            let wrong = |why: &dyn std::fmt::Display| format!("its document `{}`: {why}", place.display());
            let about = std::fs::metadata(&place).map_err(|why| wrong(&why))?;
            // A pipe or a device may have no end.
            if !about.is_file() {
                return Err(wrong(&"it is no file"));
            }
            if about.len() > LINE_BYTES_MAX as u64 {
                return Err(wrong(&format!("it is longer than {LINE_BYTES_MAX} bytes")));
            }
            let text = std::fs::read_to_string(&place).map_err(|why| wrong(&why))?;
            Ok(Document { name: path.display().to_string(), text, redacted: false })
        }
    };
    let documents: Vec<Document> = lines.iter().map(read).collect::<Result<_, String>>()?;
    for (at, document) in documents.iter().enumerate() {
        if documents[..at].iter().any(|other| other.name == document.name) {
            return Err(format!("two of its documents are called `{}`", document.name));
        }
    }
    Ok(documents)
}
