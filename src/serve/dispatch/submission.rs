//! A request on its way to a run.

use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::requested_run::RequestedRun;
use crate::batch::Variant;
use crate::serve::http::{ApiError, Caller, HeldRoom};
use crate::serve::runs::Subscription;
use crypto::Digest;

/// A request to the dispatcher, which knows the rolesets and their models.
#[derive(Debug)]
pub(in crate::serve) struct DispatchRequest {
    pub(super) run: RequestedRun,
    pub(super) caller: Caller,
    /// The place of the request while it waits for its roleset.
    pub(super) place: Option<HeldRoom>,
    pub(super) purpose: RequestPurpose,
}

/// The purpose of a request, with the way back to the one who has sent it.
#[derive(Debug)]
pub(super) enum RequestPurpose {
    /// A run is to begin.
    Run {
        key: Option<RequestKey>,
        /// The memory of the request; `None` over standard input, where there is one client.
        memory: Option<Arc<HeldRoom>>,
        reply: oneshot::Sender<Result<SubmissionOutcome, ApiError>>,
    },
    /// The setup of a run is asked for, and nothing begins.
    Plan { reply: oneshot::Sender<Result<Variant, ApiError>> },
}

/// The key of a request, by which it finds its run again.
#[derive(Debug)]
pub(super) struct RequestKey {
    /// The id of the task that the key stands for.
    pub(super) task: String,
    /// The digest of the request, by which another one with the same key is known.
    pub(super) digest: Digest,
}

impl DispatchRequest {
    /// Returns whether the request has gone away.
    pub(super) fn is_gone(&self) -> bool {
        match &self.purpose {
            RequestPurpose::Run { reply, .. } => reply.is_closed(),
            RequestPurpose::Plan { reply } => reply.is_closed(),
        }
    }

    /// Refuses the request, which may have gone away.
    pub(super) fn refuse(self, why: ApiError) {
        match self.purpose {
            RequestPurpose::Run { reply, .. } => drop(reply.send(Err(why))),
            RequestPurpose::Plan { reply } => drop(reply.send(Err(why))),
        }
    }
}

/// The run that a request has become.
#[derive(Debug)]
pub(in crate::serve) enum SubmissionOutcome {
    /// A run that is waiting or under way. The subscription of a request that has gone away meanwhile ends at once.
    Live(Subscription),
    /// A run that has ended before.
    Ended(Uuid),
}

impl SubmissionOutcome {
    /// Returns the id of the run.
    pub(in crate::serve) fn run(&self) -> Uuid {
        match self {
            Self::Live(subscription) => subscription.live.origin.run,
            Self::Ended(run) => *run,
        }
    }
}
