//! The requests about runs: for the list of them, for the state and the records of one, and for its end.
//!
//! The input is the id of a run. The output is its row of results, or the lines of its journal, whole or as they come. A caller sees its
//! own runs alone.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use futures_util::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::known_run::{
    self, CallersRun, IdInPath, OpenRunState, find, in_background, lines_of, past_rows, run_id,
};
use super::live_run::RunProgress;
use super::service::Service;
use crate::serve::http::{ApiError, Caller, Refusals, SentEvent, error_event, record_event, stream_events};

/// The number of ended runs on a page, unless the request says otherwise, and the most of them.
const PAGE: usize = 20;
const PAGE_MAX: usize = 100;
const LIMIT: &str = "`limit` is a number from 1 to 100, and `after` is the id of a run";

/// The parts of a row of results that a list has.
const LISTED: [&str; 9] =
    ["run", "roleset", "model", "outcome", "how", "rounds", "usage", "timing", "journal_head"];

/// The page of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::serve) struct Page {
    /// The most ended runs on the page.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// The run after which the page begins: the last one of the page before.
    after: Option<String>,
}

/// A list of runs.
#[derive(Serialize, ToSchema)]
pub(in crate::serve) struct RunList {
    object: &'static str,
    /// The runs that wait or are under way, on the first page, and the ended ones behind them, the last one first. A run that was put down
    /// before its end has the outcome `interrupted`.
    #[schema(value_type = Vec<Object>)]
    data: Vec<Value>,
    /// The `after` of the next page; null if this is the last one.
    next: Option<Uuid>,
}

/// Lists the runs of the caller.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(Page), responses((status = 200, body = RunList), Refusals))]
pub(in crate::serve) async fn list(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    page: Result<Query<Page>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<RunList>, ApiError> {
    let Query(Page { limit, after }) = page.map_err(|_| ApiError::field("limit", LIMIT))?;
    let limit = limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(ApiError::field("limit", LIMIT));
    }
    let after = after.as_deref().map(run_id).transpose()?;
    let mut data = Vec::new();
    if after.is_none() {
        data.extend(service.live_runs_of(caller).iter().map(|live| json!(OpenRunState::new(live))));
    }
    let (rows, next) = in_background(move || past_rows(&service, caller, after, limit)).await?;
    data.extend(rows.iter().map(list_entry));
    Ok(Json(RunList { object: "list", data, next }))
}

/// Returns the parts of a row of results that a list has.
fn list_entry(row: &Value) -> Value {
    let mut entry = json!({"status": "ended"});
    for name in LISTED {
        entry[name] = row[name].clone();
    }
    entry
}

/// Reads the row of results of a run, or its state if it has not ended.
#[utoipa::path(
    get,
    path = "/v1/runs/{run}",
    tag = "runs",
    params(("run" = String, Path, description = "The id of the run, or of its answer")),
    responses((status = 200, description = "The row of results of a run that has ended, with the status `ended`, or a state", body = Object), Refusals)
)]
pub(in crate::serve) async fn one(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    IdInPath(run): IdInPath,
) -> Result<Json<Value>, ApiError> {
    let state = match find(&service, caller, run).await? {
        CallersRun::Live(live) => json!(OpenRunState::new(&live)),
        CallersRun::Ended(mut row) | CallersRun::Interrupted(mut row) => {
            row["status"] = json!("ended");
            row
        }
    };
    Ok(Json(state))
}

/// Stops a run for good.
#[utoipa::path(
    delete,
    path = "/v1/runs/{run}",
    tag = "runs",
    params(("run" = String, Path, description = "The id of the run, or of its answer")),
    responses((status = 202, description = "The run is stopping", body = OpenRunState), Refusals)
)]
pub(in crate::serve) async fn cancel(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    IdInPath(run): IdInPath,
) -> Result<Response, ApiError> {
    known_run::cancel(&service, caller, run).await?;
    Ok((StatusCode::ACCEPTED, Json(OpenRunState { run, status: "stopping" })).into_response())
}

