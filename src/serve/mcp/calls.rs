//! The calls of the tools.
//!
//! The input is a call and its arguments. The output is a report, a task, or an error that the calling model can act on. A call that asks
//! for an answer begins a run that goes on without it, unless the client takes the call back.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, CallToolResult, CreateTaskResult, JsonObject};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::arguments::{AskArguments, ReviewArguments, RunArguments, new_task};
use super::evidence::{ended_report, verify};
use super::reports::{PlanReport, ToolReport};
use super::results::report_result;
use super::tasks::open_task;
use super::tools::ToolName;
use super::waiting::{WaitEnd, wait_for};
use crate::serve::dispatch::{AppState, RequestedRun, SubmissionOutcome, read_body};
use crate::serve::http::{ApiError, Caller, HeldRoom};
use crate::serve::runs::{CallersRun, LiveRun, RunEnd, all_lines, cancel, find, in_background};

/// The time that a call waits for the first record of its run. A run that waits for its turn has none for longer.
const BEGIN_MAX: Duration = Duration::from_secs(2);

/// A call of a tool.
pub(super) struct ToolCall<'a> {
    pub(super) app: &'a AppState,
    pub(super) caller: Caller,
    /// Whether the client is on this machine, with the rights of its user.
    pub(super) is_local: bool,
    /// Whether an agent of a server like this one makes the call.
    pub(super) is_recursive: bool,
    pub(super) context: &'a RequestContext<RoleServer>,
}

impl ToolCall<'_> {
    /// Answers the call.
    pub(super) async fn answer(
        &self,
        tool: ToolName,
        arguments: JsonObject,
    ) -> Result<CallToolResponse, ApiError> {
        match tool {
            ToolName::Status | ToolName::Result | ToolName::Cancel => {
                let run = run_of(arguments)?;
                match self.answer_about(tool, run).await {
                    // A run that was cancelled is no mistake of the caller.
                    Err(why) if why.is_cancelled() => Ok(report_result(&ToolReport::cancelled(run)).into()),
                    answer => Ok(answer?.into()),
                }
            }
            ToolName::Run => self.run(self.read_ask(arguments)?).await,
            ToolName::ReviewChange => {
                let change: ReviewArguments = read(arguments)?;
                self.run(change.into_run(&self.app.service.rules, self.is_local).await?).await
            }
            ToolName::Start => {
                let live = self.begin(self.read_ask(arguments)?).await?;
                Ok(report_result(&ToolReport::open(&live)).into())
            }
            ToolName::Plan => {
                let planned = self.app.plan(self.caller, self.read_ask(arguments)?).await?;
                Ok(report_result(&PlanReport::new(&planned)).into())
            }
            ToolName::Verify => {
                let run = run_of(arguments)?;
                let known = find(&self.app.service, self.caller, run).await?;
                let lines = all_lines(&self.app.service, run).await?;
                let report = in_background(move || Ok(verify(run, &lines, &known))).await?;
                Ok(report_result(&report).into())
            }
        }
    }

    /// Answers a call about a run.
    async fn answer_about(&self, tool: ToolName, run: Uuid) -> Result<CallToolResult, ApiError> {
        if tool == ToolName::Result {
            return self.result(run).await;
        }
        let known = find(&self.app.service, self.caller, run).await?;
        if tool == ToolName::Cancel {
            cancel(&self.app.service, self.caller, run).await?;
        }
        self.report(run, &known).await
    }

    fn read_ask(&self, arguments: JsonObject) -> Result<RequestedRun, ApiError> {
        read::<AskArguments>(arguments)?.into_run(&self.app.service.rules)
    }

    /// Begins a run that outlives the call.
    async fn begin(&self, run: RequestedRun) -> Result<Arc<LiveRun>, ApiError> {
        if self.is_recursive {
            return Err(ApiError::recursion());
        }
        // The memory of a request over HTTP comes with it, as the caller does.
        let request = self.context.extensions.get::<http::request::Parts>();
        let memory = request.and_then(|request| request.extensions.get::<Arc<HeldRoom>>()).cloned();
        match self.app.submit(self.caller, Some(new_task()), run, memory).await? {
            SubmissionOutcome::Live(subscription) => {
                let live = Arc::clone(&subscription.live);
                // A client that leaves with the id finds the run again, since it is on record.
                let mut progress = live.progress();
                let on_record = async {
                    drop(progress.wait_for(|now| now.recorded > 0 || now.end.is_some()).await);
                    self.app.service.wait_until_recorded(&mut progress).await;
                };
                let _ = tokio::time::timeout(BEGIN_MAX, on_record).await;
                Ok(live)
            }
            SubmissionOutcome::Ended(_) => Err(ApiError::internal(&"a new run has the key of an old one")),
        }
    }

    /// Begins a run, and waits for it as long as the client does.
    async fn run(&self, run: RequestedRun) -> Result<CallToolResponse, ApiError> {
        let live = self.begin(run).await?;
        let wait_end = wait_for(&live, self.context).await;
        match wait_end {
            WaitEnd::Open => {
                // Some clients know tasks, but not in place of a result that is soon there.
                let client = self.context.client_capabilities();
                if client.is_some_and(|client| client.supports_tasks()) {
                    return Ok(CallToolResponse::Task(CreateTaskResult::new(open_task(&live))));
                }
            }
            WaitEnd::TakenBack => {
                self.app.service.cancel(&live).map_err(|why| ApiError::internal(&why))?;
            }
            WaitEnd::Ended(_) => {}
        }
        Ok(self.report_wait(&live, wait_end).await?.into())
    }

    /// Waits for the end of a run, as long as the client does.
    async fn result(&self, run: Uuid) -> Result<CallToolResult, ApiError> {
        match find(&self.app.service, self.caller, run).await? {
            CallersRun::Live(live) => {
                let wait_end = wait_for(&live, self.context).await;
                self.report_wait(&live, wait_end).await
            }
            known @ (CallersRun::Ended(_) | CallersRun::Interrupted(_)) => self.report(run, &known).await,
        }
    }

    async fn report_wait(&self, live: &LiveRun, wait_end: WaitEnd) -> Result<CallToolResult, ApiError> {
        match wait_end {
            WaitEnd::Ended(RunEnd::WithResult(row)) => self.report_end(live.origin.run, &row).await,
            WaitEnd::Ended(RunEnd::WithoutResult(why)) => Err(why),
            WaitEnd::Open | WaitEnd::TakenBack => Ok(report_result(&ToolReport::open(live))),
        }
    }

    async fn report(&self, run: Uuid, known: &CallersRun) -> Result<CallToolResult, ApiError> {
        let report = match known {
            CallersRun::Live(live) => ToolReport::open(live),
            CallersRun::Ended(row) => return self.report_end(run, row).await,
            // It has no answer, and no further call brings one.
            CallersRun::Interrupted(_) => ToolReport::cancelled(run),
        };
        Ok(report_result(&report))
    }

    async fn report_end(&self, run: Uuid, row: &Value) -> Result<CallToolResult, ApiError> {
        ended_report(&self.app.service, run, row).await.map(|report| report_result(&report))
    }
}

fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ApiError> {
    read_body(Value::Object(arguments).to_string().as_bytes())
}

fn run_of(arguments: JsonObject) -> Result<Uuid, ApiError> {
    read::<RunArguments>(arguments)?.id()
}
