//! A run that requests wait for.
//!
//! The input is the events of the run, from its worker thread, and its end. The output is the same for every request that waits for
//! it, from the beginning of the run, however late the request came.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

use super::open_calls::OpenCalls;
use crate::engine::{RunEvent, StopRequest};
use crate::serve::http::{ApiError, Caller, HeldRoom};
use crypto::Digest;
use protocol::Step;
use protocol::text::counted;

/// The most lines of progress that are kept of one run.
const LINES_MAX: usize = 10_000;

/// The end of a run.
#[derive(Clone, Debug)]
pub(in crate::serve) enum RunEnd {
    /// It has a line of results.
    WithResult(Arc<Value>),
    /// It has none, for this reason.
    WithoutResult(ApiError),
}

/// The progress of a run, as requests see it.
#[derive(Debug, Default)]
pub(in crate::serve) struct RunProgress {
    /// The lines of its story.
    pub(in crate::serve) lines: Vec<Arc<str>>,
    /// The number of lines that the journal had with the last record of the run.
    pub(in crate::serve) recorded: u64,
    pub(in crate::serve) end: Option<RunEnd>,
}

/// The origin of a run.
#[derive(Clone, Debug)]
pub(in crate::serve) struct RunOrigin {
    pub(in crate::serve) run: Uuid,
    /// The id of its task.
    pub(in crate::serve) task: String,
    /// The caller whose run it is.
    pub(in crate::serve) caller: Caller,
    /// The digest of the request, if it had a key.
    pub(in crate::serve) keyed: Option<Digest>,
    /// Whether an earlier server has begun the run.
    pub(in crate::serve) is_old: bool,
}

/// A run that is waiting or under way, from its request to its end.
#[derive(Debug)]
pub(in crate::serve) struct LiveRun {
    pub(in crate::serve) origin: RunOrigin,
    /// The time at which the server began to know it.
    pub(in crate::serve) since: SystemTime,
    progress: watch::Sender<RunProgress>,
    open_calls: watch::Sender<OpenCalls>,
    stop: watch::Sender<StopRequest>,
    /// The number of requests that wait for the run.
    subscribers: AtomicUsize,
    is_cancelled: AtomicBool,
    /// Whether the run has made a record.
    has_begun: AtomicBool,
    /// The place of the run among those that may wait or be under way, and the memory of its request.
    room: Mutex<Vec<Arc<HeldRoom>>>,
}

impl LiveRun {
    pub(in crate::serve) fn new(
        origin: RunOrigin,
        since: SystemTime,
        stop: watch::Sender<StopRequest>,
        room: Vec<Arc<HeldRoom>>,
    ) -> Self {
        Self {
            origin,
            since,
            progress: watch::Sender::default(),
            open_calls: watch::Sender::default(),
            stop,
            subscribers: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            room: Mutex::new(room),
        }
    }

    /// Takes an event of the run.
    pub(super) fn on_event(&self, event: &RunEvent<'_>) {
        if let RunEvent::Streaming { call, tokens, text } = event {
            // The words of a reply are worth nothing unless a page shows them.
            if self.open_calls.receiver_count() > 0 && self.open_calls.borrow().is_due(*call) {
                let words = text.whole_words().into();
                self.open_calls.send_modify(|open| open.set_words(*call, *tokens, words));
            }
            return;
        }
        self.open_calls.send_if_modified(|open| open.on_event(event));
        if let RunEvent::Written(record) = event {
            self.has_begun.store(true, Ordering::SeqCst);
            self.progress.send_modify(|progress| progress.recorded = record.seq + 1);
        }
        let Some(line) = describe(event) else { return };
        self.progress.send_if_modified(|progress| {
            let has_room = progress.lines.len() < LINES_MAX;
            if has_room {
                progress.lines.push(line.into());
            }
            has_room
        });
    }

    /// Takes the end of the run, whose place and memory are then free. A request may still read what the run has left.
    pub(super) fn end(&self, end: RunEnd) {
        self.room.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.progress.send_modify(|progress| progress.end = Some(end));
    }

    /// Returns whether the run was asked to stop.
    pub(in crate::serve) fn is_stopping(&self) -> bool {
        *self.stop.borrow() != StopRequest::None
    }

    /// Asks the run to stop.
    pub(super) fn stop(&self, request: StopRequest) {
        self.stop.send_if_modified(|now| {
            let is_more = request > *now;
            *now = request.max(*now);
            is_more
        });
    }

    /// Returns whether the run has made a record.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// Returns whether the journal has records of the run, by this server or an earlier one.
    pub(super) fn is_on_record(&self) -> bool {
        self.origin.is_old || self.has_begun()
    }

    /// Returns whether the run was asked to stop for good.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    /// Asks the run to stop for good.
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        self.stop(StopRequest::Abort);
    }

    /// Returns the end of a run that was put down.
    pub(super) fn put_down(&self) -> RunEnd {
        RunEnd::WithoutResult(if self.is_cancelled() {
            ApiError::cancelled()
        } else {
            ApiError::put_down(self.origin.keyed.is_some())
        })
    }

    /// Returns the progress of the run for a request that does not keep it alive.
    pub(in crate::serve) fn progress(&self) -> watch::Receiver<RunProgress> {
        self.progress.subscribe()
    }

    /// Returns the agents that are at work.
    pub(in crate::serve) fn open_calls(&self) -> watch::Receiver<OpenCalls> {
        self.open_calls.subscribe()
    }

    /// Adds a request that waits for the run.
    pub(super) fn subscribe(&self) -> watch::Receiver<RunProgress> {
        self.subscribers.fetch_add(1, Ordering::SeqCst);
        self.progress.subscribe()
    }

    /// Takes a request away. Returns whether it was the last one, and none can come back to the run.
    pub(super) fn unsubscribe(&self) -> bool {
        let is_last = self.subscribers.fetch_sub(1, Ordering::SeqCst) == 1;
        is_last && self.origin.keyed.is_none()
    }
}

/// Describes an event in a line, if it is part of the story. The line has no text of a draft: a client is sent nothing that another agent
/// may still refuse.
fn describe(event: &RunEvent<'_>) -> Option<String> {
    match event {
        RunEvent::Answered { agent, replied, usage, .. } => {
            let what = match replied.call.step {
                Step::Think => "thought",
                Step::Sample => "gave a sample",
                Step::Envelope => "wrote a draft",
                Step::Choose => "chose",
                Step::Weigh => "compared two texts",
            };
            Some(format!("{agent} {what} ({})", counted(usage.completion, "token")))
        }
        RunEvent::Executed { executed, .. } => {
            let end = executed.result.end;
            Some(format!("A program or check was run: it {end}"))
        }
        RunEvent::Again { .. } => Some("A call failed and is made again".to_owned()),
        RunEvent::Lost { agent, .. } => {
            Some(format!("The server of {agent} failed, and the run continues without {agent}"))
        }
        RunEvent::Writing
        | RunEvent::Written(_)
        | RunEvent::Calling { .. }
        | RunEvent::Streaming { .. }
        | RunEvent::Remarked { .. }
        | RunEvent::Failed { .. }
        | RunEvent::Cancelled { .. }
        | RunEvent::Executing { .. }
        | RunEvent::Stopping { .. } => None,
    }
}
