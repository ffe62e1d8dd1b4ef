//! The state that the requests, the intake and the runs of a server share.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, mpsc, watch};
use uuid::Uuid;

use super::allowances::{Spending, date};
use super::api_error::ApiError;
use super::caller::Caller;
use super::cancelled::CancelledKeys;
use super::error::ServeError;
use super::figures::ServerFigures;
use super::live_run::{LiveRun, RunEnd, RunProgress};
use super::past_run::{InterruptedRuns, PastRun};
use super::rules::ServerRules;
use super::shared_room::SharedRoom;
use crate::batch::{
    BatchError, BatchStats, Line, Onlooker, ResultLine, ResultPlaces, UnfinishedRun, Watcher,
};
use crate::engine::{EngineError, RunEvent, StopRequest};
use crate::journal::RunPlaces;
use crypto::Digest;

/// The seconds of a day.
const DAY_SECONDS: u64 = 86_400;

/// The memory for requests while they are read and parsed, and for what is kept of them, in bytes.
const MEMORY_BYTES: usize = 256 << 20;

/// The files of the folder, as far as the server reads them while runs go on.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) ended: ResultPlaces,
    pub(super) records: RunPlaces,
    /// The number of lines of the journal that are written.
    pub(super) written: watch::Receiver<u64>,
    pub(super) cancelled: CancelledKeys,
    /// The runs that earlier servers have put down before their end, and that do not go on.
    pub(super) interrupted: Vec<PastRun>,
}

/// The state that all parts of the server share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) rules: ServerRules,
    /// The places for runs that wait or are under way.
    pub(super) places: Arc<SharedRoom>,
    /// The memory for requests.
    pub(super) memory: Arc<SharedRoom>,
    live: Mutex<HashMap<Uuid, Arc<LiveRun>>>,
    /// The lines of runs that wait for their turn, oldest first.
    waiting: Mutex<VecDeque<(Uuid, Line)>>,
    has_come: Notify,
    ended: Mutex<ResultPlaces>,
    /// The runs of each caller in the order of their ends, with those that were put down.
    own_ended: Mutex<HashMap<Digest, Vec<Uuid>>>,
    interrupted: Mutex<InterruptedRuns>,
    records: Mutex<RunPlaces>,
    /// The number of lines of the journal that are written.
    written: watch::Receiver<u64>,
    pub(super) figures: ServerFigures,
    spending: Mutex<Spending>,
    /// The tasks of runs with a key that were put down. Only the next server continues them.
    left: Mutex<HashSet<String>>,
    /// The tasks of runs with a key that cannot go on, and why.
    broken: Mutex<HashMap<String, ApiError>>,
    cancelled: Mutex<CancelledKeys>,
    /// The runs that were cancelled since the server was started, and whose they were.
    cancelled_runs: Mutex<HashMap<Uuid, Caller>>,
    /// Whether the runs that an earlier server has left are known.
    knows_all: watch::Sender<bool>,
}

impl Service {
    pub(super) fn new(
        rules: ServerRules,
        places: usize,
        Kept { mut ended, records, written, cancelled, interrupted }: Kept,
        unfinished: &[UnfinishedRun],
    ) -> Result<Self, ServeError> {
        let figures = ServerFigures::new()?;
        let (mut spending, mut past) = (Spending::default(), Vec::new());
        let today = today(SystemTime::now());
        ended.read_new(|row| {
            figures.ended(row);
            spending.recall(row, &today);
            past.extend(PastRun::of_row(row));
        })?;
        for run in unfinished {
            spending.recall_cut(run, &today);
        }
        let of_interrupted = interrupted.iter().map(|run| (run.run, run.caller)).collect();
        past.extend(interrupted);
        past.sort_by(|one, other| one.ended_at.cmp(&other.ended_at));
        let mut own_ended: HashMap<Digest, Vec<Uuid>> = HashMap::new();
        for run in past {
            own_ended.entry(run.caller.0).or_default().push(run.run);
        }
        let has_several_callers = rules.guard.has_several_callers();
        Ok(Self {
            rules,
            places: SharedRoom::new(places, has_several_callers),
            memory: SharedRoom::new(MEMORY_BYTES, has_several_callers),
            live: Mutex::default(),
            waiting: Mutex::default(),
            has_come: Notify::new(),
            ended: Mutex::new(ended),
            own_ended: Mutex::new(own_ended),
            interrupted: Mutex::new(InterruptedRuns::new(of_interrupted)),
            records: Mutex::new(records),
            written,
            figures,
            spending: Mutex::new(spending),
            left: Mutex::default(),
            broken: Mutex::default(),
            cancelled: Mutex::new(cancelled),
            cancelled_runs: Mutex::default(),
            knows_all: watch::Sender::new(false),
        })
    }

