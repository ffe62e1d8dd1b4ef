//! The state that the requests, the dispatcher and the runs of a server share.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use uuid::Uuid;

use super::cancelled::CancelledKeys;
use super::figures::ServerFigures;
use super::live_run::{LiveRun, RunEnd, RunProgress};
use super::past_run::PastRun;
use super::rules::ServerRules;
use super::spending::{Spending, date};
use crate::batch::{BatchError, BatchObserver, BatchStats, ResultLine, ResultPlaces, TaskRow, UnfinishedRun};
use crate::engine::{EngineError, RunEvent, RunObserver, StopRequest};
use crate::journal::RunPlaces;
use crate::serve::error::ServeError;
use crate::serve::http::{ApiError, Caller, SharedRoom};
use crypto::Digest;

/// The seconds of a day.
const DAY_SECONDS: u64 = 86_400;

/// The memory for requests while they are read and parsed, and for what is kept of them, in bytes.
const MEMORY_BYTES: usize = 256 << 20;

/// The files of the folder, from which a server starts.
#[derive(Debug)]
pub(in crate::serve) struct ServerFiles {
    pub(in crate::serve) ended: ResultPlaces,
    pub(in crate::serve) records: RunPlaces,
    /// The number of lines of the journal that are written.
    pub(in crate::serve) written: watch::Receiver<u64>,
    pub(in crate::serve) cancelled: CancelledKeys,
}

/// The state of a server that changes while it runs. Every event of a run takes its lock, so it is held neither over an `await` nor over
/// a file.
#[derive(Debug)]
pub(in crate::serve) struct ServerState {
    /// The runs that wait or are under way.
    pub(in crate::serve) live: HashMap<Uuid, Arc<LiveRun>>,
    /// The lines of runs that wait for their turn, oldest first.
    waiting: VecDeque<(Uuid, TaskRow)>,
    /// The runs of each caller in the order of their ends, with those that were put down.
    own_ended: HashMap<Digest, Vec<Uuid>>,
    /// The runs that were put down before their end and do not go on, each with its caller.
    pub(in crate::serve) interrupted: HashMap<Uuid, Caller>,
    /// The rows of interrupted runs that were made of their records.
    pub(super) interrupted_rows: HashMap<Uuid, Value>,
    spending: Spending,
    /// The tasks of runs with a key that were put down. Only the next server continues them.
    pub(in crate::serve) left: HashSet<String>,
    /// The tasks of runs with a key that cannot go on, and why.
    pub(in crate::serve) broken: HashMap<String, ApiError>,
    /// The runs that were cancelled since the server was started, and whose they were.
    pub(super) cancelled_runs: HashMap<Uuid, Caller>,
}

/// The parts that all requests and runs of the server share.
#[derive(Debug)]
pub(in crate::serve) struct Service {
    pub(in crate::serve) rules: ServerRules,
    /// The places for runs that wait or are under way.
    pub(in crate::serve) places: Arc<SharedRoom>,
    /// The memory for requests.
    pub(in crate::serve) memory: Arc<SharedRoom>,
    pub(in crate::serve) figures: ServerFigures,
    state: Mutex<ServerState>,
    /// The lines of each run in the journal. Each file has a lock of its own, and no other lock is taken meanwhile.
    records: Mutex<RunPlaces>,
    /// The places of the results of ended runs.
    ended: Mutex<ResultPlaces>,
    cancelled: Mutex<CancelledKeys>,
    /// The number of lines of the journal that are written.
    written: watch::Receiver<u64>,
    has_come: Notify,
    /// Whether the runs that an earlier server has left are known.
    knows_all: watch::Sender<bool>,
}

