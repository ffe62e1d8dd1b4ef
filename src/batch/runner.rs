//! Keeping as many runs under way as are wanted, until all cells of a shard have ended.
//!
//! In: lines of tasks, the columns that they are run in, a shard. Out: a journal and results in the shard's folder, and figures for
//! whoever watches. One that fails stops no other; where the journal cannot be written, all stop.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet, LocalSet};
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use super::error::BatchError;
use super::feed::{Feed, Line};
use super::figures::Figures;
use super::in_vain::InVain;
use super::matrix::{Cell, Column};
use super::row::{Ending, Row};
use super::shard::{Retry, Shard, Standing};
use super::shard_id::ShardOf;
use super::task::{DocumentLine, LINE_BYTES_MAX, TaskLine};
use crate::core::Endpoint;
use crate::crypto::Digest;
use crate::engine::{Changes, Engine, EngineError, Ledger, Moment, Observer, StopRequest};
use crate::journal::{Entry, Limits, Opened, Record, Strand};
use crate::protocol::{Document, RunSetup, Task};
use crate::provider::launch::Lifeline;
use crate::provider::{Clients, Flow};
use crate::report::RunResult;

/// How often a watcher is told how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(500);

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

/// What is to be done about a cell.
enum Next {
    /// Its run goes on, or begins.
    Go { strand: Strand, start: Start, made_of: Digest },
    /// Nothing is left to do.
    Done,
    /// It would fail, for this reason, and is left for another time.
    Left(String),
}

/// The cells of one line, of which each comes by once.
struct Cells {
    number: u64,
    task: Rc<TaskLine>,
    columns: Rc<[Column]>,
    seeds: std::ops::Range<u64>,
    /// How many have come by.
    passed: u64,
}

impl Cells {
    /// How many are to come.
    fn left(&self) -> u64 {
        let seeds = self.seeds.end - self.seeds.start;
        (self.columns.len() as u64).saturating_mul(seeds).saturating_sub(self.passed)
    }
}

impl Iterator for Cells {
    type Item = Work;

