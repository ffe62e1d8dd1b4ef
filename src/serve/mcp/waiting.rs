//! The wait for a run, within the patience of clients.
//!
//! The input is the progress of a run. The output is its end, or nothing if the client would soon give up. Meanwhile a client that asked
//! for it hears of each step, and of the wait itself.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::time::Instant;

use crate::serve::live_run::{LiveRun, RunEnd};

/// The longest wait of a call. Clients give up after a minute, and not all of them start anew with each notice.
const PATIENCE: Duration = Duration::from_secs(45);

/// The time between two notices.
const NOTICE: Duration = Duration::from_secs(15);

/// The end of a wait.
pub(super) enum Waited {
    /// The run has ended.
    Ended(RunEnd),
    /// The run is under way.
    Open,
    /// The client has taken its call back.
    TakenBack,
}

/// Waits for a run.
pub(super) async fn wait_for(live: &LiveRun, context: &RequestContext<RoleServer>) -> Waited {
    let deadline = Instant::now() + PATIENCE;
    let mut progress = live.look_on();
    let mut notices =
        ProgressNotices { token: context.meta.get_progress_token(), peer: &context.peer, told: 0.0 };
    let mut seen = 0;
    loop {
        let (news, end) = {
            let now = progress.borrow_and_update();
            (now.lines[seen..].to_vec(), now.end.clone())
        };
        if let Some(end) = end {
            return Waited::Ended(end);
        }
        seen += news.len();
        for line in &news {
            notices.tell(line).await;
        }
        tokio::select! {
            // The sender lives as long as `live` does.
            _ = progress.changed() => {}
            () = tokio::time::sleep(NOTICE) => notices.tell("the agents are at work").await,
            () = tokio::time::sleep_until(deadline) => return Waited::Open,
            () = context.ct.cancelled() => return Waited::TakenBack,
        }
    }
}

/// The notices to a client about one call.
struct ProgressNotices<'a> {
    /// The name of the call in its notices; `None` if the client wants none.
    token: Option<ProgressToken>,
    peer: &'a Peer<RoleServer>,
    told: f64,
}

impl ProgressNotices<'_> {
    async fn tell(&mut self, line: &str) {
        let Some(token) = &self.token else { return };
        self.told += 1.0;
        let notice = ProgressNotificationParam::new(token.clone(), self.told).with_message(line);
        // A client that has gone needs no notice.
        drop(self.peer.notify_progress(notice).await);
    }
}
