//! How a change is read: the reviewers of a roleset, where their models are, and the run in which they review it.

use std::path::Path;
use std::time::Instant;

use tokio::sync::watch;
use uuid::Uuid;

use super::approve_args::ApproveArgs;
use super::error::{IntegrityError, UsageError};
use super::output::Output;
use super::progress::ProgressPrinter;
use super::{answer, args, launch, locate, run, settings};
use crate::bft::ModelAt;
use crate::config::{FileConfig, PROJECT_FILE, Packs, Roleset, launch_command, resolve_endpoints};
use crate::core::{Endpoint, PROGRAM};
use crate::decision::KeyFolder;
use crate::engine::{Changes, Engine, RunState, StopRequest};
use crate::journal::{FILE_NAME, Journal, RunSpec, Writer, read};
use crate::protocol::{Document, Params, ProtocolParams, RunSetup, Task};
use crate::provider::launch::Launched;
use crate::report::RunResult;
use crate::repository::{Oid, Repository};
use crate::text::escape;

/// The roleset of a review that names none.
const ROLESET: &str = "reviewers_f1";

/// What reviewers are asked. The author's own words about a change are not among it.
const TASK: &str = "Decide whether this change may be applied.";

/// The reviewers of a roleset.
pub(super) struct Reviewers {
    pub(super) name: String,
    pub(super) roleset: Roleset,
    packs: Packs,
}

/// A review that has ended, and where its models were called.
pub(super) struct ReviewedRun {
    pub(super) result: RunResult,
    pub(super) endpoints: Vec<Endpoint>,
}

impl ReviewedRun {
    /// The model of the reviewer at this place, and where it was called.
    pub(super) fn model_of(&self, at: usize) -> Option<ModelAt> {
        self.endpoints.get(at).map(|endpoint| ModelAt::new(endpoint.place(), endpoint.model()))
    }
}

/// What a review starts from, with the server that was launched for it.
pub(super) type Beginning = (RunSpec, Option<Launched>);

impl Reviewers {
    /// Those that the keys are for.
    pub(super) fn of(args: &ApproveArgs, file: &FileConfig, keys: &KeyFolder) -> anyhow::Result<Self> {
        let named = args.roleset.clone().unwrap_or_else(|| ROLESET.to_owned());
        let (name, mut roleset, packs) =
            settings::roleset(Some(&named), args.rolesets.rolesets_dir.as_ref(), file)?;
        if !matches!(roleset.params, Params::Approval(_)) {
            let protocol = roleset.params.protocol();
            let why = format!(
                "`{name}` is a roleset of `{protocol}`, and a change is reviewed by one of `approval`"
            );
            return Err(UsageError(why).into());
        }
        let seats: Vec<&str> = keys.roster().reviewers.iter().map(|seat| seat.name.as_str()).collect();
        let agents: Vec<&str> = roleset.agents.iter().map(|agent| agent.name.as_str()).collect();
        if seats != agents {
            let why = format!(
                "the reviewers of `{name}` are {}, and those of the keys are {}; make keys with --roleset {name}",
                agents.join(", "),
                seats.join(", ")
            );
            return Err(UsageError(why).into());
        }
        for agent in &mut roleset.agents {
            agent.max_tokens = args.max_tokens.unwrap_or(agent.max_tokens);
        }
        Ok(Self { name, roleset, packs })
    }

    /// Refuses rules that a change could have brought: files that git keeps in this very repository, and that are not what
    /// the base has.
    pub(super) fn rules_are_of(
        &self,
        repository: &Repository,
        base: &Oid,
        args: &ApproveArgs,
    ) -> anyhow::Result<()> {
        let rolesets = self.packs.folder().and_then(Path::parent).map(Path::to_owned);
        let places = [Some(PROJECT_FILE.into()), rolesets, Some(args.keys.clone()), args.peers.clone()];
        for place in places.into_iter().flatten() {
            if let Some(file) = repository.differing(&place, base)?.first() {
                let why = format!(
                    "`{file}` is not what the base {base} has, and no change is decided on by its own rules: check out the base's, \
                     or keep them outside of the repository"
                );
                return Err(UsageError(escape::terminal(&why)).into());
            }
        }
        Ok(())
    }

    /// The one of this name alone.
    pub(super) fn only(mut self, name: &str) -> Self {
        self.roleset.agents.retain(|agent| agent.name == name);
        self
    }

