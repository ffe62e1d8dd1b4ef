//! A request on its way to a run.

use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::api_error::ApiError;
use super::attached::Attached;
use super::caller::Caller;
use super::requested_run::RequestedRun;
use super::shared_room::HeldRoom;
use crypto::Digest;
use protocol::RunSetup;
use protocol::core::Endpoint;

/// A request to the part of the server that knows the rolesets and their models.
#[derive(Debug)]
pub(super) enum IntakeRequest {
    /// A run is to begin.
    Run(Submission),
    /// The setup of a run is wanted, and nothing begins.
    Plan {
        run: RequestedRun,
        caller: Caller,
        /// The place of the request while it waits for its roleset.
        place: Option<HeldRoom>,
        /// The way back to the request.
        planned: oneshot::Sender<Result<PlannedRun, ApiError>>,
    },
}

impl IntakeRequest {
    /// Returns the run that is wanted.
    pub(super) fn run(&self) -> &RequestedRun {
        match self {
            Self::Run(submission) => &submission.run,
            Self::Plan { run, .. } => run,
        }
    }

    /// Returns the caller of the request.
    pub(super) fn caller(&self) -> Caller {
        match self {
            Self::Run(submission) => submission.caller,
            Self::Plan { caller, .. } => *caller,
        }
    }

    /// Returns the place that the request has, if it has one.
    pub(super) fn place(&mut self) -> &mut Option<HeldRoom> {
        match self {
            Self::Run(submission) => &mut submission.place,
            Self::Plan { place, .. } => place,
        }
    }

    /// Returns whether the request has gone away.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Run(submission) => submission.taken.is_closed(),
            Self::Plan { planned, .. } => planned.is_closed(),
        }
    }

    /// Refuses the request, which may have gone away.
    pub(super) fn refuse(self, why: ApiError) {
        match self {
            Self::Run(submission) => drop(submission.taken.send(Err(why))),
            Self::Plan { planned, .. } => drop(planned.send(Err(why))),
        }
    }
}

/// A request that is to become a run.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) run: RequestedRun,
    pub(super) caller: Caller,
    /// The id of the task, and the digest of the request, if the request has a key.
    pub(super) key: Option<(String, Digest)>,
    /// The memory of the request; `None` over standard input, where there is one client.
    pub(super) memory: Option<Arc<HeldRoom>>,
    /// The place of the request while it waits for its roleset.
    pub(super) place: Option<HeldRoom>,
    /// The way back to the request.
    pub(super) taken: oneshot::Sender<Result<Taken, ApiError>>,
}

/// A run that could begin.
#[derive(Debug)]
pub(super) struct PlannedRun {
    pub(super) setup: RunSetup,
    /// The endpoint of each agent's model.
    pub(super) endpoints: Vec<Endpoint>,
}

/// The run that a request has become.
#[derive(Debug)]
pub(super) enum Taken {
    /// A run that is waiting or under way. A request that has gone away meanwhile is detached from it again.
    Live(Attached),
    /// A run that has ended before.
    Ended(Uuid),
}

impl Taken {
    /// Returns the id of the run.
    pub(super) fn run(&self) -> Uuid {
        match self {
            Self::Live(attached) => attached.live.origin.run,
            Self::Ended(run) => *run,
        }
    }
}
