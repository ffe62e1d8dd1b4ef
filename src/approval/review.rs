//! The review of a change: a run that is begun, continued, or taken as it was made before.

use std::path::Path;
use std::time::Instant;

use tokio::sync::watch;

use super::error::ApprovalError;
use super::request::ApprovalRequest;
use super::watcher::ApprovalWatcher;
use crate::engine::{Engine, Resumption, RunState, StopRequest};
use crate::journal::{FILE_NAME, Journal, RunSpec, Writer, read};
use crate::provider::launch::Launched;
use crate::report::RunResult;
use crate::run::{FinishedRun, ReadyRun, RunId, drive, find_run, introduce};
use protocol::core::Endpoint;
use protocol::{Outcome, RunSetup};
use quorum::ModelAt;

/// A review that has ended, and the endpoints of its models.
pub(super) struct ReviewedRun {
    pub(super) result: RunResult,
    pub(super) endpoints: Vec<Endpoint>,
}

impl ReviewedRun {
    /// Returns the model that has answered for the reviewer at this place, and the place where it was called.
    pub(super) fn model_of(&self, at: usize) -> Option<ModelAt> {
        let (endpoint, agent) = (self.endpoints.get(at)?, self.result.agents.get(at)?);
        Some(ModelAt::new(endpoint.place(), &agent.model))
    }
}

/// Returns a review by this very setup that was begun in a run folder, so that it can be continued.
pub(super) fn begun(dir: &Path, setup: &RunSetup) -> Option<(Writer, Journal)> {
    let (writer, journal) = Writer::reopen(dir).ok()?;
    let state = RunState::replay(&journal.records).ok()?;
    is_by(&state, setup).then_some((writer, journal))
}

/// Returns whether a review was made by this setup, apart from draws, which differ from run to run.
fn is_by(state: &RunState, setup: &RunSetup) -> bool {
    let made = &state.opened().setup;
    RunSetup { seed: made.seed, ..setup.clone() } == *made
}

/// The place of a review: its folder, its id, and the moment from which its time counts.
pub(super) struct ReviewPlace<'a> {
    pub(super) dir: &'a Path,
    pub(super) id: RunId,
    pub(super) began: Instant,
}

/// Lets the reviewers read the change, or continues a review that was begun.
pub(super) async fn review(
    ready: ReadyRun,
    earlier: Option<(Writer, Journal)>,
    place: ReviewPlace<'_>,
    stop: watch::Receiver<StopRequest>,
    watcher: &dyn ApprovalWatcher,
) -> Result<ReviewedRun, ApprovalError> {
    let ReviewPlace { dir, id, began } = place;
    let ReadyRun { prepared, server, .. } = ready;
    introduce(prepared.spec(), None, id, watcher);
    let observer = watcher.review_observer();
    let mut engine = match earlier {
        Some((writer, journal)) => {
            let has_ended = RunState::replay(&journal.records)?.outcome().is_some_and(Outcome::is_final);
            let RunSpec { limits, endpoints, .. } = prepared.spec().clone();
            let now = if has_ended { Resumption::default() } else { Resumption::new(limits, endpoints) };
            let now = now.on_server(server.as_ref().map(Launched::lifeline)).counted_from(began);
            Engine::resume(writer, &journal, now, &*observer)?
        }
        None => Engine::start(dir, &id.to_string(), prepared.counted_from(began), &*observer)?,
    };
    let FinishedRun { result, written, .. } = drive(&mut engine, server, stop, dir).await?;
    // A review that had ended was made where its journal says, even if models are called elsewhere today.
    let endpoints = engine.state().endpoints().to_vec();
    drop(engine);
    drop(observer);
    watcher.reviewed(&result, dir, &endpoints);
    written?;
    Ok(ReviewedRun { result, endpoints })
}

/// Returns a review that was made before, of the very same diff and by the same roleset.
pub(super) fn reviewed(request: &ApprovalRequest, setup: &RunSetup) -> Result<ReviewedRun, ApprovalError> {
    let dir = find_run(request.review.as_deref(), &request.runs_dir)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let state = RunState::replay(&journal.records)?;
    if !is_by(&state, setup) {
        return Err(ApprovalError::Usage(format!(
            "the run `{}` is not a review of this change by this roleset; review the change again",
            dir.display()
        )));
    }
    let result = RunResult::new(&state, journal.head);
    Ok(ReviewedRun { result, endpoints: state.endpoints().to_vec() })
}
