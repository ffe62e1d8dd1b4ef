//! `consensus approve`: a change is reviewed, decided on by a quorum, and brought onto its branch.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Context as _;
use serde_json::json;
use tokio::sync::watch;
use uuid::Uuid;

use super::answer::AnswerFile;
use super::approve_args::ApproveArgs;
use super::bench::Bench;
use super::desk::{Desk, Phases, write_public};
use super::error::{Interrupted, TooLate, UsageError};
use super::global::Format;
use super::output::Output;
use super::place::{DecisionPlace, VERIFICATION_LOG, verified};
use super::reading::{self, ReviewedRun, Reviewers, review};
use super::runtime::block_on;
use super::{metrics, quorum, replica, settings, signals};
use crate::bft::Registry;
use crate::config::FileConfig;
use crate::core::{Endpoint, ExitCode};
use crate::decision::facts::{Facts, Reports};
use crate::decision::{Checked, CommandVerification, DecisionLog, Proposal, ProposalDraft, Reader};
use crate::engine::StopRequest;
use crate::protocol::{RunSetup, Section};
use crate::report::sarif;
use crate::repository::{Candidate, ChangeSource, Repository, RepositoryError};
use crate::text::escape;

/// The longest patch that is read.
const PATCH_BYTES_MAX: u64 = 4 << 20;

/// What a signal or a deadline leaves before the review.
const UNBEGUN: &str = "before anybody was asked; nothing was decided";

/// What one leaves of a decision among processes.
const UNDER_WAY: &str = "while others decide; the same command goes on with it, and so do they";

/// What a signal leaves of a change that was reviewed.
const UNDECIDED: &str = "after the review and before the decision; nothing was decided, and --review RUN decides with the same words";

/// The roleset in the record of a change whose reviewers each have their own.
const OWN_ROLESETS: &str = "each reviewer's own";

/// A change as it was given.
enum Given {
    Patch(Vec<u8>),
    Branch(String),
}

pub(super) fn approve(args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    keep_secrets();
    block_on(async {
        match &args.replica {
            Some(name) => replica::serve(name, args, output).await,
            None => propose(args, output).await,
        }
    })?
}

/// One who proposes a change.
struct Proposer<'a> {
    args: &'a ApproveArgs,
    output: &'a Output,
    file: FileConfig,
    desk: Desk<'a>,
    registry: Arc<Registry>,
    /// Where the record is copied to.
    copy: AnswerFile,
    began: Instant,
    stop: watch::Receiver<StopRequest>,
}

/// The run in which a change is proposed.
struct Run {
    id: Uuid,
    dir: PathBuf,
}

