//! The preparation of a run, from a person's request.
//!
//! A request leads to a [`RunDraft`], for which no server was asked, and the draft to a [`PreparedRun`] with its endpoints and, if
//! requested, its own server. No model is called here; a server may count the tokens of the documents.

use std::path::Path;

use super::calibrations::CalibrationRequest;
use super::check::{require_no_task_word, require_trusted, sandbox_for};
use super::chunking;
use super::error::RunError;
use super::parameters::{add_demands, require_flag};
use super::pilots::{BY_PILOT, modes_of_pilot, plan_modes};
use super::redaction::{redaction_policy, redacts};
use super::reporter::Reporter;
use super::request::{ReadInPieces, RunId, RunRequest};
use super::resolve::{open_endpoints, resolve};
use super::roleset::RolesetChoice;
use super::seats::require_unlike_voters;
use super::servers::{SERVER_LOG, check_prices, mock_script};
use super::session::{SESSION_DOCUMENT, Session};
use super::task::{STDIN, open_documents};
use crate::calibration::KnownParts;
use crate::config::{Chosen, FileConfig, Roleset};
use crate::engine::{PreparedRun, Redaction, RunBuilder};
use crate::journal::{REDACTIONS_FILE, RunSpec};
use protocol::core::Endpoint;
use protocol::text::{CanonicalKind, Demand, counted, escape};
use protocol::{Override, Params, ProtocolParams, RunSetup, StatedTrials, Task, stated_trials};

/// A run whose request was read and checked, before any server is asked.
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
    demands: Vec<Demand>,
    session: Option<Session>,
    script: Option<String>,
}

/// Makes the setup of a run without asking a server.
///
/// Returns [`RunError`]; nothing was started or sent.
pub fn draft(request: &RunRequest, file: &FileConfig) -> Result<RunDraft, RunError> {
    let settings = &request.settings;
    // The script is read only once, since it may come from a pipe.
    let script = mock_script(settings.mock.script.as_deref(), settings.mock.answer.as_deref())?;
    let choice = RolesetChoice::new(request, file, script.as_deref())?;
    let session = match &request.session {
        Some(name) => Some(Session::open(&request.runs_dir, name)?),
        None => None,
    };
    let named = choice.read(settings.rolesets_dir.as_ref(), file)?;
    let shadows = named.shadow_message();
    let check_is_trusted = require_trusted(&named, &settings.params, file);
    // A single run reports a flag of another protocol before a member that it cannot seat.
    settings.params.require_taken(&named.roleset)?;
    let mut resolved = resolve(&named, settings, file)?;
    if request.chunks.map_reduce == ReadInPieces::Always {
        require_flag(&resolved.roleset, "--map-reduce", Params::reads_pieces)?;
    }
    let task = read_task(request, &resolved.roleset, session.as_ref())?;
    let mut demands = Vec::new();
    if !settings.no_demands {
        let roleset = &mut resolved.roleset;
        demands = add_demands(&task.prompt, &mut roleset.params, &roleset.canonical);
    }
    require_no_task_word(&resolved.roleset)?;
    let builder = RunBuilder::new(resolved.setup(task, request.seed))?;
    let roleset = resolved.roleset;
    Ok(RunDraft { builder, roleset, check_is_trusted, why: choice.why, shadows, demands, session, script })
}

