//! The news of a run for its page: that there are further records, and which agents are at work.
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
use crate::report::partial_reply;
use crate::serve::http::{ApiError, Caller, stream_events};
use crate::serve::runs::{
    AgentCall, CallersRun, IdInPath, LOOK_EVERY, OpenCalls, RunProgress, Service, find,
};
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
    IdInPath(run): IdInPath,
) -> Result<Response, ApiError> {
    let live = match find(&service, caller, run).await {
        Ok(CallersRun::Live(live)) => live,
        Ok(CallersRun::Ended(_) | CallersRun::Interrupted(_)) => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        Err(why) if why.is_cancelled() => return Ok(StatusCode::NO_CONTENT.into_response()),
        Err(why) => return Err(why),
    };
    let mut open_calls = live.open_calls();
    open_calls.mark_changed();
    let follower =
        NewsFollower { service, progress: live.progress(), open_calls, recorded: 0, due: Instant::now() };
    let news = stream::unfold(follower, |mut follower| async { Some((follower.next().await?, follower)) });
    Ok(stream_events(news.boxed()))
}

/// A page that follows a run.
struct NewsFollower {
    service: Arc<Service>,
    progress: watch::Receiver<RunProgress>,
    open_calls: watch::Receiver<OpenCalls>,
    /// The number of lines that the journal had with the last record that the page knows of.
    recorded: u64,
    /// The time before which no further part is sent. All changes up to then are one part.
    due: Instant,
}

impl NewsFollower {
    /// Waits for the next event; returns `None` after the end of the run.
    async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            recorded = next_record(&self.service, &mut self.progress, self.recorded) => {
                self.recorded = recorded?;
                let line = self.progress.borrow().lines.last().map(Arc::clone);
                Some(Event::default().event("record").data(line.unwrap_or_default()))
            }
            () = next_change(&mut self.open_calls, self.due) => {
                self.due = Instant::now() + LOOK_EVERY;
                let (calls, executions) = self.open_calls.borrow_and_update().snapshot();
                Some(Event::default().event("at_work").data(json!(render(&calls, executions)).to_string()))
            }
        }
    }
}

/// Waits for a record behind the line `known` of the journal, and returns its line; returns `None` once the run has ended without one.
async fn next_record(
    service: &Service,
    progress: &mut watch::Receiver<RunProgress>,
    known: u64,
) -> Option<u64> {
    let news = progress.wait_for(|now| now.recorded > known || now.end.is_some());
    let recorded = news.await.ok()?.recorded;
    service.wait_until_recorded(progress).await;
    (recorded > known).then_some(recorded)
}

/// Waits until the agents at work have changed. After the run there is no such change.
async fn next_change(open_calls: &mut watch::Receiver<OpenCalls>, due: Instant) {
    sleep_until(due).await;
    if open_calls.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns the part of the page that shows which agents are at work.
fn render(calls: &[AgentCall], executions: usize) -> String {
    let shown = calls.iter().map(|open| ShownCall {
        agent: escape::terminal(&open.agent),
        activity: open.activity(),
        tokens: open.tokens,
        text: Blocks::new(&partial_reply(&open.words, SHOWN_MAX)),
    });
    let values = context!(calls => Serde(shown.collect::<Vec<_>>()), executions);
    let html = environment().render_named_str("at_work.html", include_str!("at_work.html"), values);
    html.expect("the template names only what it is given")
}
