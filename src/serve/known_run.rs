//! The runs that a caller may see: those that wait or are under way, and those that have ended.
//!
//! The input is a caller and the id of a run. The output is the run and its records, or that there is no such run. A caller sees its own
//! runs alone.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::api_error::ApiError;
use super::caller::{CALLER_LABEL, Caller};
use super::live_run::LiveRun;
use super::service::Service;
use crate::batch::BatchError;
use crate::journal::{Journal, read_from};

/// A run of a caller.
#[derive(Debug)]
pub(super) enum CallersRun {
    /// It waits or is under way.
    Live(Arc<LiveRun>),
    /// It has ended with this line of results.
    Ended(Value),
}

/// The state of a run that is under way.
#[derive(Serialize, ToSchema)]
pub(super) struct OpenRunState {
    pub(super) run: Uuid,
    /// `running`, also for a run that waits for its turn, or `stopping`.
    pub(super) status: &'static str,
}

impl OpenRunState {
    /// Returns the state of a run that waits or is under way.
    pub(super) fn new(live: &LiveRun) -> Self {
        let status = if live.is_stopping() { "stopping" } else { "running" };
        Self { run: live.origin.run, status }
    }
}

/// The name of the records in an error.
pub(super) const RECORDS: &str = "the records of the run";

/// Returns the run of a caller. Before those that an earlier server has left are known, no run can be called unknown.
pub(super) async fn find(service: &Service, caller: Caller, run: Uuid) -> Result<CallersRun, ApiError> {
    service.known().await;
    if let Some(live) = service.live_of(run, caller) {
        return Ok(CallersRun::Live(live));
    }
    let row = service.ended().line_of(run).map_err(|why| ApiError::internal(&why))?;
    let own = row.filter(|row| is_of(row, caller)).map(CallersRun::Ended);
    own.ok_or_else(|| if service.was_cancelled(run, caller) { ApiError::cancelled() } else { no_run() })
}

/// Returns the lines of results of a caller's runs that ended before `after`, or of all, the last one first: `limit` at most. Returns also
/// the run before which the next page begins, unless this is the last one.
pub(super) fn ended_runs(
    service: &Service,
    caller: Caller,
    after: Option<Uuid>,
    limit: usize,
) -> Result<(Vec<Value>, Option<Uuid>), ApiError> {
    let (runs, has_more) = service.own_ended(caller, after, limit);
    let ended = service.ended();
    let rows = runs.iter().map(|run| Ok(ended.line_of(*run)?.unwrap_or_default()));
    let rows = rows.collect::<Result<_, BatchError>>().map_err(|why| ApiError::internal(&why))?;
    Ok((rows, runs.last().copied().filter(|_| has_more)))
}

/// Stops a run for good.
pub(super) async fn cancel(service: &Arc<Service>, caller: Caller, run: Uuid) -> Result<(), ApiError> {
    match find(service, caller, run).await? {
        CallersRun::Live(live) => service.cancel(&live).map_err(|why| ApiError::internal(&why)),
        CallersRun::Ended(_) => Err(ApiError::bad("run_ended", "the run has ended already")),
    }
}

/// Returns whether a line of results is that of a run of this caller.
pub(super) fn is_of(row: &Value, caller: Caller) -> bool {
    Caller::of_label(row["meta"][CALLER_LABEL].as_str()) == Some(caller)
}

/// Returns the id of a run, with or without the beginning that it has as the id of an answer.
pub(super) fn run_id(text: &str) -> Result<Uuid, ApiError> {
    let bare = ["chatcmpl-", "resp_"].iter().find_map(|prefix| text.strip_prefix(prefix));
    bare.unwrap_or(text).parse().map_err(|_| no_run())
}

/// The id of a run in the path of a request, which may be that of an answer.
pub(super) struct PathRun(pub(super) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for PathRun {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(run) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| no_run())?;
        run_id(&run).map(Self)
    }
}

/// Reads lines of a run that are written by now, without the first `skipped` ones: at least one if there is one, and further ones up to
/// 1 MiB.
pub(super) async fn lines_of(
    service: &Arc<Service>,
    run: Uuid,
    skipped: usize,
) -> Result<Vec<Vec<u8>>, ApiError> {
    let service = Arc::clone(service);
    // The first time, the whole journal is read.
    let read = move || service.records().lines_of(&run.to_string(), skipped);
    in_background(move || read().map_err(|why| ApiError::internal(&why))).await
}

/// Reads all lines of a run that are written by now.
pub(super) async fn all_lines(service: &Arc<Service>, run: Uuid) -> Result<Vec<u8>, ApiError> {
    let service = Arc::clone(service);
    let all = move || service.records().all_lines_of(&run.to_string());
    in_background(move || all().map_err(|why| ApiError::internal(&why))).await
}

/// Reads the journal of a run.
pub(super) fn journal_of(lines: &[u8]) -> Result<Journal, ApiError> {
    read_from(lines, RECORDS.as_ref()).map_err(|why| ApiError::internal(&why))
}

/// Does work that takes a while on a thread of its own.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|why| ApiError::internal(&why))?
}

fn no_run() -> ApiError {
    ApiError::unknown("run_not_found", "there is no such run")
}
