//! The server from its start to its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::dispatch::{AppState, Dispatcher, KEYED, is_continued};
use super::error::ServeError;
use super::http::{Guard, listen};
use super::mcp::over_stdio;
use super::router::router;
use super::runs::{CancelledKeys, PastRun, ServedRoleset, ServerFiles, ServerRules, Service};
use crate::batch::{
    BatchError, BatchStats, Options, Pruned, ResultPlaces, Shard, ShardOf, TaskReader, UnfinishedRun,
    VariantSet, run,
};
use crate::engine::StopRequest;

/// The time that open calls have after the first request to stop.
const GRACE: Duration = Duration::from_secs(30);

/// The most time from the newest record to a clock that is believed.
const CLOCK_AHEAD_MAX: Duration = Duration::from_hours(365 * 24);

/// Everything that a server starts from.
#[derive(Debug)]
pub struct ServeRequest {
    /// The folder of the runs.
    pub folder: PathBuf,
    /// The rules by which requests are heard.
    pub guard: Guard,
    /// The rolesets that are served.
    pub rolesets: Vec<ServedRoleset>,
    /// The names of the models on which callers may put a roleset; `*` stands for all.
    pub allowed: Vec<String>,
    /// The most runs that wait for their turn.
    pub queue: usize,
    /// The options of the runs.
    pub options: Options,
}

/// The way by which requests come.
#[derive(Debug)]
pub enum WayIn {
    /// Many clients over HTTP.
    Http(TcpListener),
    /// One client of the Model Context Protocol, on standard input and output. The server stops when it has gone.
    Stdio,
}

impl WayIn {
    /// Lets requests come until `stopped`. Those under way are answered until `ended`.
    async fn open(self, app: AppState, stopped: impl Future<Output = ()>, ended: impl Future<Output = ()>) {
        match self {
            Self::Http(listener) => listen(listener, router(app), stopped, ended).await,
            Self::Stdio => over_stdio(app, ended).await,
        }
    }
}

/// The end of a server.
#[derive(Debug)]
pub struct ServerEnd {
    /// The figures of its runs.
    pub figures: BatchStats,
    /// The number of runs that were put down, and go on when the next server starts.
    pub left: u64,
}

/// The end of a request to remove old runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pruning {
    /// These runs were removed.
    Done(Pruned),
    /// Nothing was removed, because the clock is more than a year ahead of the newest record.
    ClockAhead {
        /// The time of the newest record.
        newest: SystemTime,
    },
}

/// Removes the runs of requests whose last record is older than `keep` from the folder of a server that does not run. The age is counted
/// from `now`, or from the newest record of the folder if that is earlier: a clock that is ahead makes no run old.
///
/// Returns [`BatchError`], also if another process has the folder open.
pub fn prune(folder: &Path, now: SystemTime, keep: Duration) -> Result<Pruning, BatchError> {
    let newest = newest_record(folder)?.unwrap_or(now);
    if now.duration_since(newest).is_ok_and(|ahead| ahead > CLOCK_AHEAD_MAX) {
        return Ok(Pruning::ClockAhead { newest });
    }
    let before = now.min(newest).checked_sub(keep).unwrap_or(SystemTime::UNIX_EPOCH);
    crate::batch::prune(folder, before, request_of).map(Pruning::Done)
}

/// Returns the time of the newest record of a folder, if it has one.
fn newest_record(folder: &Path) -> Result<Option<SystemTime>, BatchError> {
    let shard = Shard::open(folder, ShardOf::default())?;
    let mut newest: Option<SystemTime> = None;
    let mut ended = ResultPlaces::open(folder, ShardOf::default().index, |_| false)?;
    ended.read_new(|row| {
        newest = newest.max(PastRun::of_row(row).and_then(|run| parse_time(&run.ended_at)));
    })?;
    for run in shard.unfinished()? {
        newest = newest.max(parse_time(&run.last_at));
    }
    Ok(newest)
}

fn parse_time(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}

/// Returns the runs of requests that earlier servers have put down before their end, and that do not go on.
fn find_interrupted(unfinished: &[UnfinishedRun], cancelled: &CancelledKeys) -> Vec<PastRun> {
    let mut found = Vec::new();
    for run in unfinished {
        let Some(cell) = &run.spec.cell else { continue };
        let is_of_request = request_of(&cell.task).is_some();
        if is_of_request && !run.has_ended && !is_continued(cell, cancelled) {
            found.extend(PastRun::of_unfinished(run));
        }
    }
    found
}

