//! The way from a journal to a resumed run.
//!
//! The input is the records of a run, and a new request about its servers and limits. The output is a [`Resumption`]. A journal is
//! untrusted input: servers, programs and files that it names are used only as the configuration allows.

use std::path::{Path, PathBuf};

use super::check::{require_known_check, sandbox_for};
use super::error::RunError;
use super::redaction::load_table;
use super::reporter::Reporter;
use super::servers::{SERVER_LOG, check_prices, launch};
use super::task::open_documents;
use crate::config::{Chosen, FileConfig, launch_command, resume_endpoints};
use crate::engine::{Redaction, Resumption, RunState};
use crate::journal::{Journal, Limits};
use crate::sandbox::Confinement;
use protocol::Outcome;
use protocol::core::Endpoint;

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

/// Returns the reason why a run with a calibration continues under these limits only.
pub fn explain_fixed_limits(limits: Limits) -> String {
    format!(
        "the run has a calibration, which holds for its limits on tokens and cost alone ({}); continue it under these, or begin anew without --calibration",
        limits.on_resources()
    )
}

/// Finds the endpoints and the limits of the resumed run; new values replace earlier ones. Nothing is prepared for a run that has ended.
///
/// Returns [`RunError`]; no model was called, and the record is unchanged.
pub async fn prepare_resume(
    request: &ResumeRequest,
    file: &FileConfig,
    journal: &Journal,
    dir: &Path,
    reporter: &dyn Reporter,
) -> Result<Resumption, RunError> {
    let state = RunState::replay(&journal.records)?;
    if state.outcome().is_some_and(Outcome::is_final) {
        return Ok(Resumption::default());
    }
    let limits = replace_limits(request.limits, state.limits());
    if !state.opened().allows(state.limits(), limits) {
        return Err(RunError::Usage(explain_fixed_limits(state.limits())));
    }
    // A missing table is found before a server is started for nothing.
    let mut redaction = load_table(&state, dir)?;
    let mut check = state.opened().setup.check_command.clone();
    if let Some(check) = &mut check {
        if let Some(redaction) = &redaction {
            check.command = redaction.redactions().restore(&check.command);
        }
        require_known_check(check, request.check.as_deref(), dir)?;
    }
    let sandbox = sandbox_for(&state.opened().setup, &request.confinement).await?;
    let places = searched_places(&state, redaction.as_ref());
    let corpus = open_documents(&places, reporter).await;
    let corpus = corpus.map_err(|why| RunError::Documents(Box::new(why)))?;
    let mut chosen = request.servers.clone();
    // A configured server is started again only for a run that had one.
    let had_server = state.endpoints().iter().any(|e| matches!(e, Endpoint::OpenAi(e) if e.launched));
    let needs_server = had_server || chosen.launch.is_some();
    let command = if needs_server { launch_command(&chosen, file, None)? } else { None };
    let server = launch(command.as_ref(), &mut chosen, file, &dir.join(SERVER_LOG), reporter).await?;
    let searches = state.library().is_some();
    let endpoints = resume_endpoints(state.endpoints(), searches, &chosen, file).await?;
    check_prices(request.limits, &endpoints)?;
    let mut resumption = Resumption::new(limits, endpoints).on_server(server).with_sandbox(sandbox);
    if let Some((corpus, mut library)) = corpus {
        // The library is written with tokens.
        if let Some(redaction) = &mut redaction {
            library = redaction.library(library);
            redaction.save_if_new().map_err(RunError::Redactions)?;
        }
        resumption = resumption.with_corpus(corpus, library);
    }
    Ok(resumption.with_redaction(redaction))
}

/// Returns the files and folders that the run searches, by their original names.
fn searched_places(state: &RunState, redaction: Option<&Redaction>) -> Vec<PathBuf> {
    let Some(library) = &state.opened().library else { return Vec::new() };
    let Some(redaction) = redaction else { return library.places.clone() };
    let mut places = Vec::new();
    for place in &library.places {
        places.push(redaction.redactions().restore(&place.to_string_lossy()).into());
    }
    places
}

fn replace_limits(given: Limits, before: Limits) -> Limits {
    Limits {
        tokens_total_max: given.tokens_total_max.or(before.tokens_total_max),
        cost_micro_usd_max: given.cost_micro_usd_max.or(before.cost_micro_usd_max),
        deadline_ms: given.deadline_ms.or(before.deadline_ms),
    }
}
