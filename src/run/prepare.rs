//! The preparation of a run, from a person's request.
//!
//! The input is a request and the configuration. The output is a [`RunDraft`], for which no server was asked. The draft leads to a
//! [`ReadyRun`] with its endpoints and, if requested, its own server. No model is called here; a server may count the tokens of the
//! documents.

use std::path::Path;

use super::calibrations::{CalibrationRequest, ReadCalibration};
use super::check::{add_configured_check, require_no_task_word, require_trusted, sandbox_for};
use super::chunking;
use super::documents;
use super::error::RunError;
use super::launch::{SERVER_LOG, launch};
use super::notices::Notices;
use super::parameters::refuse;
use super::pilots::{BY_PILOT, modes_of_pilot, planned_modes};
use super::redaction::{redacts, sought};
use super::request::{ReadInPieces, RunRequest};
use super::roleset::{NamedRoleset, RolesetChoice};
use super::run_id::RunId;
use super::seats::require_unlike_voters;
use super::servers::{check_prices, find_servers, mock_script};
use super::session::{SESSION_DOCUMENT, Session};
use super::spoken::add_spoken_rules;
use super::task::STDIN;
use crate::calibration::KnownParts;
use crate::config::{Chosen, FileConfig, Roleset, launch_command};
use crate::engine::{PreparedRun, Redaction, RunBuilder};
use crate::journal::{REDACTIONS_FILE, RunSpec};
use crate::provider::launch::Launched;
use protocol::core::Endpoint;
use protocol::text::{SpokenRule, counted, escape};
use protocol::{Params, ProtocolParams, RunSetup, Task, VoteOverride};

/// A run for which no server has been asked yet.
#[derive(Debug)]
pub struct RunDraft {
    /// The run at this stage.
    pub builder: RunBuilder,
    /// The roleset, with the requested parameters and members.
    pub roleset: Roleset,
    /// Whether the check of the roleset's file may run here.
    check_is_trusted: Result<(), RunError>,
    /// The reason for this roleset, unless the request names one.
    pub why: Option<&'static str>,
    /// A message that the roleset replaces a built-in one, if it does.
    shadows: Option<String>,
    /// The rules that the task says in plain words.
    spoken: Vec<SpokenRule>,
    session: Option<Session>,
    script: Option<String>,
}

/// A run that is ready to start, and the server that was started for it.
#[derive(Debug)]
pub struct ReadyRun {
    /// The run that the engine starts.
    pub prepared: PreparedRun,
    /// The server, which ends with the run.
    pub server: Option<Launched>,
    /// The reason for the roleset, unless the request names one.
    pub why: Option<&'static str>,
}

/// Makes the setup of a run without asking a server.
///
/// # Errors
///
/// Returns [`RunError`]; nothing was started or sent.
pub fn draft(request: &RunRequest, file: &FileConfig) -> Result<RunDraft, RunError> {
    // The script is read only once, since it may come from a pipe.
    let script = mock_script(request.mock.script.as_deref(), request.mock.answer.as_deref())?;
    let choice = RolesetChoice::new(request, file, script.as_deref())?;
    let open = |name: &String| Session::open(&request.runs_dir, name);
    let session = request.session.as_ref().map(open).transpose()?;
    let named = choice.read(request.rolesets_dir.as_ref(), file)?;
    let shadows = named.shadows();
    let check_is_trusted = require_trusted(&named, &request.params.check, file);
    let NamedRoleset { name, mut roleset, mut packs, .. } = named;
    if request.chunks.map_reduce == ReadInPieces::Always {
        refuse(&roleset, "--map-reduce", Params::reads_pieces)?;
    }
    request.params.check(&roleset)?;
    request.seats.take(&mut roleset, &mut packs, &request.redaction)?;
    request.params.put(&mut roleset)?;
    add_configured_check(&mut roleset, &request.params.check, file);
    let task = task(request, &roleset, session.as_ref())?;
    let mut spoken = Vec::new();
    if !request.no_spoken_rules {
        spoken = add_spoken_rules(&task.prompt, &mut roleset.params, &roleset.canonical);
    }
    require_no_task_word(&roleset)?;
    let setup = roleset.setup(&name, &packs, task, request.seed);
    let builder = RunBuilder::new(setup)?;
    Ok(RunDraft { builder, roleset, check_is_trusted, why: choice.why, shadows, spoken, session, script })
}

/// Reads the task, and adds the document of its session.
fn task(request: &RunRequest, roleset: &Roleset, session: Option<&Session>) -> Result<Task, RunError> {
    let mut task = request.task.read()?;
    if let Some(session) = session {
        if task.documents.iter().any(|document| document.name == SESSION_DOCUMENT) {
            return Err(RunError::Usage(format!(
                "a file named `{SESSION_DOCUMENT}` would be taken for the document of --session; give it another name"
            )));
        }
        task.documents.extend(session.document(redacts(&request.redaction, roleset))?);
    }
    task.is_searched = !request.docs.is_empty();
    if task.is_searched && !matches!(roleset.params, Params::Council(_)) {
        let why = "--docs goes with rolesets of `council` only; give a file to any run with -f FILE";
        return Err(RunError::Usage(why.to_owned()));
    }
    Ok(task)
}

