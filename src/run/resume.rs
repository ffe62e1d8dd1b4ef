//! The way from a journal to a resumed run.
//!
//! The input is the records of a run, and a new request about its servers and limits. The output is a [`Resumption`]. A journal is
//! untrusted input: servers, programs and files that it names are used only as the configuration allows.

use std::path::{Path, PathBuf};

use super::check::{require_given, sandbox_for};
use super::documents;
use super::error::RunError;
use super::launch::{SERVER_LOG, launch};
use super::notices::Notices;
use super::redaction::table;
use super::servers::check_prices;
use crate::config::{Chosen, FileConfig, launch_command, resumed_endpoints};
use crate::engine::{Redaction, Resumption, RunState};
use crate::journal::{Journal, Limits};
use crate::provider::launch::Launched;
use crate::sandbox::Confinement;
use protocol::Outcome;
use protocol::core::Endpoint;

/// A request to resume a run.
#[derive(Clone, Debug, Default)]
pub struct ResumeRequest {
    /// The servers and models, as far as they are given.
    pub servers: Chosen,
    /// The limits, each of which replaces an earlier one.
    pub limits: Limits,
    /// The check of final texts, if the user allows it by repeating it.
    pub check: Option<String>,
    /// The way in which a check is run.
    pub confinement: Confinement,
}

/// Returns the reason why a run with a calibration goes on under no limits but these.
pub fn only_under(limits: Limits) -> String {
    format!(
        "the run has a calibration, which holds for its limits on tokens and cost alone ({}); continue it under these, or begin anew without --calibration",
        limits.on_resources()
    )
}

/// A run that can continue, and the server that was started for it.
#[derive(Debug, Default)]
pub struct ResumedRun {
    /// The state from which the engine resumes the run.
    pub resumption: Resumption,
    /// The server, which ends with the run.
    pub server: Option<Launched>,
    /// Whether nothing is left to do.
    pub has_ended: bool,
}

/// Finds the endpoints and the limits of the resumed run; new values replace earlier ones.
///
/// # Errors
///
/// Returns [`RunError`]; no model was called, and the record is unchanged.
pub async fn prepare_resume(
    request: &ResumeRequest,
    file: &FileConfig,
    journal: &Journal,
    dir: &Path,
    notices: &dyn Notices,
) -> Result<ResumedRun, RunError> {
    let state = RunState::replay(&journal.records)?;
    if state.outcome().is_some_and(Outcome::is_final) {
        return Ok(ResumedRun { has_ended: true, ..ResumedRun::default() });
    }
    let limits = limits(request.limits, state.limits());
    if !state.opened().allows(state.limits(), limits) {
        return Err(RunError::Usage(only_under(state.limits())));
    }
    // A missing table is found before a server is started for nothing.
    let mut redaction = table(&state, dir)?;
    let mut check = state.opened().setup.check_command.clone();
    if let Some(check) = &mut check {
        if let Some(redaction) = &redaction {
            check.command = redaction.redactions().restore(&check.command);
        }
        require_given(check, request.check.as_deref(), dir)?;
    }
    let sandbox = sandbox_for(&state.opened().setup, &request.confinement).await?;
    let places = places(&state, redaction.as_ref());
    let corpus = documents::open(&places, notices).await;
    let corpus = corpus.map_err(|why| RunError::Documents(Box::new(why)))?;
    let mut chosen = request.servers.clone();
    // A configured server is started again only for a run that had one.
    let is_launched = |endpoint: &Endpoint| matches!(endpoint, Endpoint::OpenAi(e) if e.launched);
    let wants_server = chosen.launch.is_some() || state.endpoints().iter().any(is_launched);
    let command = if wants_server { launch_command(&chosen, file, None)? } else { None };
    let server = launch(command.as_ref(), &mut chosen, file, &dir.join(SERVER_LOG), notices).await?;
    let searches = state.library().is_some();
    let endpoints = resumed_endpoints(state.endpoints(), searches, &chosen, file).await?;
    check_prices(request.limits, &endpoints)?;
    let mut resumption = Resumption::new(limits, endpoints)
        .on_server(server.as_ref().map(Launched::lifeline))
        .with_sandbox(sandbox);
    if let Some((corpus, mut library)) = corpus {
        // The library is written with tokens.
        if let Some(redaction) = &mut redaction {
            library = redaction.library(library);
            redaction.save_if_new().map_err(RunError::Redactions)?;
        }
        resumption = resumption.with_corpus(corpus, library);
    }
    Ok(ResumedRun { resumption: resumption.with_redaction(redaction), server, has_ended: false })
}

/// Returns the files and folders that the run searches, by their original names.
fn places(state: &RunState, redaction: Option<&Redaction>) -> Vec<PathBuf> {
    let places = state.opened().library.as_ref().map_or(&[][..], |library| &library.places);
    let original = |place: &PathBuf| match redaction {
        Some(redaction) => redaction.redactions().restore(&place.to_string_lossy()).into(),
        None => place.clone(),
    };
    places.iter().map(original).collect()
}

fn limits(given: Limits, before: Limits) -> Limits {
    Limits {
        tokens_total_max: given.tokens_total_max.or(before.tokens_total_max),
        cost_micro_usd_max: given.cost_micro_usd_max.or(before.cost_micro_usd_max),
        deadline_ms: given.deadline_ms.or(before.deadline_ms),
    }
}
