//! Repeats a request after faults that pass.
//!
//! The input is one attempt as a closure, and the number of times that it may be repeated. The output is its result, or
//! the last fault. Waits grow, and a server's Retry-After is obeyed up to a limit. No attempt begins once the run is
//! being ended, but an attempt under way is still awaited. The error knows which faults pass. A damaged answer is asked
//! for again once.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};

use super::ProviderError;
use super::completion::{CallProgress, OnProgress, Quitting};

/// The longest Retry-After of a server that is obeyed.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(2);

/// The number of times that a provider asks again, and the signal that ends this.
#[derive(Debug)]
pub(super) struct RetryPolicy {
    retries: u32,
    /// Whether a refused connection is not tried again.
    refused_at_once: bool,
    /// The signal that no further call is to be made.
    quitting: OnceCell<Quitting>,
}

impl RetryPolicy {
    pub(super) fn new(retries: u32, refused_at_once: bool) -> Self {
        Self { retries, refused_at_once, quitting: OnceCell::new() }
    }

    /// Makes no further attempt once `quitting` is true.
    pub(super) fn watch_shutdown(&self, quitting: &Quitting) {
        // This is set once, when the run begins.
        let _ = self.quitting.set(quitting.clone());
    }

    /// Makes an attempt, and repeats it after faults that may pass.
    pub(super) async fn run<T, F: Future<Output = Result<T, ProviderError>>>(
        &self,
        attempt: impl Fn() -> F,
        progress: OnProgress<'_>,
    ) -> Result<T, ProviderError> {
        // The fault of the last attempt, during the wait for the next one.
        let failed = RefCell::new(None);
        // A damaged answer was paid for, so it is asked for again once.
        let has_been_damaged = Cell::new(false);
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(250))
            .with_max_delay(Duration::from_secs(30))
            .with_max_times(self.retries as usize)
            .with_jitter();
        let attempted = (|| {
            failed.take();
            attempt()
        })
        .retry(backoff)
        .sleep(tokio::time::sleep)
        .when(|error: &ProviderError| {
            if self.refused_at_once && error.is_refused() {
                return false;
            }
            let may_pass = error.is_retryable() || error.is_damaged() && !has_been_damaged.replace(true);
            may_pass && !self.is_quitting()
        })
        .adjust(|error, planned| {
            let wait = error.retry_after().map(|wait| wait.min(RETRY_AFTER_MAX));
            planned.map(|planned| wait.unwrap_or(planned))
        })
        .notify(|error, wait| {
            progress(CallProgress::Again { error, wait });
            failed.replace(Some(error.clone()));
        });
        let mut attempted = std::pin::pin!(attempted.into_future());
        tokio::select! {
            result = &mut attempted => result,
            // A wait for the next attempt ends here, but an attempt under way is awaited.
            () = self.quit() => match failed.take() {
                Some(error) => Err(error),
                None => attempted.await,
            },
        }
    }

    fn is_quitting(&self) -> bool {
        self.quitting.get().is_some_and(|quitting| *quitting.borrow())
    }

    /// Resolves when no further call is to be made.
    pub(super) async fn quit(&self) {
        if let Some(quitting) = self.quitting.get()
            && quitting.clone().wait_for(|now| *now).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
