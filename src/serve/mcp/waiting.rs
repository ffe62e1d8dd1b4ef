//! The wait for a run, within the patience of clients.
//!
//! The input is the progress of a run. The output is its end, or nothing if the client would soon give up. Meanwhile a client that asked
//! for it hears of each step, and of the wait itself.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::time::Instant;

use crate::serve::runs::{LiveRun, RunEnd};

/// The longest wait of a call. Clients give up after a minute, and not all of them start anew with each notice.
const PATIENCE: Duration = Duration::from_secs(45);

/// The time between two notices.
const NOTICE: Duration = Duration::from_secs(15);

/// The end of a wait.
pub(super) enum WaitEnd {
    /// The run has ended.
    Ended(RunEnd),
    /// The run is under way.
    Open,
    /// The client has taken its call back.
    TakenBack,
}

/// Waits for a run.
pub(super) async fn wait_for(live: &LiveRun, context: &RequestContext<RoleServer>) -> WaitEnd {
    let deadline = Instant::now() + PATIENCE;
    let mut progress = live.progress();
    let (mut notices, mut known) = (0.0, 0);
    loop {
        let (news, end) = {
            let now = progress.borrow_and_update();
            (now.lines[known..].to_vec(), now.end.clone())
        };
        if let Some(end) = end {
            return WaitEnd::Ended(end);
        }
        known += news.len();
        for line in &news {
            notify(context, &mut notices, line).await;
        }
        tokio::select! {
            // The sender lives as long as `live` does.
            _ = progress.changed() => {}
            () = tokio::time::sleep(NOTICE) => notify(context, &mut notices, "the agents are at work").await,
            () = tokio::time::sleep_until(deadline) => return WaitEnd::Open,
            () = context.ct.cancelled() => return WaitEnd::TakenBack,
        }
    }
}

/// Notifies a client of the progress of its call, if the client wants that. `count` is the number of notices of the call.
async fn notify(context: &RequestContext<RoleServer>, count: &mut f64, line: &str) {
    let Some(token) = context.meta.get_progress_token() else { return };
    *count += 1.0;
    let notice = ProgressNotificationParam::new(token, *count).with_message(line);
    // A client that has gone needs no notice.
    drop(context.peer.notify_progress(notice).await);
}
