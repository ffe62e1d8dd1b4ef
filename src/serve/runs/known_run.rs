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

use super::live_run::LiveRun;
use super::past_run::row_of_records;
use super::service::Service;
use crate::serve::http::{ApiError, CALLER_LABEL, Caller};

/// A run that a request names, as its caller may see it.
#[derive(Debug)]
pub(in crate::serve) enum CallersRun {
    /// It waits or is under way.
    Live(Arc<LiveRun>),
    /// It has ended with this line of results.
    Ended(Value),
    /// It was put down before its end and does not go on. This row is made of its records.
    Interrupted(Value),
}

/// The state of a run that is under way.
#[derive(Serialize, ToSchema)]
pub(in crate::serve) struct OpenRunState {
    pub(in crate::serve) run: Uuid,
    /// `running`, also for a run that waits for its turn, or `stopping`.
    pub(in crate::serve) status: &'static str,
}

impl OpenRunState {
    /// Returns the state of a run that waits or is under way.
    pub(in crate::serve) fn new(live: &LiveRun) -> Self {
        let status = if live.is_stopping() { "stopping" } else { "running" };
        Self { run: live.origin.run, status }
    }
}

/// Returns the run of a caller. Before those that an earlier server has left are known, no run can be called unknown.
pub(in crate::serve) async fn find(
    service: &Arc<Service>,
    caller: Caller,
    run: Uuid,
) -> Result<CallersRun, ApiError> {
    service.wait_until_known().await;
    {
        let state = service.state();
        if let Some(live) = state.live.get(&run)
            && live.origin.caller == caller
        {
            return Ok(CallersRun::Live(Arc::clone(live)));
        }
    }
    // A run has its line of results before it leaves the list.
    let row = service.ended().line_of(run).map_err(|why| ApiError::internal(&why))?;
    if let Some(row) = row
        && is_of(&row, caller)
    {
        return Ok(CallersRun::Ended(row));
    }
    {
        let state = service.state();
        if state.cancelled_runs.get(&run) == Some(&caller) {
            return Err(ApiError::cancelled());
        }
        if state.interrupted.get(&run) != Some(&caller) {
            return Err(no_run());
        }
    }
    let service = Arc::clone(service);
    in_background(move || past_row(&service, run)).await.map(CallersRun::Interrupted)
}

/// Returns the line of results of a run that has ended, or the row of one that was put down.
pub(in crate::serve) fn past_row(service: &Service, run: Uuid) -> Result<Value, ApiError> {
    let row = service.ended().line_of(run).map_err(|why| ApiError::internal(&why))?;
    if let Some(row) = row.or_else(|| service.state().interrupted_rows.get(&run).cloned()) {
        return Ok(row);
    }
    let lines = service.records().all_lines_of(&run.to_string());
    let row = row_of_records(&lines.map_err(|why| ApiError::internal(&why))?)?;
    service.state().interrupted_rows.insert(run, row.clone());
    Ok(row)
}

/// Returns the rows of a caller's runs that were over before `after`, or of all, the last one first: `limit` at most. Returns also the run
/// before which the next page begins, unless this is the last one.
pub(in crate::serve) fn past_rows(
    service: &Service,
    caller: Caller,
    after: Option<Uuid>,
    limit: usize,
) -> Result<(Vec<Value>, Option<Uuid>), ApiError> {
    let (runs, has_more) = service.past_runs_of(caller, after, limit);
    let rows = runs.iter().map(|run| past_row(service, *run)).collect::<Result<_, _>>()?;
    let next = if has_more { runs.last().copied() } else { None };
    Ok((rows, next))
}

/// Stops a run for good.
pub(in crate::serve) async fn cancel(
    service: &Arc<Service>,
    caller: Caller,
    run: Uuid,
) -> Result<(), ApiError> {
    match find(service, caller, run).await? {
        CallersRun::Live(live) => service.cancel(&live).map_err(|why| ApiError::internal(&why)),
        CallersRun::Ended(_) | CallersRun::Interrupted(_) => {
            Err(ApiError::bad("run_ended", "the run has ended already"))
        }
    }
}

/// Returns whether a line of results is that of a run of this caller.
pub(super) fn is_of(row: &Value, caller: Caller) -> bool {
    Caller::of_label(row["meta"][CALLER_LABEL].as_str()) == Some(caller)
}

/// Returns the id of a run, with or without the beginning that it has as the id of an answer.
pub(in crate::serve) fn run_id(text: &str) -> Result<Uuid, ApiError> {
    let id = ["chatcmpl-", "resp_"].iter().find_map(|prefix| text.strip_prefix(prefix));
    id.unwrap_or(text).parse().map_err(|_| no_run())
}

/// The id of a run in the path of a request, which may be that of an answer.
pub(in crate::serve) struct IdInPath(pub(in crate::serve) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for IdInPath {
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
    in_background(move || {
        let lines = service.records().lines_of(&run.to_string(), skipped);
        lines.map_err(|why| ApiError::internal(&why))
    })
    .await
}

/// Reads all lines of a run that are written by now.
pub(in crate::serve) async fn all_lines(service: &Arc<Service>, run: Uuid) -> Result<Vec<u8>, ApiError> {
    let service = Arc::clone(service);
    in_background(move || {
        let lines = service.records().all_lines_of(&run.to_string());
        lines.map_err(|why| ApiError::internal(&why))
    })
    .await
}

/// Does work that takes a while on a thread of its own.
pub(in crate::serve) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|why| ApiError::internal(&why))?
}

fn no_run() -> ApiError {
    ApiError::unknown("run_not_found", "there is no such run")
}