/// Returns the request of a task, whose id is that of a key or made up by the server. The attempts of one key are one request.
fn request_of(task: &str) -> Option<&str> {
    match task.strip_prefix(KEYED) {
        Some(attempt) => Some(attempt.split('-').next().unwrap_or(attempt)),
        None => Uuid::try_parse(task).is_ok().then_some(task),
    }
}

/// Serves requests until `stop` says so. Runs that are under way then are put down after their open calls, and those with a key go on
/// when the next server starts.
///
/// Returns [`ServeError`]; durable records remain.
pub async fn serve(
    request: ServeRequest,
    shard: &mut Shard,
    variants: &VariantSet,
    way_in: WayIn,
    asked_to_stop: watch::Receiver<StopRequest>,
) -> Result<ServerEnd, ServeError> {
    let ServeRequest { folder, guard, rolesets, allowed, queue, options } = request;
    let ended = ResultPlaces::open(&folder, options.shard.index, |task| task.starts_with(KEYED))?;
    let cancelled = CancelledKeys::open(&folder)?;
    let guard = guard.in_folder(&folder)?;
    let unfinished = shard.unfinished()?;
    let interrupted = find_interrupted(&unfinished, &cancelled);
    let files = ServerFiles { ended, records: shard.run_places()?, written: shard.written(), cancelled };
    let places = queue + options.concurrency;
    let (requests_in, requests) = mpsc::channel(places);
    let (lines_in, lines) = mpsc::channel(1);
    let rules = ServerRules { guard, rolesets, allowed };
    let service = Arc::new(Service::new(rules, places, files, &unfinished, interrupted)?);
    let options = Options { gives_up: false, ..options };
    let dispatcher = Dispatcher::new(Arc::clone(&service), variants, Arc::clone(&options.clients));
    let (stop_in, stop) = watch::channel(StopRequest::None);
    let (over, mut is_over) = watch::channel(false);
    let (mut stopping, mut ending) = (stop.clone(), is_over.clone());
    let stopped = async move {
        tokio::select! {
            _ = stopping.wait_for(|request| *request != StopRequest::None) => {}
            _ = ending.wait_for(|is_over| *is_over) => {}
        }
    };
    let all_ended = async move { drop(is_over.wait_for(|is_over| *is_over).await) };
    let app = AppState { service: Arc::clone(&service), requests: requests_in };
    let mut answers = tokio::spawn(way_in.open(app, stopped, all_ended));
    let runs = run(shard, TaskReader::new(lines), None, options, stop.clone(), &service);
    let beside = async {
        tokio::join!(
            dispatcher.run(unfinished, requests),
            service.feed(lines_in),
            stop_when_asked(asked_to_stop, &mut answers, stop_in),
            put_down(&service, stop)
        )
    };
    let figures = tokio::select! {
        figures = runs => figures,
        _ = beside => unreachable!("it never ends"),
    };
    // Requests learn of the ends of their runs before the connections are closed.
    service.end_all();
    over.send_replace(true);
    if !answers.is_finished() {
        let _ = answers.await;
    }
    Ok(ServerEnd { figures: figures?, left: service.state().left.len() as u64 })
}

/// Passes requests to stop on. No request can come any more once the way in is closed, so that is a request to stop too. It never ends.
async fn stop_when_asked(
    mut asked: watch::Receiver<StopRequest>,
    way_in: &mut JoinHandle<()>,
    stop: watch::Sender<StopRequest>,
) {
    let mut is_closed = false;
    loop {
        tokio::select! {
            _ = &mut *way_in, if !is_closed => is_closed = true,
            // Its sender lives as long as the process.
            _ = asked.changed() => {}
        }
        let asked = *asked.borrow_and_update();
        stop.send_replace(if is_closed { asked.max(StopRequest::Finish) } else { asked });
    }
}

/// Puts the runs down once the server is to stop. It never ends.
async fn put_down(service: &Arc<Service>, mut stop: watch::Receiver<StopRequest>) {
    let request = stop.wait_for(|request| *request != StopRequest::None).await;
    service.stop_all(request.map_or(StopRequest::Abort, |request| *request));
    // A model that never answers does not keep the server.
    let _ = tokio::time::timeout(GRACE, stop.wait_for(|request| *request == StopRequest::Abort)).await;
    service.stop_all(StopRequest::Abort);
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task of a batch belongs to no request.
    #[test]
    fn attempts_of_key_are_one_request() {
        assert_eq!(request_of("key-0a1b"), request_of("key-0a1b-2"));
        assert_ne!(request_of("key-0a1b"), request_of("key-0a1c"));
        let without_key = Uuid::now_v7().to_string();
        assert_eq!(request_of(&without_key), Some(without_key.as_str()));
        assert_eq!(request_of("gsm8k-7"), None);
    }
}
