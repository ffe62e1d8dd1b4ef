//! A run that requests wait for.
//!
//! The input is the events of the run, from its worker thread, and its end. The output is the same for every request that is attached
//! to it, from the beginning of the run, however late the request came. A run that no request waits for any more is put down at the next
//! call boundary, unless it has a key by which a request may come back to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, watch};
use uuid::Uuid;

use super::api_error::ApiError;
use crate::crypto::Digest;
use crate::engine::{RunEvent, StopRequest};
use crate::protocol::Step;
use crate::text::counted;

/// The most lines of progress that are kept of one run.
const LINES_MAX: usize = 10_000;

/// The end of a run.
#[derive(Clone, Debug)]
pub(super) enum RunEnd {
    /// It has a line of results.
    Told(Arc<Value>),
    /// It has none, for this reason.
    Without(ApiError),
}

/// The state of a run, as far as requests see it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The lines of its story.
    pub(super) lines: Vec<Arc<str>>,
    pub(super) end: Option<RunEnd>,
}

/// A run that is waiting or under way.
#[derive(Debug)]
pub(super) struct LiveRun {
    pub(super) run: Uuid,
    /// The id of its task.
    pub(super) task: String,
    /// The name of the model, as the request gave it.
    pub(super) model: String,
    /// The time of the first request, in seconds since 1970.
    pub(super) created: u64,
    /// The digest of the request's body, if the request had a key.
    pub(super) keyed: Option<Digest>,
    progress: watch::Sender<Progress>,
    stop: watch::Sender<StopRequest>,
    attached: AtomicUsize,
    /// The place of the run among those that may wait or be under way.
    _place: Option<OwnedSemaphorePermit>,
}

impl LiveRun {
    pub(super) fn new(
        (run, task): (Uuid, String),
        model: String,
        created: u64,
        keyed: Option<Digest>,
        stop: watch::Sender<StopRequest>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let (progress, attached) = (watch::Sender::default(), AtomicUsize::new(0));
        Self { run, task, model, created, keyed, progress, stop, attached, _place: place }
    }

    /// Takes an event of the run.
    pub(super) fn take(&self, event: &RunEvent<'_>) {
        let Some(line) = line(event) else { return };
        self.progress.send_if_modified(|progress| {
            let has_room = progress.lines.len() < LINES_MAX;
            if has_room {
                progress.lines.push(line.into());
            }
            has_room
        });
    }

    /// Takes the end of the run.
    pub(super) fn end(&self, end: RunEnd) {
        self.progress.send_modify(|progress| progress.end = Some(end));
    }

    /// Returns whether the run was asked to stop.
    pub(super) fn is_stopping(&self) -> bool {
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
}

/// A request that waits for a run.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) live: Arc<LiveRun>,
    progress: watch::Receiver<Progress>,
    /// The number of lines that the request has seen.
    seen: usize,
}

impl Attached {
    pub(super) fn new(live: Arc<LiveRun>) -> Self {
        live.attached.fetch_add(1, Ordering::SeqCst);
        let progress = live.progress.subscribe();
        Self { live, progress, seen: 0 }
    }

    /// Waits for news: the lines that the request has not seen, and the end if it has come.
    pub(super) async fn news(&mut self) -> (Vec<Arc<str>>, Option<RunEnd>) {
        let seen = self.seen;
        let is_new = |progress: &Progress| progress.lines.len() > seen || progress.end.is_some();
        match self.progress.wait_for(is_new).await {
            Ok(progress) => {
                let (lines, end) = (progress.lines[seen..].to_vec(), progress.end.clone());
                self.seen += lines.len();
                (lines, end)
            }
            // The sender lives as long as `live` does.
            Err(_) => (Vec::new(), Some(RunEnd::Without(ApiError::put_down()))),
        }
    }

    /// Waits for the end.
    pub(super) async fn ended(&mut self) -> RunEnd {
        loop {
            if let (_, Some(end)) = self.news().await {
                return end;
            }
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let is_last = self.live.attached.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && self.live.keyed.is_none() {
            self.live.stop(StopRequest::Finish);
        }
    }
}

/// Returns the line that tells of an event. It has no text of a draft: nothing is shown that another agent may still refuse.
fn line(event: &RunEvent<'_>) -> Option<String> {
    match event {
        RunEvent::Answered { agent, replied, usage, .. } => {
            let what = match replied.call.step {
                Step::Think => "thought",
                Step::Sample => "gave a sample",
                Step::Envelope => "wrote a draft",
                Step::Choose => "chose",
                Step::Weigh => "compared two texts",
            };
            let tokens = counted(usize::try_from(usage.completion).unwrap_or(usize::MAX), "token");
            Some(format!("{agent} {what} ({tokens})"))
        }
        RunEvent::Executed { executed, .. } => {
            let end = executed.result.end;
            Some(format!("A program or check was run: it {end}"))
        }
        RunEvent::Again { .. } => Some("A call failed and is made again".to_owned()),
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
