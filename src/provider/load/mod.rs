//! Flow control: how many requests a server gets at once, and which of several gets the next one.
//!
//! In: requests that want to be sent, and how each of them went. Out: a permit for one server, in the order in which requests have come.
//! What is decided is decided by [`Limit`] and [`Pool`], which know no clock; here it is awaited. Nothing is known of what a
//! request is about, but which server its conversation was on before.

mod adaptive_limit;
mod server_pool;

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adaptive_limit::{Limit, LoadSign};
use server_pool::{End, Pool};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ProviderError;

/// More than anybody sends at once.
const UNBOUNDED: usize = 1 << 20;

/// How many requests a server gets at first that is somebody else's. One's own, which is called over plain HTTP, queues what it cannot
/// do yet and gets as many as there may be.
const START: usize = 32;

/// How many requests one server is given at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flow {
    /// At most.
    pub max: usize,
}

/// The way to the servers of one provider.
#[derive(Debug)]
pub(super) struct Admission {
    pool: Mutex<Pool>,
    /// Whoever is first in the line holds it, and looks for room.
    line: tokio::sync::Mutex<()>,
    freed: Notify,
    /// What the last fault of a server was.
    fault: Mutex<String>,
}

/// Leave to send one request; its room is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    admission: &'a Admission,
    server: usize,
    sent: Instant,
    /// When the answer began.
    answered: Cell<Option<Instant>>,
    end: Option<End>,
}

/// Where a conversation is at home: the server that has its beginning in its cache.
#[derive(Debug, Default)]
pub(super) struct Home(Cell<Option<usize>>);

impl Home {
    /// Sends a request of this conversation once its turn has come, and notes how it went; without an admission its turn is at once, and
    /// the server is the first. `None` if `quit` comes before: nothing was sent, and nothing will be.
    pub(super) async fn send<T>(
        &self,
        admission: Option<&Admission>,
        quit: impl Future<Output = ()>,
        send: impl AsyncFnOnce(Option<&Permit<'_>>) -> Result<T, ProviderError>,
    ) -> Option<Result<T, ProviderError>> {
        let Some(admission) = admission else { return Some(send(None).await) };
        let permit = tokio::select! {
            permit = admission.enter(self.0.get()) => permit,
            () = quit => return None,
        };
        self.0.set(Some(permit.server));
        let result = send(Some(&permit)).await;
        permit.end(&result);
        Some(result)
    }
}

impl Admission {
    /// A way to these servers, if there is anything to decide: how many requests at once, or which of several.
    pub(super) fn new(
        base_urls: impl Iterator<Item = impl AsRef<str>>,
        flow: Option<Flow>,
        calls_at_once: Option<NonZeroU32>,
    ) -> Option<Self> {
        let of_others: Vec<bool> = base_urls.map(|url| url.as_ref().starts_with("https:")).collect();
        // Where a run alone is counted, the engine does it.
        let unbounded = Flow { max: UNBOUNDED };
        let Flow { max } = flow.or((of_others.len() > 1).then_some(unbounded))?;
        let max = calls_at_once.map_or(max, |calls| max.min(calls.get() as usize));
        let limit = |is_others: &bool| Limit::new(if *is_others { START } else { max }, max);
        let pool = Mutex::new(Pool::new(of_others.iter().map(limit)));
        Some(Self { pool, line: tokio::sync::Mutex::new(()), freed: Notify::new(), fault: Mutex::default() })
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // Nobody panics while holding it, and what it holds are counts.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong, if every server was left out so many times since it was last well.
    pub(super) fn lost(&self, outs: u32) -> Option<String> {
        let fault = || self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.pool().outs() >= outs).then(fault)
    }

    /// Waits for leave to send a request of a conversation that was on the server `home`.
    async fn enter(&self, home: Option<usize>) -> Permit<'_> {
        let _first = self.line.lock().await;
        loop {
            let freed = self.freed.notified();
            let now = Instant::now();
            let (server, trial) = {
                let mut pool = self.pool();
                (pool.take(now, home), pool.next_trial(now))
            };
            if let Some(server) = server {
                return Permit { admission: self, server, sent: now, answered: Cell::new(None), end: None };
            }
            tokio::select! {
                () = freed => {}
                () = at(trial) => {}
            }
        }
    }
}

impl Permit<'_> {
    /// Which server it is for.
    pub(super) fn server(&self) -> usize {
        self.server
    }

    /// Notes that the answer has begun to come, where it comes in parts: a whole one is as late as it is long.
    pub(super) fn answered(&self) {
        self.answered.set(Some(Instant::now()));
    }

    /// Notes how it went.
    fn end<T>(mut self, result: &Result<T, ProviderError>) {
        let delay = self.answered.get().map(|answered| answered.duration_since(self.sent));
        self.end = Some(match result {
            Ok(_) => End::Well(LoadSign::Answered(delay)),
            Err(error) => {
                let end = end_of(error);
                // Another server may take the key, or have the model, that this one refuses.
                let is_its_own = end == End::Well(LoadSign::Nothing) && error.is_of_all();
                if is_its_own && self.admission.pool().is_choice() { End::Ill } else { end }
            }
        });
        if let (Some(End::Ill), Err(error)) = (self.end, result) {
            *self.admission.fault.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        // One that was given up says nothing of its server.
        let end = self.end.unwrap_or(End::Well(LoadSign::Nothing));
        self.admission.pool().give(self.server, Instant::now(), self.sent, end);
        self.admission.freed.notify_one();
    }
}

/// What an error says of its server.
fn end_of(error: &ProviderError) -> End {
    match error {
        ProviderError::Status { status: 429 | 503 | 529, .. } => End::Well(LoadSign::Refused),
        ProviderError::Status { status: 500.., .. }
        | ProviderError::Unreachable { .. }
        | ProviderError::TimedOut { .. } => End::Ill,
        ProviderError::Status { .. }
        | ProviderError::Setup(_)
        | ProviderError::Launch(_)
        | ProviderError::Overflow { .. }
        | ProviderError::BadAnswer { .. }
        | ProviderError::Damaged { .. }
        | ProviderError::TooLarge { .. } => End::Well(LoadSign::Nothing),
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.max(Instant::now() + Duration::from_millis(1))).await,
        None => std::future::pending().await,
    }
}
