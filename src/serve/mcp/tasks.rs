//! Runs as the tasks of a client.
//!
//! The input is a run. The output is its state as a task, whose id is that of the run, so that a client finds it again after the server
//! was started anew. No store of tasks is kept: the journal is the store.

use std::time::SystemTime;

use rmcp::ErrorData;
use rmcp::model::{DetailedTask, Task, TaskPayload, TaskStatus};
use serde_json::Value;
use uuid::Uuid;

use super::evidence::ended_report;
use super::results::{error_result, refuse, report_result, to_object};
use crate::serve::dispatch::AppState;
use crate::serve::http::Caller;
use crate::serve::runs::{CallersRun, LiveRun, cancel, find, run_id};

/// The time after which a client may ask again, in milliseconds.
const POLL_MS: u64 = 2_000;

/// Returns a run that is under way as a task.
pub(super) fn open_task(live: &LiveRun) -> Task {
    let now = SystemTime::now();
    let task = Task::new(live.origin.run, TaskStatus::Working, format_time(live.since), format_time(now));
    let task = task.with_poll_interval_ms(POLL_MS);
    let progress = live.progress();
    let last = progress.borrow().lines.last().map(ToString::to_string);
    match last {
        Some(step) => task.with_status_message(step),
        None => task,
    }
}

/// Returns the state of a task.
pub(super) async fn task(app: &AppState, caller: Caller, id: &str) -> Result<DetailedTask, ErrorData> {
    let run = run_id(id).map_err(|why| refuse(&why))?;
    let known = match find(&app.service, caller, run).await {
        Ok(known) => known,
        Err(why) if why.is_cancelled() => {
            let now = format_time(SystemTime::now());
            return Ok(cancelled_task(run, now.clone(), now));
        }
        Err(why) => return Err(refuse(&why)),
    };
    let row = match known {
        CallersRun::Live(live) => return Ok(DetailedTask::new(open_task(&live), TaskPayload::Working)),
        CallersRun::Interrupted(row) => {
            let [began, ended] = times(&row);
            return Ok(cancelled_task(run, began, ended));
        }
        CallersRun::Ended(row) => row,
    };
    let result = match ended_report(&app.service, run, &row).await {
        Ok(report) => report_result(&report),
        Err(why) => error_result(&why),
    };
    let [began, ended] = times(&row);
    let task = Task::new(run, TaskStatus::Completed, began, ended);
    Ok(DetailedTask::new(task, TaskPayload::Completed { result: to_object(&result) }))
}

/// Stops a task for good.
pub(super) async fn cancel_task(app: &AppState, caller: Caller, id: &str) -> Result<(), ErrorData> {
    let run = run_id(id).map_err(|why| refuse(&why))?;
    cancel(&app.service, caller, run).await.map_err(|why| refuse(&why))
}

fn format_time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Returns the times of the first and the last record of a run, by its row.
fn times(row: &Value) -> [String; 2] {
    ["started_at", "ended_at"].map(|name| row["timing"][name].as_str().unwrap_or_default().to_owned())
}

/// Returns the state of a task that was stopped for good.
fn cancelled_task(run: Uuid, began: String, ended: String) -> DetailedTask {
    DetailedTask::new(Task::new(run, TaskStatus::Cancelled, began, ended), TaskPayload::Cancelled)
}
