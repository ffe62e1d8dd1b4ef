//! The review of a change: a run that is begun, continued, or taken as it was made before.

use std::path::Path;
use std::time::Instant;

use tokio::sync::watch;

use crate::approval::error::ApprovalError;
use crate::approval::request::ApprovalRequest;
use crate::engine::{Engine, PreparedRun, Resumption, RunState, StopRequest};
use crate::journal::{FILE_NAME, Journal, RunSpec, Writer, read};
use crate::report::RunResult;
use crate::run::{FinishedRun, Reporter, RunId, drive, find_run, introduce};
use protocol::core::Endpoint;
use protocol::{Outcome, Params, RunSetup};
use quorum::ModelAt;

/// A review that has ended, and the endpoints of its models.
pub(in crate::approval) struct ReviewEnd {
    pub(in crate::approval) result: RunResult,
    pub(in crate::approval) endpoints: Vec<Endpoint>,
}

impl ReviewEnd {
    /// Returns the model that has answered for the reviewer at this place, and the place where it was called.
    pub(in crate::approval) fn model_of(&self, at: usize) -> Option<ModelAt> {
        let (endpoint, agent) = (self.endpoints.get(at)?, self.result.agents.get(at)?);
        Some(ModelAt::new(endpoint.place(), &agent.model))
    }
}

/// Returns a review by this very setup that was begun in a run folder, so that it can be continued.
pub(in crate::approval) fn reopen(dir: &Path, setup: &RunSetup) -> Option<(Writer, Journal)> {
    let (writer, journal) = Writer::reopen(dir).ok()?;
    let state = RunState::replay(&journal.records).ok()?;
    if is_by(&state, setup) { Some((writer, journal)) } else { None }
}

/// Returns whether a review was made by this setup, apart from draws, which differ from run to run, and from the confirmation of findings,
/// which changes no opinion.
fn is_by(state: &RunState, setup: &RunSetup) -> bool {
    let own = &state.opened().setup;
    let mut wanted = RunSetup { seed: own.seed, ..setup.clone() };
    if let (Params::Approval(wanted), Params::Approval(own)) = (&mut wanted.params, &own.params) {
        wanted.confirm = own.confirm;
    }
    wanted == *own
}

/// Lets the reviewers read the change, or continues a review that was begun. Its time counts from `began`.
pub(in crate::approval) async fn review(
    mut prepared: PreparedRun,
    earlier: Option<(Writer, Journal)>,
    dir: &Path,
    id: RunId,
    began: Instant,
    stop: watch::Receiver<StopRequest>,
    reporter: &dyn Reporter,
) -> Result<ReviewEnd, ApprovalError> {
    introduce(prepared.spec(), None, id, reporter);
    let observer = reporter.observe_run();
    let mut engine = match earlier {
        Some((writer, journal)) => {
            let has_ended = RunState::replay(&journal.records)?.outcome().is_some_and(Outcome::is_final);
            let RunSpec { limits, endpoints, .. } = prepared.spec().clone();
            let now = if has_ended { Resumption::default() } else { Resumption::new(limits, endpoints) };
            let now = now.on_server(prepared.take_server()).count_from(began);
            Engine::resume(writer, &journal, now, &*observer)?
        }
        None => Engine::start(dir, &id.to_string(), prepared.count_from(began), &*observer)?,
    };
    let FinishedRun { result, written, .. } = drive(&mut engine, stop, dir).await?;
    // A review that had ended was made where its journal says, even if models are called elsewhere today.
    let endpoints = engine.state().endpoints().to_vec();
    drop(engine);
    drop(observer);
    reporter.report_run(&result, dir, &endpoints);
    written?;
    Ok(ReviewEnd { result, endpoints })
}

/// Returns a review that was made before, of the very same diff and by the same roleset.
pub(in crate::approval) fn find_earlier(
    request: &ApprovalRequest,
    setup: &RunSetup,
) -> Result<ReviewEnd, ApprovalError> {
    let dir = find_run(request.earlier_review.as_deref(), &request.review.runs_dir)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let state = RunState::replay(&journal.records)?;
    if !is_by(&state, setup) {
        return Err(ApprovalError::Usage(format!(
            "the run `{}` is not a review of this change by this roleset; review the change again",
            dir.display()
        )));
    }
    let result = RunResult::new(&state, journal.head);
    Ok(ReviewEnd { result, endpoints: state.endpoints().to_vec() })
}
