//! `consensus approve`: a change is reviewed, decided on by a quorum, and brought onto its branch.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Context as _;
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::approve_args::ApproveArgs;
use super::error::UsageError;
use super::output::{Format, Output};
use super::progress::Story;
use super::{ExitCode, answer, block_on, launch, metrics, quorum, run, settings, signals};
use crate::config::{FileConfig, launch_command, resolve_endpoints};
use crate::decision::{Checked, Ended, KeyFolder, Ledger, Proposal, Verification};
use crate::engine::{Engine, PROGRAM, StopRequest};
use crate::journal::Opened;
use crate::protocol::approval::{Opinion, Registry};
use crate::protocol::{Document, Params, Section, Setup, Task};
use crate::provider::Endpoint;
use crate::report::{RunResult, sarif, write_whole};
use crate::repository::{Candidate, Repository, RepositoryError, Source};
use crate::text::quote;

/// The roleset of a review that names none.
const ROLESET: &str = "reviewers_f1";

/// What reviewers are asked. The author's own words about a change are not among it.
const TASK: &str = "Decide whether this change may be applied.";

/// What the history says of a change that nobody has named.
const MESSAGE: &str = "Apply a change that was approved by a quorum";

/// The record of a decision inside a run folder, and what the command that verifies a change has said.
const DECISION_FILE: &str = "decision.json";
const VERIFICATION_LOG: &str = "verification.log";

/// The longest patch that is read.
const PATCH_BYTES_MAX: u64 = 4 << 20;

/// Who may read a proof and findings: they are there to be shown. The folder of a run is its owner's alone all the same.
const PUBLIC: u32 = 0o644;

/// Where decisions are made and where they land.
struct Desk<'a> {
    repository: Repository,
    ledger: Ledger,
    runs: PathBuf,
    copy: Option<&'a Path>,
    output: &'a Output,
}

