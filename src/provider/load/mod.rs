//! Flow control: how many requests a server gets at once, and which of several servers gets the next one.
//!
//! The input is requests to be sent, and the outcome of each. The output is a permit for one server, in the order in
//! which the requests came. The decisions are made by [`Limit`] and [`Pool`], which know no clock; the waiting is done
//! here. Nothing is known about a request except the server on which its conversation was before.

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

/// More requests than are ever sent at once.
const UNBOUNDED: usize = 1 << 20;

/// The number of requests that a remote server gets at first. A server of one's own, which is called over plain HTTP,
/// queues what it cannot do yet, and gets as many as the limit allows.
const START: usize = 32;

/// The flow to one server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flow {
    /// The most requests at once.
    pub max: usize,
}

/// The admission to the servers of one provider.
#[derive(Debug)]
pub(super) struct Admission {
    pool: Mutex<Pool>,
    /// The lock of the first request in the line, which looks for room.
    line: tokio::sync::Mutex<()>,
    freed: Notify,
    /// The last fault of a server.
    fault: Mutex<String>,
}

/// Permission to send one request. Its room is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    admission: &'a Admission,
    server: usize,
    sent: Instant,
    /// The time when the answer began.
    answered: Cell<Option<Instant>>,
    end: Option<End>,
}

/// The home of a conversation: the server that has its beginning in its cache.
#[derive(Debug, Default)]
pub(super) struct Home(Cell<Option<usize>>);

impl Home {
    /// Sends a request of this conversation once its turn has come, and records the outcome. Without an admission, its
    /// turn is at once and the server is the first. Returns `None` if `quit` comes first: nothing was sent, and nothing
    /// will be.
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
        // The connection is free again once its own task has run. Then the next request finds it, and opens no other.
        tokio::task::yield_now().await;
        permit.end(&result);
        Some(result)
    }
}

impl Admission {
    /// Creates the admission to these servers, if there is anything to decide: the number of requests at once, or the
    /// server.
    pub(super) fn new(
        base_urls: impl Iterator<Item = impl AsRef<str>>,
        flow: Option<Flow>,
        calls_at_once: Option<NonZeroU32>,
    ) -> Option<Self> {
        let of_others: Vec<bool> = base_urls.map(|url| url.as_ref().starts_with("https:")).collect();
        let max = match flow {
            Some(flow) => flow.max,
            // The engine limits the requests of a single run.
            None if of_others.len() > 1 => UNBOUNDED,
            None => return None,
        };
        let max = calls_at_once.map_or(max, |calls| max.min(calls.get() as usize));
        let starts = of_others.into_iter().map(|is_others| if is_others { START } else { max });
        let pool = Mutex::new(Pool::new(starts.map(|start| Limit::new(start, max))));
        Some(Self { pool, line: tokio::sync::Mutex::new(()), freed: Notify::new(), fault: Mutex::default() })
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // No code panics while it holds the lock, and the pool holds only counts.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last fault, if every server was left out at least `outs` times since it last worked.
    pub(super) fn last_fault(&self, outs: u32) -> Option<String> {
        let pool = self.pool();
        if pool.outs() < outs {
            return None;
        }
        Some(self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Returns the time after which a server is tried again, if all are gone at present.
    pub(super) fn outage(&self) -> Option<Duration> {
        self.pool().outage(Instant::now())
    }

    /// Waits for permission to send a request of a conversation that was on the server `home`.
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
                () = sleep_until(trial) => {}
            }
        }
    }
}

impl Permit<'_> {
    /// Returns the index of the server that the permit is for.
    pub(super) fn server(&self) -> usize {
        self.server
    }

    /// Records that an answer in parts has begun to arrive. A whole answer is as late as it is long, so it does not
    /// count.
    pub(super) fn mark_answered(&self) {
        self.answered.set(Some(Instant::now()));
    }

    /// Records the outcome of the request.
    fn end<T>(mut self, result: &Result<T, ProviderError>) {
        let delay = self.answered.get().map(|answered| answered.duration_since(self.sent));
        self.end = Some(match result {
            Ok(_) => End::Well(LoadSign::Answered(delay)),
            Err(error) => {
                let end = end_of(error);
                // Another server may accept the key, or have the model, that this one refuses.
                let is_its_own = end == End::Well(LoadSign::Nothing) && error.is_of_all();
                if is_its_own && self.admission.pool().is_choice() { End::Ill } else { end }
            }
        });
        if let (Some(End::Ill | End::Gone), Err(error)) = (self.end, result) {
            *self.admission.fault.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        // A request that was given up says nothing about its server.
        let end = self.end.unwrap_or(End::Well(LoadSign::Nothing));
        self.admission.pool().give(self.server, Instant::now(), self.sent, end);
        self.admission.freed.notify_one();
    }
}

/// Returns what an error says about its server.
fn end_of(error: &ProviderError) -> End {
    match error {
        ProviderError::Status { status: 429 | 503 | 529, .. }
        | ProviderError::Failed { may_pass: true, .. } => End::Well(LoadSign::Refused),
        error if error.is_of_connection() => End::Gone,
        ProviderError::Status { status: 500.., .. }
        | ProviderError::Unreachable { .. }
        | ProviderError::TimedOut { .. } => End::Ill,
        ProviderError::Status { .. }
        | ProviderError::Setup(_)
        | ProviderError::Launch(_)
        | ProviderError::Parameter { .. }
        | ProviderError::Overflow { .. }
        | ProviderError::Failed { .. }
        | ProviderError::BadAnswer { .. }
        | ProviderError::Damaged { .. }
        | ProviderError::NotInBank { .. }
        | ProviderError::AmbiguousInBank { .. }
        | ProviderError::TooLarge { .. } => End::Well(LoadSign::Nothing),
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.max(Instant::now() + Duration::from_millis(1))).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that is only slow is not gone.
    #[test]
    fn lost_connection_means_server_is_gone() {
        let timed_out = |setting| ProviderError::TimedOut {
            url: String::new(),
            what: "answer",
            after: Duration::from_secs(1),
            setting,
        };
        assert_eq!(end_of(&timed_out("connect_ms")), End::Gone);
        assert_eq!(end_of(&timed_out("idle_ms")), End::Ill);
        let broken = ProviderError::Unreachable { url: String::new(), why: String::new(), is_refused: false };
        assert_eq!(end_of(&broken), End::Gone);
    }
}
