//! The calls of a run that are in the air, and the reason why no more are made.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use futures_util::future::{AbortHandle, Abortable, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;

use crate::journal::Executed;
use crate::sandbox::SandboxError;
use crypto::Digest;
use protocol::{CallId, Outcome};

/// A request from outside to a run that is under way.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum StopRequest {
    /// Continue.
    #[default]
    None,
    /// Await the calls in the air, record their replies, and put the run down.
    Finish,
    /// Put the run down at once.
    Abort,
}

/// The calls in the air, and the reason why no more are made.
pub(super) struct Flight<'a, F> {
    /// Each is in a box, because even an empty set has the room of one.
    pub(super) calls: FuturesUnordered<Pin<Box<Abortable<F>>>>,
    /// The executions under way, with their keys.
    pub(super) executions: FuturesUnordered<LocalBoxFuture<'a, Result<Executed, SandboxError>>>,
    pub(super) executing: BTreeSet<Digest>,
    /// The handles by which the calls can be cancelled.
    pub(super) handles: BTreeMap<CallId, AbortHandle>,
    /// The calls that are made again, without a parameter that the server refused.
    pub(super) refused: Vec<CallId>,
    /// The reason why the run is to be put down, if there is one.
    pub(super) reason: Option<Outcome>,
    heeded: StopRequest,
}

impl<F> Default for Flight<'_, F> {
    fn default() -> Self {
        Self {
            calls: FuturesUnordered::new(),
            executions: FuturesUnordered::new(),
            executing: BTreeSet::new(),
            handles: BTreeMap::new(),
            refused: Vec::new(),
            reason: None,
            heeded: StopRequest::None,
        }
    }
}

impl<F: Future> Flight<'_, F> {
    /// Returns true if nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.executions.is_empty()
    }

    pub(super) fn begin(&mut self, id: CallId, call: F) {
        let (handle, registration) = AbortHandle::new_pair();
        self.handles.insert(id, handle);
        self.calls.push(Box::pin(Abortable::new(call, registration)));
    }

    /// Takes a request to stop, and returns true if it is a new one.
    pub(super) fn take_stop(&mut self, request: StopRequest) -> bool {
        let is_new = request > self.heeded;
        self.heeded = self.heeded.max(request);
        self.reason = self.reason.take().or_else(|| stop_reason(request));
        is_new
    }
}

fn stop_reason(request: StopRequest) -> Option<Outcome> {
    match request {
        StopRequest::None => None,
        StopRequest::Finish | StopRequest::Abort => Some(Outcome::Interrupted),
    }
}