/// Reads the task, and adds the document of its session.
fn read_task(request: &RunRequest, roleset: &Roleset, session: Option<&Session>) -> Result<Task, RunError> {
    let mut task = request.task.read()?;
    if let Some(session) = session {
        if task.documents.iter().any(|document| document.name == SESSION_DOCUMENT) {
            return Err(RunError::Usage(format!(
                "a file named `{SESSION_DOCUMENT}` would be taken for the document of --session; give it another name"
            )));
        }
        task.documents.extend(session.document(redacts(&request.settings.redaction, roleset))?);
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
    /// Returns [`RunError::Usage`] if pieces were requested and are impossible.
    pub fn estimate_setup(
        self,
        request: &RunRequest,
        file: &FileConfig,
        reporter: &dyn Reporter,
    ) -> Result<RunSetup, RunError> {
        let Self { mut builder, roleset, .. } = self;
        let settings = &request.settings;
        let is_redacted = redacts(&settings.redaction, &roleset);
        if let Some(calibration) = &settings.calibration {
            let calibration = calibration.read()?;
            calibration.require(builder.setup(), &[], settings.limits, KnownParts::Setup)?;
        }
        if let Some(modes) = plan_modes(&settings.servers, file, &roleset)? {
            builder = builder.with_change(&Override::Modes(modes))?;
            reporter.status(BY_PILOT);
        }
        let builder = chunking::plan_by_estimate(builder, request, is_redacted, reporter)?;
        Ok(builder.setup().clone())
    }

    /// Prepares everything that a run starts from. May ask a server which model it serves.
    ///
    /// If a server must be started first, its log is in `dir`, the folder of the run.
    ///
    /// Returns [`RunError`]; no model was called.
    pub async fn prepare(
        self,
        request: &RunRequest,
        file: &FileConfig,
        dir: &Path,
        reporter: &dyn Reporter,
    ) -> Result<PreparedRun, RunError> {
        let Self { mut builder, roleset, check_is_trusted, shadows, demands, session, script, .. } = self;
        let settings = &request.settings;
        check_is_trusted?;
        let sandbox = sandbox_for(builder.setup(), &request.confinement).await?;
        introduce_task(builder.setup(), shadows.as_deref(), &demands, reporter);
        if let Some(policy) = redaction_policy(&settings.redaction, &roleset)? {
            let redaction = Redaction::new(dir.join(REDACTIONS_FILE), policy);
            let originals = session.as_ref().map(Session::originals).unwrap_or_default();
            builder = builder.with_redaction(redaction.with_known(&originals));
        }
        if let Some((corpus, library)) = open_documents(&request.docs, reporter).await? {
            builder = builder.with_corpus(corpus, library);
        }
        settings.mock.require_answers()?;
        let calibration = settings.calibration.as_ref().map(CalibrationRequest::read).transpose()?;
        let mut chosen = Chosen { mock_script: script, ..settings.servers.clone() };
        let log = dir.join(SERVER_LOG);
        let (server, endpoints) = open_endpoints(&mut chosen, file, &roleset, &log, reporter).await?;
        if let Some(modes) = modes_of_pilot(&roleset, &endpoints)? {
            builder = builder.with_change(&Override::Modes(modes))?;
            reporter.status(BY_PILOT);
        }
        require_unlike_voters(builder.setup(), &endpoints)?;
        builder = chunking::plan(builder, request, &endpoints, reporter).await?;
        check_prices(settings.limits, &endpoints)?;
        let calibration = match calibration {
            Some(calibration) => Some(calibration.of_run(builder.setup(), &endpoints, settings.limits)?),
            None => None,
        };
        let builder = builder.with_calibration(calibration).in_session(session.as_ref().map(Session::place));
        Ok(builder.build(endpoints, settings.limits).on_server(server).with_sandbox(sandbox))
    }
}

/// Returns what the book has measured about this way of agreeing on short exact answers, and the form that counts them instead.
fn find_better_form(setup: &RunSetup) -> Option<&'static str> {
    match setup.canonical.kind {
        CanonicalKind::Number | CanonicalKind::Choice | CanonicalKind::Json => {}
        CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Verbatim | CanonicalKind::Behaviour => {
            return None;
        }
    }
    match &setup.params {
        Params::Pair(pair) if pair.talk.is_always() => Some(
            "a small model's pair that talks was right on 45 % of numbers, and a majority of blind answers on 70 % for half \
             the tokens; --talk differing counts blind answers first",
        ),
        Params::Council(council) if council.talk.is_always() => Some(
            "a small model's council was right on 40 % of numbers, and a majority of blind answers on 78 % for less than half \
             the tokens; --talk differing counts blind answers first",
        ),
        Params::Panel(panel) if panel.talk.is_always() => Some(
            "a small model's panel that judges was right on 5 % of numbers and 10 % of choices, and a majority of blind \
             answers on 78 and 60 %; --talk differing counts the members' answers",
        ),
        Params::Pair(_) | Params::Council(_) | Params::Panel(_) | Params::Approval(_) | Params::Vote(_) => {
            None
        }
    }
}

/// Reports what the task and its roleset bring to the run without a flag.
fn introduce_task(setup: &RunSetup, shadows: Option<&str>, demands: &[Demand], reporter: &dyn Reporter) {
    if let Some(shadows) = shadows {
        reporter.status(shadows);
    }
    if let Some(document) = setup.task.documents.iter().find(|document| document.name == STDIN) {
        let bytes = counted(document.text.len(), "byte");
        reporter.status(&format!("stdin is a document of the task, with {bytes}"));
    }
    if setup.canonical.kind == CanonicalKind::Behaviour
        && let Some(StatedTrials { function, results }) = stated_trials(&setup.task.prompt)
    {
        reporter.status(&format!(
            "programs are compared by what `{function}` does; the task states {} for it, which all must give",
            counted(results, "result")
        ));
    }
    for Demand { rule, words, .. } in demands {
        reporter.status(&escape::terminal(&format!(
            "the answer is checked for “{words}” ({rule}), as the task says; --no-inferred-constraints turns that off"
        )));
    }
}

/// Reports which run begins, with which roleset and where; `why` is how the roleset was chosen if no flag names it.
pub fn introduce(spec: &RunSpec, why: Option<&str>, id: RunId, reporter: &dyn Reporter) {
    let labels: Vec<String> = spec.endpoints.iter().map(Endpoint::label).collect();
    let mut distinct = labels.clone();
    distinct.dedup();
    let (roleset, seed) = (&spec.setup.roleset, spec.setup.seed);
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let line = format!("run {id}: {roleset}{why}, seed {seed}, {}", distinct.join(" and "));
    reporter.status(&escape::terminal(&line));
    if let Some(better) = find_better_form(&spec.setup) {
        reporter.status(better);
    }
    if let Some(check) = &spec.setup.check_command {
        reporter.status(&escape::terminal(&format!("every final text must pass: {}", check.command)));
    }
}
