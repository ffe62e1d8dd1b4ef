//! A request that waits for a run.
//!
//! The input is the progress of the run. The output is what the request has not received yet, and the end. A run that no request waits
//! for any more is put down at the next call boundary, unless it has a key by which a request may come back to it.

use std::sync::Arc;

use tokio::sync::watch;

use super::live_run::{LiveRun, RunEnd, RunProgress};
use super::service::Service;
use crate::engine::StopRequest;
use crate::serve::http::HeldRoom;

/// A request that waits for a run.
#[derive(Debug)]
pub(in crate::serve) struct Subscription {
    pub(in crate::serve) live: Arc<LiveRun>,
    service: Arc<Service>,
    progress: watch::Receiver<RunProgress>,
    /// The number of lines that the request has received.
    received: usize,
    /// The memory of the request, until its answer has gone.
    _memory: Option<Arc<HeldRoom>>,
}

impl Subscription {
    /// Subscribes a request to a run, with the memory that the request takes.
    pub(in crate::serve) fn new(
        live: Arc<LiveRun>,
        service: Arc<Service>,
        memory: Option<Arc<HeldRoom>>,
    ) -> Self {
        let progress = live.subscribe();
        Self { live, service, progress, received: 0, _memory: memory }
    }

    /// Waits for news: the lines that the request has not received, and the end if it has come.
    pub(in crate::serve) async fn news(&mut self) -> (Vec<Arc<str>>, Option<RunEnd>) {
        let received = self.received;
        let news =
            self.progress.wait_for(|progress| progress.lines.len() > received || progress.end.is_some());
        match news.await {
            Ok(progress) => {
                let (lines, end) = (progress.lines[received..].to_vec(), progress.end.clone());
                self.received += lines.len();
                (lines, end)
            }
            // The sender lives as long as `live` does.
            Err(_) => (Vec::new(), Some(self.live.put_down())),
        }
    }

    /// Waits for the end.
    pub(in crate::serve) async fn wait_for_end(&mut self) -> RunEnd {
        loop {
            if let (_, Some(end)) = self.news().await {
                return end;
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.live.unsubscribe() {
            self.service.stop(&self.live, StopRequest::Finish);
        }
    }
}