async fn propose(args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening = signals::listen(UNBEGUN, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let DecisionPlace { repository, branch, keys, registry, addresses } = DecisionPlace::open(args)?;
    let addresses = addresses.as_ref();
    let mut ledger = DecisionLog::open(&registry, &keys, Bench::sitting(addresses))?;
    // Keys that were copied without their ledger sign nothing, nor end what was begun.
    ledger.agrees_with(&repository, &branch, args.ledger_starts_at)?;
    let runs = settings::runs_dir(args.runs_dir.as_ref(), &file);
    let given = given(args, &repository)?;
    let copy = AnswerFile::open(args.output.as_deref())?;
    let bench = Bench::open(&ledger, &keys, &registry, addresses, args.listen.as_deref(), output).await?;
    let desk = Desk { repository, ledger, bench, with_checkout: args.checkout, runs, output };
    let stop = listening.begin();
    let mut proposer = Proposer { args, output, file, desk, registry, copy, began, stop };
    if let Some(code) = proposer.finish_what_was_begun(&given).await? {
        return Ok(code);
    }
    let candidate = candidate(&proposer.desk.repository, &branch, &given)?;
    let reviewers = Reviewers::of(args, &proposer.file, &keys)?;
    reviewers.rules_are_of(&proposer.desk.repository, &candidate.base, args)?;
    let setup = reviewers.setup(args, &candidate.diff)?;
    proposer.can_land(&branch)?;
    proposer.copy.empty()?;
    let id = Uuid::now_v7();
    let run = Run { dir: proposer.desk.runs.join(id.to_string()), id };
    let verification = match proposer.verify(&candidate, &run).await? {
        Some(Checked::Passed(passed)) => Some(passed),
        Some(Checked::Failed { how, said }) => return unverified(output, &run.dir, &how, &said),
        None => None,
    };
    let roleset = if addresses.is_some() { OWN_ROLESETS.to_owned() } else { setup.roleset.clone() };
    let proposal = proposer.draft(&candidate, &run, branch, roleset, verification)?;
    if addresses.is_some() {
        proposer.decide_apart(&proposal, &run).await
    } else {
        proposer.decide_together(proposal, &run, &reviewers, setup).await
    }
}

impl Proposer<'_> {
    /// Brings what an earlier process has begun to its end. That is all there is to do if it was this very change.
    async fn finish_what_was_begun(&mut self, given: &Given) -> anyhow::Result<Option<ExitCode>> {
        let finished = tokio::select! {
            finished = self.desk.finish_what_was_begun() => finished?,
            why = cut_off(self.args, self.began, &mut self.stop, UNDER_WAY) => return Err(why),
        };
        let Some((proposal, ended)) = finished else { return Ok(None) };
        // The same words after a crash mean the same change.
        let again = candidate(&self.desk.repository, proposal.base.as_str(), given);
        if !again.is_ok_and(|again| again.tree == proposal.tree) {
            return Ok(None);
        }
        self.copy.empty()?;
        self.copy.write_text(&ended.proof)?;
        self.desk.tell(&ended.said).map(Some)
    }

    /// Checks what can be known before anybody is paid for a review that could not land, and before a key signs twice at one place.
    fn can_land(&self, branch: &str) -> anyhow::Result<()> {
        if self.args.checkout {
            self.desk.repository.is_clean(branch)?;
        } else {
            self.desk.repository.not_checked_out(branch)?;
        }
        Ok(self.desk.repository.not_marked(&self.desk.ledger.next_mark())?)
    }

    async fn verify(&mut self, candidate: &Candidate, run: &Run) -> anyhow::Result<Option<Checked>> {
        tokio::select! {
            checked = verified(self.args, &self.desk.repository, &candidate.tree, &run.dir, self.output) => checked,
            why = cut_off(self.args, self.began, &mut self.stop, UNBEGUN) => Err(why),
        }
    }

    /// Says what is proposed.
    fn draft(
        &self,
        candidate: &Candidate,
        run: &Run,
        branch: String,
        roleset: String,
        verification: Option<CommandVerification>,
    ) -> anyhow::Result<Proposal> {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let message = self.args.message.clone().unwrap_or_default();
        let is_verified = verification.is_some();
        let facts = facts(self.args, candidate, &self.desk.repository, is_verified, self.output)?;
        let draft = ProposalDraft { run: run.id.to_string(), at, branch, message, roleset };
        let proposal = Proposal::new(candidate, draft, verification, facts)?;
        // It is known to be short enough before it is reviewed.
        proposal.change()?;
        Ok(proposal)
    }

    /// Has reviewers decide that are in processes of their own.
    async fn decide_apart(&mut self, proposal: &Proposal, run: &Run) -> anyhow::Result<ExitCode> {
        let phases = Phases { proposed: self.began.elapsed(), ..Phases::default() };
        settings::private_folder(&run.dir)?;
        self.tell_quorum(&quorum::declared(&self.registry));
        let id = run.id.to_string();
        let code = tokio::select! {
            code = self.desk.decide(proposal, Vec::new(), &id, phases, &mut self.copy) => code?,
            why = cut_off(self.args, self.began, &mut self.stop, UNDER_WAY) => return Err(why),
        };
        metrics::write(self.args.metrics_file.as_deref(), &run.dir, self.output);
        Ok(code)
    }

    /// Has the change reviewed in this process, or takes the review that was made, and decides.
    async fn decide_together(
        &mut self,
        proposal: Proposal,
        run: &Run,
        reviewers: &Reviewers,
        setup: RunSetup,
    ) -> anyhow::Result<ExitCode> {
        let (args, output, began) = (self.args, self.output, self.began);
        let proposed = began.elapsed();
        let names: Vec<String> = setup.agents.iter().map(|agent| agent.name.clone()).collect();
        let reviewed = if args.review.is_some() {
            reading::reviewed(args, &setup)?
        } else {
            let opened = tokio::select! {
                opened = reviewers.opened(args, &self.file, setup, &run.dir, output) => opened?,
                why = cut_off(args, began, &mut self.stop, UNBEGUN) => return Err(why),
            };
            review(opened, None, &run.dir, &run.id, began, self.stop.clone(), output).await?
        };
        let ReviewedRun { result, endpoints } = &reviewed;
        if matches!(result.outcome, "agreed" | "no_agreement") && *self.stop.borrow() != StopRequest::None {
            return Err(Interrupted(UNDECIDED).into());
        }
        let models: Vec<_> = endpoints.iter().map(|endpoint| Some(endpoint.model().to_owned())).collect();
        self.tell_quorum(&models);
        if let (Some(path), Section::Approval(section)) = (&args.sarif, &result.section) {
            write_public(path, &(serde_json::to_string_pretty(&sarif(section))? + "\n"))?;
        }
        let labels = endpoints.iter().map(Endpoint::label);
        let readers = names.into_iter().zip(labels).map(|(name, model)| Reader { name, model });
        let proposal = proposal.read_by(readers.collect(), result.journal_head);
        let phases = Phases { proposed, reviewed: began.elapsed().saturating_sub(proposed) };
        let code = self.desk.decide_reviewed(&proposal, &reviewed, phases, &mut self.copy).await?;
        metrics::write(args.metrics_file.as_deref(), &self.desk.runs.join(&result.run), output);
        Ok(code)
    }

    fn tell_quorum(&self, models: &[Option<String>]) {
        let quorum = quorum::in_words(self.registry.quorum(), models);
        self.output.tell(&escape::terminal(&format!("quorum: {quorum}")));
    }
}

