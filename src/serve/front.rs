//! The front of the server: the parts that every way in reaches, be it HTTP or MCP.

use std::sync::Arc;

use axum::extract::FromRef;
use tokio::sync::{mpsc, oneshot};

use super::api_error::ApiError;
use super::caller::Caller;
use super::requested_run::RequestedRun;
use super::service::Service;
use super::shared_room::HeldRoom;
use super::submission::{IntakeRequest, PlannedRun, Submission, Taken};

/// The parts of the server that handlers reach.
#[derive(Clone, Debug)]
pub(super) struct Front {
    pub(super) service: Arc<Service>,
    pub(super) asked: mpsc::Sender<IntakeRequest>,
}

impl FromRef<Front> for Arc<Service> {
    fn from_ref(front: &Front) -> Self {
        Self::clone(&front.service)
    }
}

impl Front {
    /// Sends a request on its way to a run, and returns the run. The task of its key, if it has one, is `task`. The run keeps the memory of
    /// its request until it ends.
    pub(super) async fn submit(
        &self,
        caller: Caller,
        task: Option<String>,
        run: RequestedRun,
        memory: Option<Arc<HeldRoom>>,
    ) -> Result<Taken, ApiError> {
        let key = task.map(|task| (task, run.digest()));
        self.ask(|taken| IntakeRequest::Run(Submission { run, caller, key, memory, place: None, taken }))
            .await
    }

    /// Returns the run that a request would become. Nothing begins.
    pub(super) async fn plan(&self, caller: Caller, run: RequestedRun) -> Result<PlannedRun, ApiError> {
        self.ask(|planned| IntakeRequest::Plan { run, caller, place: None, planned }).await
    }

    async fn ask<T>(
        &self,
        asked: impl FnOnce(oneshot::Sender<Result<T, ApiError>>) -> IntakeRequest,
    ) -> Result<T, ApiError> {
        let (sender, answered) = oneshot::channel();
        // The intake is quick. So the wait is short, and no caller is refused because another one has sent many requests at once.
        self.asked.send(asked(sender)).await.map_err(|_| ApiError::put_down(false))?;
        answered.await.map_err(|_| ApiError::put_down(false))?
    }
}
