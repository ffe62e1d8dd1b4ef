//! The state that the requests, the intake and the runs of a server share.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, mpsc, oneshot};
use uuid::Uuid;

use super::api_error::ApiError;
use super::cancelled::CancelledKeys;
use super::chat_request::ChatCompletionRequest;
use super::guard::Guard;
use super::live_run::{LiveRun, RunEnd};
use crate::batch::{BatchStats, Onlooker, ResultLine, ResultPlaces, Watcher};
use crate::crypto::Digest;
use crate::engine::{RunEvent, StopRequest};

/// A request that is to become a run.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) chat: ChatCompletionRequest,
    /// The id of the task, and the digest of the body, if the request has a key.
    pub(super) key: Option<(String, Digest)>,
    pub(super) created: u64,
    /// The way back to the request.
    pub(super) taken: oneshot::Sender<Result<Taken, ApiError>>,
}

/// The run that a request has become.
#[derive(Debug)]
pub(super) enum Taken {
    /// A run that is waiting or under way.
    Live(Arc<LiveRun>),
    /// A run that has ended before.
    Ended(Uuid),
}

/// The state that all parts of the server share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) guard: Guard,
    pub(super) submissions: mpsc::Sender<Submission>,
    /// The places for runs that wait or are under way.
    pub(super) places: Arc<Semaphore>,
    /// The names of the models.
    pub(super) models: Vec<String>,
    live: Mutex<HashMap<Uuid, Arc<LiveRun>>>,
    ended: Mutex<ResultPlaces>,
    /// The tasks of runs with a key that were put down. Only the next server continues them.
    left: Mutex<HashSet<String>>,
    cancelled: Mutex<CancelledKeys>,
}

impl Service {
    pub(super) fn new(
        guard: Guard,
        submissions: mpsc::Sender<Submission>,
        places: usize,
        models: Vec<String>,
        ended: ResultPlaces,
        cancelled: CancelledKeys,
    ) -> Self {
        let places = Arc::new(Semaphore::new(places));
        let (live, left) = (Mutex::default(), Mutex::default());
        let (ended, cancelled) = (Mutex::new(ended), Mutex::new(cancelled));
        Self { guard, submissions, places, models, live, ended, left, cancelled }
    }

    /// Returns the runs that wait or are under way.
    pub(super) fn live(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<LiveRun>>> {
        locked(&self.live)
    }

    /// Returns the places of the results of ended runs.
    pub(super) fn ended(&self) -> MutexGuard<'_, ResultPlaces> {
        locked(&self.ended)
    }

    /// Returns the cancelled keys.
    pub(super) fn cancelled(&self) -> MutexGuard<'_, CancelledKeys> {
        locked(&self.cancelled)
    }

    /// Returns the tasks whose runs go on when the next server starts.
    pub(super) fn left(&self) -> MutexGuard<'_, HashSet<String>> {
        locked(&self.left)
    }

    /// Asks all runs to stop.
    pub(super) fn stop_all(&self, request: StopRequest) {
        for live in self.live().values() {
            live.stop(request);
        }
    }

    /// Ends the wait of all requests whose runs never began.
    pub(super) fn end_all(&self) {
        let waiting = std::mem::take(&mut *self.live());
        for live in waiting.into_values() {
            live.end(RunEnd::Without(ApiError::put_down()));
        }
    }

    /// Ends the wait of all requests for a run.
    fn end(&self, run: Uuid, end: RunEnd) {
        // The run has left the list before its place is free for another.
        let live = self.live().remove(&run);
        if let Some(live) = live {
            live.end(end);
        }
    }
}

impl Onlooker for Service {
    fn on_event(&self, run: Uuid, event: &RunEvent<'_>) {
        // A streamed token is not worth a lock.
        if matches!(event, RunEvent::Streaming { .. } | RunEvent::Writing | RunEvent::Written(_)) {
            return;
        }
        let live = self.live().get(&run).map(Arc::clone);
        if let Some(live) = live {
            live.take(event);
        }
    }
}

impl Watcher for Arc<Service> {
    fn refused(&self, _number: u64, id: Option<&str>, why: &str) {
        let run = self.live().values().find(|live| id == Some(live.task.as_str())).map(|live| live.run);
        if let Some(run) = run {
            self.end(run, RunEnd::Without(ApiError::bad("invalid_task", why)));
        }
    }

    fn ended(&self, row: &ResultLine) {
        let found = self.as_ref().ended().read_new();
        if let Err(why) = found {
            tracing::error!("{why}");
        }
        let Ok(run) = row.result.run.parse() else { return };
        let row = serde_json::to_value(row);
        self.end(
            run,
            match row {
                Ok(row) => RunEnd::Told(Arc::new(row)),
                Err(why) => RunEnd::Without(ApiError::internal(&why)),
            },
        );
    }

    fn put_down(&self, run: Uuid) {
        let keyed = self.live().get(&run).filter(|live| live.keyed.is_some()).map(|live| live.task.clone());
        if keyed.as_ref().is_some_and(|task| self.as_ref().cancelled().has(task)) {
            return self.end(run, RunEnd::Without(ApiError::cancelled()));
        }
        self.left().extend(keyed);
        self.end(run, RunEnd::Without(ApiError::put_down()));
    }

    fn so_far(&self, figures: &BatchStats) {
        tracing::debug!(under_way = figures.under_way, ended = figures.ended.all(), "runs");
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is a single insertion or removal, so nothing is half done after a panic.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