/// Reads the lines of a run in the journal. They are a chain of their own, which `consensus verify` checks.
#[utoipa::path(
    get,
    path = "/v1/runs/{run}/journal",
    tag = "runs",
    params(("run" = String, Path, description = "The id of the run, or of its answer")),
    responses(
        (status = 200, description = "The records that are written by now, one on each line", content_type = "application/x-ndjson", body = String),
        Refusals,
    )
)]
pub(in crate::serve) async fn journal(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    IdInPath(run): IdInPath,
) -> Result<Response, ApiError> {
    find(&service, caller, run).await?;
    // A part is read once the client has taken the one before it.
    let first = lines_of(&service, run, 0).await?;
    let parts = stream::try_unfold((service, 0, Some(first)), move |(service, sent, read)| async move {
        let lines = match read {
            Some(lines) => lines,
            None => lines_of(&service, run, sent).await?,
        };
        let part: Vec<u8> = lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect();
        let next = (service, sent + lines.len(), None);
        Ok::<_, ApiError>((!lines.is_empty()).then_some((part, next)))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(parts)).into_response())
}

/// Streams the records of a run as they are written, from its beginning or from behind the one that `Last-Event-ID` names.
#[utoipa::path(
    get,
    path = "/v1/runs/{run}/events",
    tag = "runs",
    params(
        ("run" = String, Path, description = "The id of the run, or of its answer"),
        ("Last-Event-ID" = Option<u32>, Header, description = "The number of the last record that the client has"),
    ),
    responses(
        (status = 200, description = "A record in each event, until the run ends", content_type = "text/event-stream", body = SentEvent),
        (status = 204, description = "The run has ended, and the client has all its records"),
        Refusals,
    )
)]
pub(in crate::serve) async fn events(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    IdInPath(run): IdInPath,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let known = match headers.get("last-event-id").map(|id| id.to_str().map(str::parse::<u32>)) {
        None => 0,
        Some(Ok(Ok(last))) => last as usize + 1,
        Some(_) => return Err(ApiError::bad("invalid_value", "`Last-Event-ID` is the number of an event")),
    };
    let progress = match find(&service, caller, run).await? {
        CallersRun::Live(live) => Some(live.progress()),
        CallersRun::Ended(_) | CallersRun::Interrupted(_) => None,
    };
    if progress.is_none() && lines_of(&service, run, known).await?.is_empty() {
        // A browser that receives this status does not come again.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let follower = RecordFollower { service, run, progress, known };
    let news = stream::unfold(Some(follower), |follower| async {
        let mut follower = follower?;
        let (events, has_ended) = follower.news().await;
        Some((events, if has_ended { None } else { Some(follower) }))
    });
    Ok(stream_events(news.flat_map(stream::iter)))
}

/// A request that follows the records of a run.
struct RecordFollower {
    service: Arc<Service>,
    run: Uuid,
    /// The progress of the run, unless it had ended when the request came.
    progress: Option<watch::Receiver<RunProgress>>,
    /// The number of records that the client has.
    known: usize,
}

impl RecordFollower {
    /// Waits for records that the client does not have. Returns them, and whether they are the last ones.
    async fn news(&mut self) -> (Vec<Event>, bool) {
        if let Some(progress) = &mut self.progress {
            self.service.wait_until_recorded(progress).await;
        }
        // After the end of a run, no further record comes.
        let has_ended = self.progress.as_ref().is_none_or(|progress| progress.borrow().end.is_some());
        let lines = match lines_of(&self.service, self.run, self.known).await {
            Ok(lines) => lines,
            // The head of the answer is sent already.
            Err(why) => return (vec![error_event(&why)], true),
        };
        let first = self.known;
        self.known += lines.len();
        let events = lines.iter().enumerate().map(|(at, line)| record_event(first + at, line)).collect();
        if !has_ended
            && lines.is_empty()
            && let Some(progress) = &mut self.progress
        {
            // Any change since the records were counted wakes it. The sender lives as long as the run does.
            let _ = progress.changed().await;
        }
        (events, has_ended && lines.is_empty())
    }
}