pub(super) fn approve(args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let file = FileConfig::load()?;
    let repository = Repository::open(&args.repo)?;
    let branch = repository.branch(&args.base)?;
    let keys = KeyFolder::open(&args.keys)?;
    let chain = repository.identity(&repository.commit_of(&branch)?)?;
    let registry = Arc::new(Registry::new(chain, keys.roster().clone())?);
    let roster: String = registry.digest().to_string().chars().take(16).collect();
    let place = repository.folder().join("consensus").join(roster);
    let ledger = Ledger::open(&place, &registry, &keys)?;
    let runs = settings::runs_dir(args.runs_dir.as_ref(), &file);
    let mut desk = Desk { repository, ledger, runs, copy: args.output.as_deref(), output };
    let finished = desk.finish_what_was_begun()?;
    let candidate = match (candidate(args, &desk.repository), finished) {
        // It was this very change that was begun.
        (Err(why), Some(said)) if changes_nothing(&why) => return desk.tell(&said),
        (candidate, _) => candidate?,
    };
    let setup = setup(args, &file, &candidate, &keys)?;
    // Before anybody is paid for a review that could not land.
    desk.repository.not_checked_out(&branch)?;
    block_on(async {
        let mut stop = signals::listen()?;
        let id = Uuid::now_v7();
        let dir = desk.runs.join(id.to_string());
        let checked = tokio::select! {
            checked = verification(args, &desk.repository, &candidate, &dir, output) => checked?,
            _ = stop.changed() => {
                return Err(super::error::Interrupted("before anybody was asked; nothing was decided").into());
            }
        };
        let verification = match checked {
            Some(Checked::Passed(passed)) => Some(passed),
            Some(Checked::Failed { how, said }) => return unverified(output, &dir, &how, &said),
            None => None,
        };
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let message = args.message.clone().unwrap_or_else(|| MESSAGE.to_owned());
        let proposal = Proposal::new(&candidate, branch, at, message, setup.roleset.clone(), verification)?;
        // It is known to be short enough before it is reviewed.
        proposal.change()?;
        let (result, endpoints) = review(args, &file, setup, &dir, &id, began, stop, output).await?;
        tell_quorum(output, &desk.ledger, &endpoints);
        if let (Some(path), Section::Approval(section)) = (&args.sarif, &result.section) {
            let text = serde_json::to_string_pretty(&sarif(section))? + "\n";
            write_whole(path, &text, PUBLIC).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        let code = desk.decide(&proposal, &result, &id)?;
        metrics::write(args.metrics_file.as_deref(), &dir, output);
        Ok(code)
    })?
}

fn changes_nothing(why: &anyhow::Error) -> bool {
    matches!(why.downcast_ref(), Some(RepositoryError::Nothing(_)))
}

/// Reads the change: a patch in a file or on stdin, or what a branch has done.
fn candidate(args: &ApproveArgs, repository: &Repository) -> anyhow::Result<Candidate> {
    let is_stdin = args.change == "-";
    let path = Path::new(&args.change);
    if !is_stdin && !path.is_file() {
        if repository.branch(&args.change).is_err() && repository.commit_of(&args.change).is_err() {
            let why = format!("`{}` is neither a file with a patch nor a branch", args.change);
            return Err(UsageError(why).into());
        }
        return Ok(repository.candidate(&args.base, Source::Branch(&args.change))?);
    }
    let mut bytes = Vec::new();
    let limit = PATCH_BYTES_MAX + 1;
    let read = if is_stdin {
        std::io::stdin().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("cannot read the patch `{}`", args.change))?;
    if bytes.len() as u64 > PATCH_BYTES_MAX {
        let why =
            format!("the patch `{}` is longer than {PATCH_BYTES_MAX} bytes; make several of it", args.change);
        return Err(UsageError(why).into());
    }
    Ok(repository.candidate(&args.base, Source::Patch(&bytes))?)
}

fn setup(
    args: &ApproveArgs,
    file: &FileConfig,
    candidate: &Candidate,
    keys: &KeyFolder,
) -> anyhow::Result<Setup> {
    let named = args.roleset.clone().unwrap_or_else(|| ROLESET.to_owned());
    let (name, mut roleset, packs) = settings::roleset(Some(&named), args.rolesets_dir.as_ref(), file)?;
    if !matches!(roleset.params, Params::Approval(_)) {
        let why = format!(
            "`{name}` is a roleset of `{}`, and a change is reviewed by one of `approval`",
            roleset.params.protocol()
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
    let text = String::from_utf8_lossy(&candidate.diff).into_owned();
    let document = Document { name: "change.diff".to_owned(), text, redacted: false };
    let task = Task { prompt: TASK.to_owned(), documents: vec![document], is_searched: false };
    let seed = args.seed.unwrap_or_else(|| Uuid::now_v7().as_u64_pair().1 >> 11);
    let setup = roleset.setup(&name, &packs, task, seed);
    setup.check().map_err(|why| UsageError(format!("this change cannot be reviewed: {why}")))?;
    Ok(setup)
}

/// Runs the command that must succeed on the tree, if there is one.
async fn verification(
    args: &ApproveArgs,
    repository: &Repository,
    candidate: &Candidate,
    dir: &Path,
    output: &Output,
) -> anyhow::Result<Option<Checked>> {
    let Some(command) = &args.verify else { return Ok(None) };
    settings::private_folder(dir)?;
    let log = dir.join(VERIFICATION_LOG);
    output.tell(&quote::terminal(&format!("verify: {command}")));
    let guard = std::env::current_exe().context("this program cannot be found")?;
    let (tree, time) = (&candidate.tree, args.verify_timeout);
    Ok(Some(Verification::run(&guard, command, repository, tree, time, &log).await?))
}

fn unverified(output: &Output, dir: &Path, how: &str, said: &str) -> anyhow::Result<ExitCode> {
    output.insist(&quote::terminal(said));
    let reason = format!("the verification failed: {how}");
    output.insist(&format!(
        "not proposed: {reason}; all it said is in {}",
        dir.join(VERIFICATION_LOG).display()
    ));
    if output.format != Format::Text {
        output.json(&json!({"outcome": "unverified", "reason": reason}))?;
    }
    Ok(ExitCode::NoAgreement)
}

/// Lets the reviewers read the change.
#[expect(clippy::too_many_arguments, reason = "each is another thing of the run")]
async fn review(
    args: &ApproveArgs,
    file: &FileConfig,
    setup: Setup,
    dir: &Path,
    id: &Uuid,
    began: Instant,
    stop: watch::Receiver<StopRequest>,
    output: &Output,
) -> anyhow::Result<(RunResult, Vec<Endpoint>)> {
    let roleset = args.roleset.clone().unwrap_or_else(|| ROLESET.to_owned());
    let (_, roleset, _) = settings::roleset(Some(&roleset), args.rolesets_dir.as_ref(), file)?;
    let said = args.answer.as_deref().unwrap_or("approve");
    let script = settings::mock_script(args.mock_script.as_deref(), args.mock.then_some(said))?;
    let mut chosen = settings::chosen(&args.server, script);
    let command = launch_command(&chosen, file, Some(&roleset))?;
    let server = launch::launch(command.as_ref(), &mut chosen, file, dir, output).await?;
    let endpoints = resolve_endpoints(&chosen, file, &roleset).await?;
    let limits = settings::limits(&args.limits);
    settings::check_prices(limits, &endpoints)?;
    let opened = Opened {
        program: PROGRAM.to_owned(),
        setup,
        endpoints: endpoints.clone(),
        limits,
        library: None,
        redacted: false,
    };
    run::introduce(output, &opened, id);
    let story = Story::new(*output);
    let mut engine = Engine::start(dir, &id.to_string(), opened, &story)?;
    engine.count_from(began);
    let (result, written) = run::finish(&mut engine, server, stop, dir, &story, output).await?;
    written?;
    Ok((result, endpoints))
}

/// Says what the quorum bears, and what its keys are worth.
fn tell_quorum(output: &Output, ledger: &Ledger, endpoints: &[Endpoint]) {
    let models: Vec<String> = endpoints.iter().map(Endpoint::label).collect();
    output.tell(&format!("quorum: {}", quorum::in_words(ledger.registry().quorum(), &models)));
    output.tell("keys: all are in this process, so that this proves nothing against whoever runs it");
}

impl Desk<'_> {
    /// Brings a decision that an earlier process has begun to its end.
    fn finish_what_was_begun(&mut self) -> anyhow::Result<Option<Json>> {
        let Some(case) = self.ledger.case() else { return Ok(None) };
        self.output
            .insist(&format!("decision {} was begun before, and is brought to its end first", case.sequence));
        self.conclude().map(Some)
    }

    /// Decides on a change that was reviewed.
    fn decide(&mut self, proposal: &Proposal, result: &RunResult, id: &Uuid) -> anyhow::Result<ExitCode> {
        let Section::Approval(section) = &result.section else {
            anyhow::bail!("the run is no review; that is an error of this program");
        };
        match result.outcome {
            "agreed" | "no_agreement" => {}
            // One reviewer can stop a change if the roleset says so: it is not proposed at all.
            outcome => {
                let reason = result.reason.clone().unwrap_or_default();
                self.output.tell(&format!("not proposed: {}", quote::terminal(&reason)));
                if self.output.format != Format::Text {
                    self.output.json(&json!({"outcome": outcome, "reason": reason, "run": result.run}))?;
                }
                return Ok(answer::exit_code(result, false));
            }
        }
        let opinions: Vec<Opinion> = section.reviews.iter().map(|review| review.opinion.clone()).collect();
        self.ledger.begin(proposal, opinions, &id.to_string())?;
        let said = self.conclude()?;
        self.tell(&said)
    }

    /// Prints how a decision ended.
    fn tell(&self, said: &Json) -> anyhow::Result<ExitCode> {
        let code = if said["outcome"] == "landed" { ExitCode::Success } else { ExitCode::NoAgreement };
        if self.output.format == Format::Text {
            let outcome = said["outcome"].as_str().unwrap_or_default();
            self.output.line(said["commit"].as_str().unwrap_or(outcome))?;
        } else {
            self.output.json(said)?;
        }
        Ok(code)
    }

    /// Decides on the case that is open, does what follows, and closes it.
    fn conclude(&mut self) -> anyhow::Result<Json> {
        let case = self.ledger.decide()?.clone();
        let registry = self.ledger.registry();
        let is_approved = case.is_approved(registry)?.unwrap_or(false);
        let record = case.record.as_ref().context("a decision has a record")?;
        let dir = self.runs.join(&case.run);
        settings::private_folder(&dir)?;
        let text = serde_json::to_string_pretty(record)? + "\n";
        let file = dir.join(DECISION_FILE);
        for path in std::iter::once(file.as_path()).chain(self.copy) {
            write_whole(path, &text, PUBLIC).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        let verified = record.verify(registry.roster())?;
        let ended = if is_approved { case.land(&self.repository, registry)? } else { Ended::Rejected };
        self.ledger.close(ended.clone())?;
        let (outcome, commit, reason) = match &ended {
            Ended::Landed { commit } => ("landed", Some(commit), None),
            Ended::NotLanded { why } => ("not_landed", None, Some(why.clone())),
            Ended::Rejected => (
                "rejected",
                None,
                Some("fewer reviewers approve than a quorum; nothing is decided to be done".to_owned()),
            ),
        };
        let branch = &case.proposal.branch;
        let (sequence, file) = (case.sequence, file.display());
        let detail = commit.map_or_else(String::new, |commit| format!(" on {branch} by {commit}"));
        let why = reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        self.output.tell(&quote::terminal(&format!(
            "decision {sequence}: {}{detail}{why}",
            outcome.replace('_', " ")
        )));
        self.output
            .tell(&format!("proof: {file}; `consensus verify {file} --keys DIR` needs the public keys only"));
        Ok(json!({
            "outcome": outcome,
            "reason": reason,
            "sequence": sequence,
            "change": verified.change,
            "branch": branch,
            "base": case.proposal.base,
            "commit": commit,
            "signed_by": verified.signed_by,
            "votes": verified.votes,
            "run": case.run,
            "decision": file.to_string(),
        }))
    }
}