impl RunDraft {
    /// Returns the setup with the pieces in which its documents would be read, as far as that is known without a server.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Usage`] if pieces were requested and are impossible.
    pub fn estimated(
        self,
        request: &RunRequest,
        file: &FileConfig,
        notices: &dyn Notices,
    ) -> Result<RunSetup, RunError> {
        let Self { mut builder, roleset, .. } = self;
        let is_redacted = redacts(&request.redaction, &roleset);
        if let Some(calibration) = request.calibration.as_ref().map(CalibrationRequest::read).transpose()? {
            calibration.require(builder.setup(), &[], request.limits, KnownParts::Setup)?;
        }
        if let Some(modes) = planned_modes(builder.setup(), &request.servers, file, &roleset)? {
            builder = builder.with_change(&VoteOverride::Modes(modes).into())?;
            notices.status(BY_PILOT);
        }
        let builder = chunking::planned_by_estimate(builder, request, is_redacted, notices)?;
        Ok(builder.setup().clone())
    }
}

/// Prepares everything that a run starts from. May ask a server which model it serves.
///
/// If a server must be started first, its log is in `dir`, the folder of the run.
///
/// # Errors
///
/// Returns [`RunError`]; no model was called.
pub async fn prepare(
    request: &RunRequest,
    file: &FileConfig,
    dir: &Path,
    notices: &dyn Notices,
) -> Result<ReadyRun, RunError> {
    let draft = draft(request, file)?;
    let RunDraft { mut builder, roleset, check_is_trusted, why, shadows, spoken, session, script } = draft;
    check_is_trusted?;
    let sandbox = sandbox_for(builder.setup(), &request.confinement).await?;
    if let Some(shadows) = shadows {
        notices.status(&shadows);
    }
    if let Some(document) = builder.setup().task.documents.iter().find(|document| document.name == STDIN) {
        notices.status(&format!(
            "stdin is a document of the task, with {}",
            counted(document.text.len(), "byte")
        ));
    }
    for SpokenRule { words, .. } in &spoken {
        notices.status(&escape::terminal(&format!(
            "the answer is checked for “{words}”, as the task says; --no-inferred-constraints turns that off"
        )));
    }
    if let Some(sought) = sought(&request.redaction, &roleset)? {
        let redaction = Redaction::new(dir.join(REDACTIONS_FILE), sought);
        let originals = session.as_ref().map(Session::originals).unwrap_or_default();
        let redaction = redaction.knowing(&originals);
        builder = builder.with_redaction(redaction);
    }
    if let Some((corpus, library)) = documents::open(&request.docs, notices).await? {
        builder = builder.with_corpus(corpus, library);
    }
    request.mock.has_answers()?;
    let calibration = request.calibration.as_ref().map(CalibrationRequest::read).transpose()?;
    let mut chosen = Chosen { mock_script: script, ..request.servers.clone() };
    let command = launch_command(&chosen, file, Some(&roleset))?;
    let server = launch(command.as_ref(), &mut chosen, file, &dir.join(SERVER_LOG), notices).await?;
    let endpoints = find_servers(&chosen, file, &roleset, notices).await?;
    if let Some(modes) = modes_of_pilot(builder.setup(), &endpoints)? {
        builder = builder.with_change(&VoteOverride::Modes(modes).into())?;
        notices.status(BY_PILOT);
    }
    require_unlike_voters(builder.setup(), &endpoints)?;
    builder = chunking::planned(builder, request, &endpoints, notices).await?;
    check_prices(request.limits, &endpoints)?;
    let of_run =
        |calibration: ReadCalibration| calibration.of_run(builder.setup(), &endpoints, request.limits);
    let calibration = calibration.map(of_run).transpose()?;
    let builder = builder.calibrated(calibration);
    let prepared = builder.in_session(session.as_ref().map(Session::place)).build(endpoints, request.limits);
    let prepared = prepared.on_server(server.as_ref().map(Launched::lifeline)).with_sandbox(sandbox);
    Ok(ReadyRun { prepared, server, why })
}

/// Reports which run begins, with which roleset and where; `why` is how the roleset was chosen if no flag names it.
pub fn introduce(spec: &RunSpec, why: Option<&str>, id: RunId, notices: &dyn Notices) {
    let labels: Vec<String> = spec.endpoints.iter().map(Endpoint::label).collect();
    let mut distinct = labels.clone();
    distinct.dedup();
    let (roleset, seed) = (&spec.setup.roleset, spec.setup.seed);
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let line = format!("run {id}: {roleset}{why}, seed {seed}, {}", distinct.join(" and "));
    notices.status(&escape::terminal(&line));
    if let Some(check) = &spec.setup.check_command {
        notices.status(&escape::terminal(&format!("every final text must pass: {}", check.command)));
    }
}
