//! The part of a run's page that shows who is at work.
//!
//! The input is the open calls of a run. The output is a stream of this part, anew with each change, until the run ends.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
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
use crate::serve::at_work::{AtWork, LOOK_EVERY};
use crate::serve::caller::Caller;
use crate::serve::known_run::{CallersRun, find, run_id};
use crate::serve::service::Service;
use crate::text::escape;

/// The most of a reply that is shown while it comes, in bytes.
const SHOWN_MAX: usize = 4_000;

/// An agent at work.
#[derive(Serialize)]
struct ShownCall {
    agent: String,
    doing: &'static str,
    tokens: u64,
    text: Blocks,
}

/// Streams the part of a run's page that shows who is at work. A run that has ended has none.
pub(in crate::serve) async fn now(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    let CallersRun::Live(live) = find(&service, caller, run_id(&run)?).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let mut at_work = live.at_work();
    at_work.mark_changed();
    let reader = (at_work, service.reader(), Instant::now());
    let parts = stream::unfold(reader, |(mut at_work, reader, due)| async move {
        // All changes up to then are one part.
        sleep_until(due).await;
        // The sender is gone with the run.
        at_work.changed().await.ok()?;
        Some((part(&mut at_work), (at_work, reader, Instant::now() + LOOK_EVERY)))
    });
    Ok(sent(parts.boxed()))
}

/// Returns the part as an event. Its data is a JSON string, so that it is one line.
fn part(at_work: &mut watch::Receiver<AtWork>) -> Event {
    let (calls, executions) = {
        let at_work = at_work.borrow_and_update();
        let shown = at_work.calls.iter().map(|(call, open)| ShownCall {
            agent: escape::terminal(&open.agent),
            doing: open.doing(call.step),
            tokens: open.tokens,
            text: Blocks::new(&reply_so_far(&open.words, SHOWN_MAX)),
        });
        (shown.collect::<Vec<_>>(), at_work.executions)
    };
    let values = context!(calls => Serde(calls), executions);
    let html = environment().render_named_str("now.html", include_str!("now.html"), values);
    Event::default().data(json!(html.expect("the template names only what it is given")).to_string())
}