    /// Returns the runs that wait or are under way.
    pub(super) fn live(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<LiveRun>>> {
        locked(&self.live)
    }

    /// Returns the run with this id, if it waits or is under way and is this caller's.
    pub(super) fn live_of(&self, run: Uuid, caller: Caller) -> Option<Arc<LiveRun>> {
        self.live().get(&run).map(Arc::clone).filter(|live| live.origin.caller == caller)
    }

    /// Returns the lines of each run in the journal.
    pub(super) fn records(&self) -> MutexGuard<'_, RunPlaces> {
        locked(&self.records)
    }

    /// Waits until the last record of a run is in the journal, or the run has ended.
    pub(super) async fn recorded(&self, progress: &mut watch::Receiver<RunProgress>) {
        let recorded = progress.borrow_and_update().recorded;
        // A receiver that waits has seen all changes meanwhile, so another one waits for the end.
        let (mut written, mut end) = (self.written.clone(), progress.clone());
        tokio::select! {
            _ = written.wait_for(|written| *written >= recorded) => {}
            _ = end.wait_for(|progress| progress.end.is_some()) => {}
        }
    }

    /// Returns the figures of the server as text.
    pub(super) fn figures_text(&self) -> Result<String, prometheus::Error> {
        let (all, begun) = {
            let live = self.live();
            (live.len(), live.values().filter(|live| live.has_begun()).count())
        };
        self.figures.text(all - begun, begun)
    }

    /// Counts a run that a caller begins at this time, unless its allowance for the day is used up.
    pub(super) fn charge(&self, caller: Caller, now: SystemTime) -> Result<(), ApiError> {
        let allowance = self.rules.guard.allowance(caller);
        let charged = locked(&self.spending).begin(caller.0, allowance, &today(now));
        charged.map_err(|what| used_up(what, now))
    }

    /// Returns why a run that has waited may not begin any more, if its caller has used up its tokens meanwhile.
    fn is_late(&self, run: Uuid) -> Option<ApiError> {
        let origin = self.live().get(&run).map(|waiting| waiting.origin.clone())?;
        if origin.is_old {
            // It has begun before, and goes on.
            return None;
        }
        let (caller, now) = (origin.caller, SystemTime::now());
        let allowance = self.rules.guard.allowance(caller);
        let has_room = locked(&self.spending).has_tokens(caller.0, allowance, &today(now));
        (!has_room).then(|| used_up("tokens", now))
    }

