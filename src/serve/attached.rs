//! A request that waits for a run.
//!
//! The input is the progress of the run. The output is what the request has not seen yet, and the end. A run that no request waits for
//! any more is put down at the next call boundary, unless it has a key by which a request may come back to it.

use std::sync::Arc;

use tokio::sync::watch;

use super::live_run::{LiveRun, RunEnd, RunProgress};
use super::service::Service;
use super::shared_room::HeldRoom;
use crate::engine::StopRequest;

/// A request that waits for a run.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) live: Arc<LiveRun>,
    service: Arc<Service>,
    progress: watch::Receiver<RunProgress>,
    /// The number of lines that the request has seen.
    seen: usize,
    /// The memory of the request, until its answer has gone.
    _memory: Option<Arc<HeldRoom>>,
}

impl Attached {
    /// Attaches a request to a run, with the memory that the request takes.
    pub(super) fn new(live: Arc<LiveRun>, service: Arc<Service>, memory: Option<Arc<HeldRoom>>) -> Self {
        let progress = live.attach();
        Self { live, service, progress, seen: 0, _memory: memory }
    }

    /// Waits for news: the lines that the request has not seen, and the end if it has come.
    pub(super) async fn news(&mut self) -> (Vec<Arc<str>>, Option<RunEnd>) {
        let seen = self.seen;
        let is_new = |progress: &RunProgress| progress.lines.len() > seen || progress.end.is_some();
        match self.progress.wait_for(is_new).await {
            Ok(progress) => {
                let (lines, end) = (progress.lines[seen..].to_vec(), progress.end.clone());
                self.seen += lines.len();
                (lines, end)
            }
            // The sender lives as long as `live` does.
            Err(_) => (Vec::new(), Some(self.live.put_down())),
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
        if self.live.detach() {
            self.service.stop(&self.live, StopRequest::Finish);
        }
    }
}