impl Service {
    /// Makes the service of a folder with these unfinished runs, of which `interrupted` do not go on.
    pub(in crate::serve) fn new(
        rules: ServerRules,
        places: usize,
        files: ServerFiles,
        unfinished: &[UnfinishedRun],
        interrupted: Vec<PastRun>,
    ) -> Result<Self, ServeError> {
        let ServerFiles { mut ended, records, written, cancelled } = files;
        let figures = ServerFigures::new()?;
        let (mut spending, mut past) = (Spending::default(), Vec::new());
        let today = today(SystemTime::now());
        ended.read_new(|row| {
            figures.count_run(row);
            if let Some(run) = PastRun::of_row(row) {
                spending.recall(&run, &today);
                past.push(run);
            }
        })?;
        for run in unfinished.iter().filter_map(PastRun::of_unfinished) {
            spending.recall(&run, &today);
        }
        let callers = interrupted.iter().map(|run| (run.run, run.caller)).collect();
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
            figures,
            state: Mutex::new(ServerState {
                live: HashMap::new(),
                waiting: VecDeque::new(),
                own_ended,
                interrupted: callers,
                interrupted_rows: HashMap::new(),
                spending,
                left: HashSet::new(),
                broken: HashMap::new(),
                cancelled_runs: HashMap::new(),
            }),
            records: Mutex::new(records),
            ended: Mutex::new(ended),
            cancelled: Mutex::new(cancelled),
            written,
            has_come: Notify::new(),
            knows_all: watch::Sender::new(false),
        })
    }

    /// Locks the state.
    pub(in crate::serve) fn state(&self) -> MutexGuard<'_, ServerState> {
        // No code that holds the lock panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the places of the lines of each run in the journal.
    pub(in crate::serve) fn records(&self) -> MutexGuard<'_, RunPlaces> {
        // No code that holds the lock panics.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the results of ended runs.
    pub(in crate::serve) fn ended(&self) -> MutexGuard<'_, ResultPlaces> {
        // No code that holds the lock panics.
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the cancelled keys.
    pub(in crate::serve) fn cancelled(&self) -> MutexGuard<'_, CancelledKeys> {
        // No code that holds the lock panics.
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the run with this id, if it waits or is under way.
    fn live_run(&self, run: Uuid) -> Option<Arc<LiveRun>> {
        self.state().live.get(&run).map(Arc::clone)
    }

    /// Returns the runs of a caller that wait or are under way.
    pub(in crate::serve) fn live_runs_of(&self, caller: Caller) -> Vec<Arc<LiveRun>> {
        let state = self.state();
        state.live.values().filter(|live| live.origin.caller == caller).map(Arc::clone).collect()
    }

    /// Waits until the last record of a run is in the journal, or the run has ended.
    pub(in crate::serve) async fn wait_until_recorded(&self, progress: &mut watch::Receiver<RunProgress>) {
        let recorded = progress.borrow_and_update().recorded;
        // A receiver that waits has seen all changes meanwhile, so another one waits for the end.
        let (mut written, mut end) = (self.written.clone(), progress.clone());
        tokio::select! {
            _ = written.wait_for(|written| *written >= recorded) => {}
            _ = end.wait_for(|progress| progress.end.is_some()) => {}
        }
    }

    /// Returns the figures of the server as text.
    pub(in crate::serve) fn figures_text(&self) -> Result<String, prometheus::Error> {
        let (all, begun) = {
            let state = self.state();
            (state.live.len(), state.live.values().filter(|live| live.has_begun()).count())
        };
        self.figures.text(all - begun, begun)
    }

    /// Counts a run that a caller begins at this time, unless its allowance for the day is used up.
    pub(in crate::serve) fn charge(&self, caller: Caller, now: SystemTime) -> Result<(), ApiError> {
        let allowance = self.rules.guard.allowance(caller);
        let charged = self.state().spending.begin(caller.0, allowance, &today(now));
        charged.map_err(|what| used_up(what, now))
    }

    /// Returns why a run that has waited may not begin any more, if its caller has used up its tokens meanwhile.
    fn why_too_late(&self, run: Uuid) -> Option<ApiError> {
        let origin = self.live_run(run)?.origin.clone();
        if origin.is_old {
            // It has begun before, and goes on.
            return None;
        }
        let (caller, now) = (origin.caller, SystemTime::now());
        let allowance = self.rules.guard.allowance(caller);
        if self.state().spending.has_tokens(caller.0, allowance, &today(now)) {
            return None;
        }
        Some(used_up("tokens", now))
    }

    /// Returns the runs of a caller that ended before `after`, or all, the last one first: `limit` at most. Returns also whether there are
    /// more. There is no run before one of another caller.
    pub(in crate::serve) fn past_runs_of(
        &self,
        caller: Caller,
        after: Option<Uuid>,
        limit: usize,
    ) -> (Vec<Uuid>, bool) {
        let state = self.state();
        let own = state.own_ended.get(&caller.0).map_or(&[][..], Vec::as_slice);
        let before = match after {
            Some(after) => own.iter().rposition(|run| *run == after).unwrap_or_default(),
            None => own.len(),
        };
        let first = before.saturating_sub(limit);
        (own[first..before].iter().rev().copied().collect(), first > 0)
    }

    /// Keeps a run in the list of its caller that was put down before its end, and does not go on.
    fn note_interrupted(&self, live: &LiveRun) {
        // A run that is not on record has used nothing.
        if !live.is_on_record() {
            return;
        }
        let (run, caller) = (live.origin.run, live.origin.caller);
        let mut state = self.state();
        if state.interrupted.insert(run, caller).is_none() {
            state.own_ended.entry(caller.0).or_default().push(run);
        }
    }

    /// Declares that the runs that an earlier server has left are known.
    pub(in crate::serve) fn know_all(&self) {
        self.knows_all.send_replace(true);
    }

    /// Waits until the runs that an earlier server has left are known.
    pub(super) async fn wait_until_known(&self) {
        // The sender lives as long as this does.
        let _ = self.knows_all.subscribe().wait_for(|knows_all| *knows_all).await;
    }

    /// Adds a run that waits for its turn.
    pub(in crate::serve) fn add(&self, added: Arc<LiveRun>, line: TaskRow) {
        let run = added.origin.run;
        {
            let mut state = self.state();
            state.live.insert(run, added);
            state.waiting.push_back((run, line));
        }
        self.has_come.notify_one();
    }

    /// Hands the lines of waiting runs to the scheduler, one whenever it can take one.
    pub(in crate::serve) async fn feed(&self, lines: mpsc::Sender<std::io::Result<TaskRow>>) {
        while let Ok(room) = lines.reserve().await {
            let line = loop {
                let come = self.has_come.notified();
                let next = self.state().waiting.pop_front();
                let Some((run, line)) = next else {
                    come.await;
                    continue;
                };
                match self.why_too_late(run) {
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
    pub(in crate::serve) fn cancel(self: &Arc<Self>, live: &LiveRun) -> std::io::Result<()> {
        if live.origin.keyed.is_some() {
            self.cancelled().add(&live.origin.task)?;
        }
        self.state().cancelled_runs.insert(live.origin.run, live.origin.caller);
        live.cancel();
        self.end_unless_begun(live);
        Ok(())
    }

    fn end_unless_begun(self: &Arc<Self>, live: &LiveRun) {
        let run = live.origin.run;
        self.state().waiting.retain(|(other, _)| *other != run);
        // The scheduler may hold its line already, and begins no run that is stopped.
        if !live.has_begun() {
            self.on_put_down(run);
        }
    }

    /// Asks all runs to stop. Those that still wait end at once.
    pub(in crate::serve) fn stop_all(self: &Arc<Self>, request: StopRequest) {
        let live: Vec<Arc<LiveRun>> = {
            let mut state = self.state();
            state.waiting.clear();
            state.live.values().map(Arc::clone).collect()
        };
        for live in live {
            live.stop(request);
            // The scheduler begins no run that is stopped.
            if !live.has_begun() {
                self.end(live.origin.run, LiveRun::put_down);
            }
        }
    }

    /// Ends the wait of all requests whose runs never began.
    pub(in crate::serve) fn end_all(&self) {
        let waiting = std::mem::take(&mut self.state().live);
        for live in waiting.into_values() {
            live.end(live.put_down());
        }
    }

    /// Ends the wait of all requests for a run.
    fn end(&self, run: Uuid, end: impl FnOnce(&LiveRun) -> RunEnd) {
        let live = {
            let mut state = self.state();
            let Some(live) = state.live.remove(&run) else { return };
            if !live.is_on_record() {
                state.spending.take_back(live.origin.caller.0, &today(live.since));
            }
            live
        };
        // The run has left the list before its place is free for another.
        live.end(end(&live));
    }
}

/// The observer of a run of the server.
struct ServedRun {
    service: Arc<Service>,
    run: Uuid,
}

impl RunObserver for ServedRun {
    fn on_event(&self, event: RunEvent<'_>) {
        if matches!(event, RunEvent::Writing) {
            return;
        }
        let Some(live) = self.service.live_run(self.run) else { return };
        if let RunEvent::Answered { usage, .. } = event
            && live.origin.caller != Caller::ANYONE
        {
            let tokens = usage.prompt.saturating_add(usage.completion);
            self.service.state().spending.charge(live.origin.caller.0, tokens, &today(SystemTime::now()));
        }
        live.on_event(&event);
    }
}

impl BatchObserver for Arc<Service> {
    fn on_refusal(&self, _number: u64, id: Option<&str>, why: &str) {
        let Some(id) = id else { return };
        let run = self.state().live.values().find(|live| live.origin.task == id).map(|live| live.origin.run);
        if let Some(run) = run {
            self.end(run, |_| RunEnd::WithoutResult(ApiError::bad("invalid_task", why)));
        }
    }

    fn on_end(&self, row: &ResultLine) {
        if let Ok(run) = row.result.run.parse() {
            self.on_earlier_end(run);
        }
    }

    fn on_earlier_end(&self, run: Uuid) {
        let mut past = Vec::new();
        let row = {
            let mut ended = self.ended();
            let read = ended.read_new(|row| {
                self.figures.count_run(row);
                past.extend(PastRun::of_row(row));
            });
            read.and_then(|()| ended.line_of(run))
        };
        for PastRun { run, caller, .. } in past {
            self.state().own_ended.entry(caller.0).or_default().push(run);
        }
        self.end(run, |_| match row {
            Ok(row) => RunEnd::WithResult(Arc::new(row.unwrap_or_default())),
            Err(why) => RunEnd::WithoutResult(ApiError::internal(&why)),
        });
    }

    fn on_put_down(&self, run: Uuid) {
        if let Some(live) = self.live_run(run) {
            if live.origin.keyed.is_some() && !live.is_cancelled() {
                self.state().left.insert(live.origin.task.clone());
            } else {
                self.note_interrupted(&live);
            }
        }
        self.end(run, LiveRun::put_down);
    }

    fn on_failure(&self, run: Uuid, why: &BatchError) {
        tracing::error!(%run, "{why}");
        let Some(live) = self.live_run(run) else { return };
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
            self.state().broken.insert(live.origin.task.clone(), why.clone());
        }
        self.note_interrupted(&live);
        self.end(run, |_| RunEnd::WithoutResult(why));
    }

    fn on_progress(&self, figures: &BatchStats) {
        tracing::debug!(under_way = figures.under_way, ended = figures.ended.all(), "runs");
    }

    fn observe_run(&self, run: Uuid) -> Box<dyn RunObserver + Send> {
        Box::new(ServedRun { service: Self::clone(self), run })
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