    /// Returns the places of the results of ended runs.
    pub(super) fn ended(&self) -> MutexGuard<'_, ResultPlaces> {
        locked(&self.ended)
    }

    /// Returns the runs of a caller that ended before `after`, or all, the last one first: `limit` at most. Returns also whether there are
    /// more. There is no run before one of another caller.
    pub(super) fn own_ended(&self, caller: Caller, after: Option<Uuid>, limit: usize) -> (Vec<Uuid>, bool) {
        let own_ended = locked(&self.own_ended);
        let own = own_ended.get(&caller.0).map_or(&[][..], Vec::as_slice);
        let before = match after {
            Some(after) => own.iter().rposition(|run| *run == after).unwrap_or_default(),
            None => own.len(),
        };
        let first = before.saturating_sub(limit);
        (own[first..before].iter().rev().copied().collect(), first > 0)
    }

    /// Returns the runs that were put down before their end, and do not go on.
    pub(super) fn interrupted(&self) -> MutexGuard<'_, InterruptedRuns> {
        locked(&self.interrupted)
    }

    /// Keeps a run in the list of its caller that was put down before its end, and does not go on.
    fn note_interrupted(&self, live: &LiveRun) {
        let (run, caller) = (live.origin.run, live.origin.caller);
        // A run that is not on record has used nothing.
        if live.is_on_record() && self.interrupted().add(run, caller) {
            locked(&self.own_ended).entry(caller.0).or_default().push(run);
        }
    }

    /// Returns the cancelled keys.
    pub(super) fn cancelled(&self) -> MutexGuard<'_, CancelledKeys> {
        locked(&self.cancelled)
    }

    /// Declares that the runs that an earlier server has left are known.
    pub(super) fn know_all(&self) {
        self.knows_all.send_replace(true);
    }

    /// Waits until the runs that an earlier server has left are known.
    pub(super) async fn known(&self) {
        // The sender lives as long as this does.
        let _ = self.knows_all.subscribe().wait_for(|knows_all| *knows_all).await;
    }

    /// Returns whether a caller has cancelled this run since the server was started.
    pub(super) fn was_cancelled(&self, run: Uuid, caller: Caller) -> bool {
        locked(&self.cancelled_runs).get(&run) == Some(&caller)
    }

    /// Returns the tasks whose runs go on when the next server starts.
    pub(super) fn left(&self) -> MutexGuard<'_, HashSet<String>> {
        locked(&self.left)
    }

    /// Returns why the run of this task cannot go on, if it cannot.
    pub(super) fn why_broken(&self, task: &str) -> Option<ApiError> {
        locked(&self.broken).get(task).cloned()
    }

    /// Adds a run that waits for its turn.
    pub(super) fn add(&self, added: Arc<LiveRun>, line: Line) {
        let run = added.origin.run;
        self.live().insert(run, added);
        locked(&self.waiting).push_back((run, line));
        self.has_come.notify_one();
    }

    /// Hands the lines of waiting runs to the scheduler, one whenever it can take one.
    pub(super) async fn feed(&self, lines: mpsc::Sender<std::io::Result<Line>>) {
        while let Ok(room) = lines.reserve().await {
            let line = loop {
                let come = self.has_come.notified();
                let next = locked(&self.waiting).pop_front();
                let Some((run, line)) = next else {
                    come.await;
                    continue;
                };
                match self.is_late(run) {
                    Some(why) => self.end(run, |_| RunEnd::WithoutResult(why)),
                    None => break line,
                }
            };
            room.send(Ok(line));
        }
    }

    /// Asks a run to stop. One that has not begun ends at once, and its place is free.
    pub(super) fn stop(self: &Arc<Self>, live: &LiveRun, request: StopRequest) {
        live.stop(request);
        self.end_unless_begun(live);
    }

    /// Ends a run for good.
    pub(super) fn cancel(self: &Arc<Self>, live: &LiveRun) -> std::io::Result<()> {
        if live.origin.keyed.is_some() {
            self.cancelled().add(&live.origin.task)?;
        }
        locked(&self.cancelled_runs).insert(live.origin.run, live.origin.caller);
        live.cancel();
        self.end_unless_begun(live);
        Ok(())
    }

    fn end_unless_begun(self: &Arc<Self>, live: &LiveRun) {
        let run = live.origin.run;
        locked(&self.waiting).retain(|(other, _)| *other != run);
        // The scheduler may hold its line already, and begins no run that is stopped.
        if !live.has_begun() {
            self.put_down(run);
        }
    }

    /// Asks all runs to stop. Those that still wait end at once.
    pub(super) fn stop_all(self: &Arc<Self>, request: StopRequest) {
        locked(&self.waiting).clear();
        let live: Vec<Arc<LiveRun>> = self.live().values().map(Arc::clone).collect();
        for live in live {
            live.stop(request);
            // The scheduler begins no run that is stopped.
            if !live.has_begun() {
                self.end(live.origin.run, LiveRun::put_down);
            }
        }
    }

    /// Ends the wait of all requests whose runs never began.
    pub(super) fn end_all(&self) {
        let waiting = std::mem::take(&mut *self.live());
        for live in waiting.into_values() {
            live.end(live.put_down());
        }
    }

    /// Ends the wait of all requests for a run.
    fn end(&self, run: Uuid, end: impl FnOnce(&LiveRun) -> RunEnd) {
        // The run has left the list before its place is free for another.
        let live = self.live().remove(&run);
        if let Some(live) = live {
            if !live.is_on_record() {
                locked(&self.spending).take_back(live.origin.caller.0, &today(live.since));
            }
            live.end(end(&live));
        }
    }
}