    fn next(&mut self) -> Option<Work> {
        let seeds = self.seeds.end - self.seeds.start;
        let column = usize::try_from(self.passed.checked_div(seeds)?).ok()?;
        let seed = self.seeds.start + self.passed % seeds;
        let run = Cell { task: &self.task, column: self.columns.get(column)?, seed }.run();
        self.passed += 1;
        Some(Work { task: Rc::clone(&self.task), column, columns: Rc::clone(&self.columns), seed, run })
    }
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

impl Common {
    /// Why a run of this column would fail, if it would.
    fn verdict(&self, column: &Column) -> Option<String> {
        self.in_vain.borrow().verdict(&column.endpoints, &self.clients)
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
            Moment::Answered { replied, usage, .. } => {
                let endpoint = self.endpoints.get(replied.call.agent);
                let cost = usage.cost(endpoint.and_then(Endpoint::price));
                self.common.figures.borrow_mut().count(&usage, cost);
                if let Some(endpoint) = endpoint {
                    self.common.in_vain.borrow_mut().answered(endpoint);
                }
            }
            Moment::Failed { call, error } => {
                if let Some(endpoint) = self.endpoints.get(call.agent) {
                    self.common.in_vain.borrow_mut().failed(endpoint, error);
                }
            }
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
    let Common { options, figures, .. } = &**common;
    // What is put down on request fails for no fault of a server.
    let give_up = |cells: &Option<Cells>, stop: &watch::Receiver<StopRequest>| {
        let columns = cells.as_ref().filter(|_| *stop.borrow() == StopRequest::None);
        let verdicts = columns.map(|cells| cells.columns.iter().map(|column| common.verdict(column)));
        let verdict: Option<Vec<String>> = verdicts.and_then(Iterator::collect);
        let why = verdict.and_then(|verdict| verdict.into_iter().next());
        why.map_or(Ok(()), |why| Err(BatchError::InVain { why }))
    };
    let so_far = |cells: &Option<Cells>, bytes_read, is_read: bool| {
        let waiting = cells.as_ref().map_or(0, Cells::left) / options.shard.count;
        let bytes = options.tasks_bytes.filter(|_| !is_read).unwrap_or(bytes_read);
        let all = options.tasks_bytes.is_some() || is_read;
        figures.borrow().at(began.elapsed(), waiting, bytes_read, all.then_some(bytes), is_read)
    };
    let refused = |number, id: Option<&str>, why: &str| {
        figures.borrow_mut().refused += 1;
        watcher.refused(number, id, why);
    };
    // Those of the last line that was read.
    let mut cells: Option<Cells> = None;
    let mut left = None;
    let mut running = JoinSet::new();
    // What can be put down of that.
    let mut handles: Vec<(AbortHandle, Rc<[Column]>, usize)> = Vec::new();
    let (mut is_read, mut bytes_read) = (false, 0);
    let mut ticks = tokio::time::interval(TOLD_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_stopping = *stop.borrow_and_update() != StopRequest::None;
        let has_room = running.len() < options.concurrency && !is_stopping;
        if has_room && let Some(work) = cells.as_mut().and_then(Iterator::next) {
            // A line may have a million cells that are done, or another shard's: those under way go on meanwhile.
            tokio::task::coop::consume_budget().await;
            if !options.shard.has(work.run) {
                continue;
            }
            match begin(shard, &work, common) {
                Ok(Next::Go { strand, start, made_of }) => {
                    figures.borrow_mut().under_way += 1;
                    let (common, stop) = (Rc::clone(common), stop.clone());
                    let of = (Rc::clone(&work.columns), work.column);
                    let go = async move { (work, made_of, go(strand, start, &common, stop).await) };
                    let (columns, column) = of;
                    handles.push((running.spawn_local(go), columns, column));
                    // Those that are there go on while the next one is made ready.
                    tokio::task::yield_now().await;
                }
                Ok(Next::Done) => {}
                Ok(Next::Left(why)) => left = Some(why),
                Err(Unfit::Line(why)) => {
                    // The others of its line would not do better.
                    let line = cells.as_mut().map(|cells| {
                        cells.passed += cells.left();
                        cells.number
                    });
                    refused(line.unwrap_or_default(), Some(&work.task.id), &why);
                }
                Err(Unfit::Batch(why)) => return Err(why),
            }
            continue;
        }
        let is_waiting = cells.as_ref().is_some_and(|cells| cells.left() > 0);
        if running.is_empty() && (is_stopping || is_read && !is_waiting) {
            break;
        }
        tokio::select! {
            biased;
            Ok(()) = stop.changed() => {}
            _ = ticks.tick() => {
                watcher.so_far(&so_far(&cells, bytes_read, is_read));
                give_up(&cells, &stop)?;
                // Runs that wait for a server that is gone make room for those of others.
                handles.retain(|(run, columns, column)| {
                    let why = Some(run).filter(|run| !run.is_finished()).and_then(|_| common.verdict(&columns[*column]));
                    if why.is_some() {
                        run.abort();
                        left.clone_from(&why);
                    }
                    why.is_none() && !run.is_finished()
                });
            }
            line = feed.next(), if !is_waiting && !is_read && has_room => {
                let Some(line) = line else {
                    is_read = true;
                    continue;
                };
                let Line { number, bytes_read: so_far, task } = line.map_err(BatchError::Tasks)?;
                bytes_read = so_far;
                match expand(number, task, columns, options).await {
                    Ok(of_line) => cells = Some(of_line),
                    Err((id, why)) => refused(number, id.as_deref(), &why),
                }
            }
            Some(ended) = running.join_next() => {
                figures.borrow_mut().under_way -= 1;
                let (work, made_of, result) = match ended {
                    Ok(ended) => ended,
                    Err(put_down) if put_down.is_cancelled() => continue,
                    Err(panic) => std::panic::resume_unwind(panic.into_panic()),
                };
                let row = Row::new(&work.cell(), made_of, result?);
                if row.ending() != Ending::Interrupted {
                    shard.add(&row)?;
                    figures.borrow_mut().ended.add(row.ending(), row.right);
                    watcher.ended(&row);
                }
                give_up(&cells, &stop)?;
            }
        }
    }
    shard.sync()?;
    let figures = so_far(&cells, bytes_read, is_read);
    watcher.so_far(&figures);
    match left.filter(|_| *stop.borrow() == StopRequest::None) {
        Some(why) => Err(BatchError::InVain { why }),
        None => Ok(figures),
    }
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

/// Finds what a cell goes on from, if there is anything left to do.
fn begin(shard: &mut Shard, work: &Work, common: &Common) -> Result<Next, Unfit> {
    let Common { options, figures, .. } = common;
    let cell = work.cell();
    let run = work.run;
    let standing = shard.standing(run, options.retry)?;
    if matches!(standing, Standing::New | Standing::Begun)
        && let Some(why) = common.verdict(cell.column)
    {
        return Ok(Next::Left(why));
    }
    let made_of = |records: &[Record]| {
        let made_of = made_of(records, &cell);
        figures.borrow_mut().changed += u64::from(made_of != cell.made_of());
        made_of
    };
    match standing {
        Standing::New => {
            let documents = documents(&cell.task.documents, &options.documents).map_err(Unfit::Line)?;
            let opened = cell.opened(documents, options.limits).map_err(Unfit::Line)?;
            let start = Start::New(Box::new(opened));
            Ok(Next::Go { strand: shard.strand(run), start, made_of: cell.made_of() })
        }
        Standing::Begun => {
            let (strand, records) = shard.take(run)?;
            let made_of = made_of(&records);
            Ok(Next::Go { strand, start: Start::Again(records, cell.column.endpoints.clone()), made_of })
        }
        Standing::Unreported => {
            let (strand, records) = shard.take(run)?;
            let ledger = Ledger::replay(&records)
                .map_err(|(line, why)| BatchError::from(EngineError::Mismatch { line, why }))?;
            let row = Row::new(&cell, made_of(&records), RunResult::new(&ledger, strand.head()));
            let ending = row.ending();
            shard.add(&row)?;
            let mut figures = figures.borrow_mut();
            figures.ended.add(ending, row.right);
            figures.before += 1;
            Ok(Next::Done)
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
            Ok(Next::Done)
        }
    }
}

/// SHA-256 of what a run was begun as, documents aside: as what its cell says, if that has not changed.
fn made_of(records: &[Record], cell: &Cell<'_>) -> Digest {
    let Some(Entry::Opened(opened)) = records.first().map(|record| &record.event) else {
        return Digest::ZERO;
    };
    if let Some(cell) = &opened.cell {
        return cell.made_of;
    }
    // Version 0.1 did not record it.
    let was = &opened.setup;
    // Where the task has a rule of its own, that of its roleset is not on record.
    let rule = cell.task.canonical.as_ref().map_or(&was.canonical, |_| &cell.column.setup.canonical);
    let setup = RunSetup { task: Task::default(), seed: 0, canonical: rule.clone(), ..was.clone() };
    let column = Column::new(cell.column.model.clone(), setup, Vec::new());
    let task = TaskLine { prompt: was.task.prompt.clone(), ..cell.task.clone() };
    Cell { task: &task, column: &column, seed: cell.seed }.made_of()
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

/// The cells of a line, or the task's id, if it has one, and why there are none.
async fn expand(
    number: u64,
    task: Result<TaskLine, (Option<String>, String)>,
    columns: &impl Columns,
    options: &Options,
) -> Result<Cells, (Option<String>, String)> {
    let task = Rc::new(task?);
    let columns = columns.of(task.roleset.as_deref()).await.map_err(|why| (Some(task.id.clone()), why))?;
    Ok(Cells { number, task, columns, seeds: options.seeds.clone(), passed: 0 })
}

/// Reads the documents of a task.
fn documents(lines: &[DocumentLine], folder: &Path) -> Result<Vec<Document>, String> {
    let read = |line: &DocumentLine| match line {
        DocumentLine::Text(document) => Ok(document.clone()),
        DocumentLine::File(path) => {
            let place = folder.join(path);
            let wrong = |why: &dyn std::fmt::Display| format!("its document `{}`: {why}", place.display());
            // A pipe or a device may have no end, and to open one may take as long.
            if !std::fs::metadata(&place).map_err(|why| wrong(&why))?.is_file() {
                return Err(wrong(&"it is no file"));
            }
            let mut bytes = Vec::new();
            let file = std::fs::File::open(&place).map_err(|why| wrong(&why))?;
            file.take(LINE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|why| wrong(&why))?;
            if bytes.len() > LINE_BYTES_MAX {
                return Err(wrong(&format!("it is longer than {LINE_BYTES_MAX} bytes")));
            }
            let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not UTF-8"))?;
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
