//! The news of a run for its page: that there are further records, and who is at work.
//!
//! The input is the progress of a run. The output is a stream of events, until the run ends. An event `record` has the last line of
//! the story, and an event `at_work` has a part of the page as a JSON string, anew with each change.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::page::{Blocks, environment};
use crate::report::reply_so_far;
use crate::serve::answering::sent;
use crate::serve::api_error::ApiError;
use crate::serve::at_work::{AtWork, LOOK_EVERY, OpenCall};
use crate::serve::caller::Caller;
use crate::serve::known_run::{CallersRun, PathRun, find};
use crate::serve::live_run::RunProgress;
use crate::serve::service::Service;
use protocol::text::escape;

/// The most of a reply that is shown before it is recorded, in bytes.
const SHOWN_MAX: usize = 4_000;

/// An agent at work.
#[derive(Serialize)]
struct ShownCall {
    agent: String,
    activity: &'static str,
    tokens: u64,
    text: Blocks,
}

/// Streams the news of a run. A run that has ended has none.
pub(in crate::serve) async fn news(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    PathRun(run): PathRun,
) -> Result<Response, ApiError> {
    let live = match find(&service, caller, run).await {
        Ok(CallersRun::Live(live)) => live,
        Ok(CallersRun::Ended(_) | CallersRun::Interrupted(_)) => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        Err(why) if why.is_cancelled() => return Ok(StatusCode::NO_CONTENT.into_response()),
        Err(why) => return Err(why),
    };
    let mut at_work = live.at_work();
    at_work.mark_changed();
    let follower = Follower { service, progress: live.look_on(), at_work, told: 0, due: Instant::now() };
    let news = stream::unfold(follower, |mut follower| async { Some((follower.next().await?, follower)) });
    Ok(sent(news.boxed()))
}

/// A page that follows a run.
struct Follower {
    service: Arc<Service>,
    progress: watch::Receiver<RunProgress>,
    at_work: watch::Receiver<AtWork>,
    /// The number of lines that the journal had with the last record that the page knows of.
    told: u64,
    /// The time before which no further part is sent. All changes up to then are one part.
    due: Instant,
}

impl Follower {
    /// Waits for the next event; returns `None` after the end of the run.
    async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            recorded = recorded(&self.service, &mut self.progress, self.told) => {
                self.told = recorded?;
                let line = self.progress.borrow().lines.last().map(Arc::clone);
                Some(Event::default().event("record").data(line.unwrap_or_default()))
            }
            () = changed(&mut self.at_work, self.due) => {
                self.due = Instant::now() + LOOK_EVERY;
                let (calls, executions) = self.at_work.borrow_and_update().now();
                Some(Event::default().event("at_work").data(json!(part(&calls, executions)).to_string()))
            }
        }
    }
}

/// Waits for a record behind the line `told` of the journal, and returns its line; returns `None` once the run has ended without one.
async fn recorded(service: &Service, progress: &mut watch::Receiver<RunProgress>, told: u64) -> Option<u64> {
    let has_more = |now: &RunProgress| now.recorded > told || now.end.is_some();
    let recorded = progress.wait_for(has_more).await.ok()?.recorded;
    service.recorded(progress).await;
    (recorded > told).then_some(recorded)
}

/// Waits until the agents at work have changed. After the run there is no such change.
async fn changed(at_work: &mut watch::Receiver<AtWork>, due: Instant) {
    sleep_until(due).await;
    if at_work.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns the part of the page that shows who is at work.
fn part(calls: &[OpenCall], executions: usize) -> String {
    let shown = calls.iter().map(|open| ShownCall {
        agent: escape::terminal(&open.agent),
        activity: open.activity(),
        tokens: open.tokens,
        text: Blocks::new(&reply_so_far(&open.words, SHOWN_MAX)),
    });
    let values = context!(calls => Serde(shown.collect::<Vec<_>>()), executions);
    let html = environment().render_named_str("at_work.html", include_str!("at_work.html"), values);
    html.expect("the template names only what it is given")
}