impl Onlooker for Service {
    fn on_event(&self, run: Uuid, event: &RunEvent<'_>) {
        if matches!(event, RunEvent::Writing) {
            return;
        }
        let live = self.live().get(&run).map(Arc::clone);
        let Some(live) = live else { return };
        if let RunEvent::Answered { usage, .. } = event
            && live.origin.caller != Caller::ANYONE
        {
            let tokens = usage.prompt.saturating_add(usage.completion);
            locked(&self.spending).charge(live.origin.caller.0, tokens, &today(SystemTime::now()));
        }
        live.take(event);
    }
}

impl Watcher for Arc<Service> {
    fn refused(&self, _number: u64, id: Option<&str>, why: &str) {
        let is_it = |live: &&Arc<LiveRun>| id == Some(live.origin.task.as_str());
        let run = self.live().values().find(is_it).map(|live| live.origin.run);
        if let Some(run) = run {
            self.end(run, |_| RunEnd::WithoutResult(ApiError::bad("invalid_task", why)));
        }
    }

    fn ended(&self, row: &ResultLine) {
        if let Ok(run) = row.result.run.parse() {
            self.had_ended(run);
        }
    }

    fn had_ended(&self, run: Uuid) {
        let mut ended = self.as_ref().ended();
        let read = ended.read_new(|row| {
            self.figures.ended(row);
            if let Some(PastRun { run, caller, .. }) = PastRun::of_row(row) {
                locked(&self.own_ended).entry(caller.0).or_default().push(run);
            }
        });
        let row = read.and_then(|()| ended.line_of(run));
        drop(ended);
        self.end(run, |_| match row {
            Ok(row) => RunEnd::WithResult(Arc::new(row.unwrap_or_default())),
            Err(why) => RunEnd::WithoutResult(ApiError::internal(&why)),
        });
    }

    fn put_down(&self, run: Uuid) {
        let live = self.live().get(&run).map(Arc::clone);
        if let Some(live) = live {
            if live.origin.keyed.is_some() && !live.is_cancelled() {
                self.left().insert(live.origin.task.clone());
            } else {
                self.note_interrupted(&live);
            }
        }
        self.end(run, LiveRun::put_down);
    }

    fn broken(&self, run: Uuid, why: &BatchError) {
        tracing::error!(%run, "{why}");
        let Some(live) = self.live().get(&run).map(Arc::clone) else { return };
        // A run that is not on record has paid for nothing, so its key may begin another.
        let why = if live.is_on_record() {
            ApiError::broken()
        } else if matches!(why, BatchError::Engine(EngineError::Provider { .. })) {
            let why = "the models cannot be called, and the log of the server says why";
            ApiError::provider(why, true)
        } else {
            ApiError::internal(why)
        };
        if live.is_on_record() && live.origin.keyed.is_some() {
            locked(&self.broken).insert(live.origin.task.clone(), why.clone());
        }
        self.note_interrupted(&live);
        self.end(run, |_| RunEnd::WithoutResult(why));
    }

    fn so_far(&self, figures: &BatchStats) {
        tracing::debug!(under_way = figures.under_way, ended = figures.ended.all(), "runs");
    }
}

/// Returns the date of a time, as it is written.
fn today(now: SystemTime) -> String {
    let now = humantime::format_rfc3339_seconds(now).to_string();
    date(&now).to_owned()
}

fn used_up(what: &str, now: SystemTime) -> ApiError {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    ApiError::used_up(what, DAY_SECONDS - since % DAY_SECONDS)
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds one of these locks panics.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
