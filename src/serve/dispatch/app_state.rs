//! The parts of the server that every way in reaches, be it HTTP or MCP.

use std::sync::Arc;

use axum::extract::FromRef;
use tokio::sync::{mpsc, oneshot};

use super::requested_run::RequestedRun;
use super::submission::{DispatchRequest, RequestKey, RequestPurpose, SubmissionOutcome};
use crate::batch::Variant;
use crate::serve::http::{ApiError, Caller, HeldRoom};
use crate::serve::runs::Service;

/// The parts of the server that handlers reach.
#[derive(Clone, Debug)]
pub(in crate::serve) struct AppState {
    pub(in crate::serve) service: Arc<Service>,
    pub(in crate::serve) requests: mpsc::Sender<DispatchRequest>,
}

impl FromRef<AppState> for Arc<Service> {
    fn from_ref(app: &AppState) -> Self {
        Self::clone(&app.service)
    }
}

impl AppState {
    /// Sends a request on its way to a run, and returns the run. The task of its key, if it has one, is `task`. The run keeps the memory of
    /// its request until it ends.
    pub(in crate::serve) async fn submit(
        &self,
        caller: Caller,
        task: Option<String>,
        run: RequestedRun,
        memory: Option<Arc<HeldRoom>>,
    ) -> Result<SubmissionOutcome, ApiError> {
        let key = task.map(|task| RequestKey { task, digest: run.digest() });
        self.ask(run, caller, |reply| RequestPurpose::Run { key, memory, reply }).await
    }

    /// Returns the run that a request would become. Nothing begins.
    pub(in crate::serve) async fn plan(
        &self,
        caller: Caller,
        run: RequestedRun,
    ) -> Result<Variant, ApiError> {
        self.ask(run, caller, |reply| RequestPurpose::Plan { reply }).await
    }

    async fn ask<T>(
        &self,
        run: RequestedRun,
        caller: Caller,
        purpose: impl FnOnce(oneshot::Sender<Result<T, ApiError>>) -> RequestPurpose,
    ) -> Result<T, ApiError> {
        let (sender, reply) = oneshot::channel();
        let request = DispatchRequest { run, caller, place: None, purpose: purpose(sender) };
        // The dispatcher is quick. So the wait is short, and no caller is refused because another one has sent many requests at once.
        self.requests.send(request).await.map_err(|_| ApiError::put_down(false))?;
        reply.await.map_err(|_| ApiError::put_down(false))?
    }
}