    /// How they review a diff.
    pub(super) fn setup(&self, args: &ApproveArgs, diff: &[u8]) -> anyhow::Result<RunSetup> {
        let text = String::from_utf8_lossy(diff).into_owned();
        let document = Document { name: "change.diff".to_owned(), text, redacted: false };
        let task = Task { prompt: TASK.to_owned(), documents: vec![document], is_searched: false };
        let seed = args.seed.unwrap_or_else(|| Uuid::now_v7().as_u64_pair().1 >> 11);
        let setup = self.roleset.setup(&self.name, &self.packs, task, seed);
        setup.check().map_err(|why| UsageError(format!("this change cannot be reviewed: {why}")))?;
        Ok(setup)
    }

    /// Finds their models, and starts a server where one is to be started.
    pub(super) async fn opened(
        &self,
        args: &ApproveArgs,
        file: &FileConfig,
        setup: RunSetup,
        dir: &Path,
        output: &Output,
    ) -> anyhow::Result<Beginning> {
        let said = args.answer.as_deref().unwrap_or("approve");
        let script = settings::mock_script(args.mock.mock_script.as_deref(), args.mock.mock.then_some(said))?;
        let mut chosen = settings::chosen(&args.server, script);
        let command = launch_command(&chosen, file, Some(&self.roleset))?;
        let server =
            launch::launch(command.as_ref(), &mut chosen, file, &dir.join(launch::LOG), output).await?;
        let endpoints = resolve_endpoints(&chosen, file, &self.roleset).await?;
        let limits = settings::limits(&args.limits);
        settings::check_prices(limits, &endpoints)?;
        let program = PROGRAM.to_owned();
        let (library, session, cell) = (None, None, None);
        let opened = RunSpec { program, setup, endpoints, limits, library, redacted: false, session, cell };
        Ok((opened, server))
    }
}

/// A review of a change by this very setup that was begun in a run folder, to be gone on with.
pub(super) fn begun(dir: &Path, setup: &RunSetup) -> Option<(Writer, Journal)> {
    let (writer, journal) = Writer::reopen(dir).ok()?;
    let ledger = RunState::replay(&journal.records).ok()?;
    is_by(&ledger, setup).then_some((writer, journal))
}

/// Whether a review was made by this setup; draws aside, which differ from run to run.
fn is_by(ledger: &RunState, setup: &RunSetup) -> bool {
    let made = &ledger.opened().setup;
    RunSetup { seed: made.seed, ..setup.clone() } == *made
}

/// Lets the reviewers read the change, or go on with a review that was begun.
pub(super) async fn review(
    (opened, server): Beginning,
    earlier: Option<(Writer, Journal)>,
    dir: &Path,
    id: &Uuid,
    began: Instant,
    stop: watch::Receiver<StopRequest>,
    output: &Output,
) -> anyhow::Result<ReviewedRun> {
    run::introduce(output, &opened, None, id);
    let story = ProgressPrinter::new(*output);
    let mut engine = match earlier {
        Some((writer, journal)) => {
            let has_ended =
                RunState::replay(&journal.records).is_ok_and(|l| answer::is_complete(l.outcome()));
            let RunSpec { limits, endpoints, .. } = opened;
            let now = Changes { limits: Some(limits), endpoints: Some(endpoints), library: None };
            Engine::resume(writer, &journal, if has_ended { Changes::default() } else { now }, &story)?
        }
        None => Engine::start(dir, &id.to_string(), opened, &story)?,
    };
    engine.count_from(began);
    let (result, written) = run::finish(&mut engine, server, stop, dir, &story, output).await?;
    written?;
    // A review that had ended was made where its journal says, wherever models are called today.
    let endpoints = engine.ledger().endpoints().to_vec();
    Ok(ReviewedRun { result, endpoints })
}

/// Takes a review that was made before: of the very same diff, by the same roleset.
pub(super) fn reviewed(args: &ApproveArgs, setup: &RunSetup) -> anyhow::Result<ReviewedRun> {
    let which = args::RunRef { run: args.review.clone(), last: false, runs_dir: args.runs_dir.clone() };
    let dir = locate::run_folder(&which)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let ledger = RunState::replay(&journal.records)
        .map_err(|(line, why)| IntegrityError(format!("the journal's line {line} does not verify: {why}")))?;
    if !is_by(&ledger, setup) {
        let why = format!(
            "the run `{}` is no review of this change by this roleset; review it anew",
            dir.display()
        );
        return Err(UsageError(why).into());
    }
    let result = RunResult::new(&ledger, journal.head);
    Ok(ReviewedRun { result, endpoints: ledger.endpoints().to_vec() })
}