/// What code knows of a change, with what other tools have reported on it.
fn facts(
    args: &ApproveArgs,
    candidate: &Candidate,
    repository: &Repository,
    is_verified: bool,
    output: &Output,
) -> anyhow::Result<Facts> {
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path)
            .map_err(|why| UsageError(format!("cannot read `{}`: {why}", path.display())))
    };
    let coverage = args.coverage.as_ref().map(read).transpose()?;
    let findings = args.findings.as_ref().map(read).transpose()?;
    let facts = Facts::of(candidate, repository, is_verified, &Reports { coverage, findings })?;
    let reasons = facts.risk.reasons.join("; ");
    output.tell(&escape::terminal(&format!("risk: {} of 100  {reasons}", facts.risk.score)));
    Ok(facts)
}

/// Resolves when the deadline has come, or a signal.
async fn cut_off(
    args: &ApproveArgs,
    began: Instant,
    stop: &mut watch::Receiver<StopRequest>,
    what: &'static str,
) -> anyhow::Error {
    tokio::select! {
        () = settings::deadline(&args.limits, began) => TooLate(what).into(),
        _ = stop.changed() => Interrupted(what).into(),
    }
}

/// Keeps what is in this process, such as keys for providers, from the programs of the same user that a change may bring.
fn keep_secrets() {
    // A system that refuses has other walls or none; there is nothing to do about it.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// Reads the change: a patch in a file or on stdin, or the name of a branch.
fn given(args: &ApproveArgs, repository: &Repository) -> anyhow::Result<Given> {
    let change = args.change.as_deref().unwrap_or("-");
    let is_stdin = change == "-";
    let path = Path::new(change);
    if !is_stdin && !path.is_file() {
        let branch = match repository.branch(change) {
            Err(RepositoryError::NoBranch(_)) => {
                let why = format!("`{change}` is neither a file with a patch nor a branch");
                return Err(UsageError(why).into());
            }
            branch => branch?,
        };
        return Ok(Given::Branch(branch));
    }
    let mut bytes = Vec::new();
    let limit = PATCH_BYTES_MAX + 1;
    let read = if is_stdin {
        std::io::stdin().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("cannot read the patch `{change}`"))?;
    if bytes.len() as u64 > PATCH_BYTES_MAX {
        let why = format!("the patch `{change}` is longer than {PATCH_BYTES_MAX} bytes; make several of it");
        return Err(UsageError(why).into());
    }
    Ok(Given::Patch(bytes))
}

fn candidate(repository: &Repository, base: &str, given: &Given) -> Result<Candidate, RepositoryError> {
    let source = match given {
        Given::Patch(bytes) => ChangeSource::Patch(bytes),
        Given::Branch(branch) => ChangeSource::Branch(branch),
    };
    repository.candidate(base, source)
}

fn unverified(output: &Output, dir: &Path, how: &str, said: &str) -> anyhow::Result<ExitCode> {
    let (reason, log) = (format!("the verification failed: {how}"), dir.join(VERIFICATION_LOG));
    if !said.is_empty() {
        output.insist(&escape::terminal(said));
    }
    output.insist(&format!("not proposed: {reason}; all it said is in {}", log.display()));
    if output.format == Format::Text {
        output.line("unverified")?;
    } else {
        output.json(&json!({"outcome": "unverified", "reason": reason, "log": log.display().to_string()}))?;
    }
    Ok(ExitCode::NoAgreement)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn other_programs_of_the_same_user_cannot_look_into_this_process() {
        super::keep_secrets();
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
    }
}
