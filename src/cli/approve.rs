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
use super::output::{Format, Output};
use super::reading::{Reviewed, Reviewers, review, reviewed};
use super::{ExitCode, block_on, metrics, quorum, replica, settings, signals};
use crate::config::FileConfig;
use crate::decision::facts::{Facts, Reports};
use crate::decision::{Checked, Draft, KeyFolder, Ledger, Proposal, RUNS_MODEL, Reader, Verification};
use crate::engine::StopRequest;
use crate::peer::Addresses;
use crate::protocol::Section;
use crate::protocol::approval::Registry;
use crate::provider::Endpoint;
use crate::report::sarif;
use crate::repository::{Candidate, Oid, Repository, RepositoryError, Source};
use crate::text::quote;

/// What the command that verifies a change has said, inside a run folder.
const VERIFICATION_LOG: &str = "verification.log";

/// The longest patch that is read.
const PATCH_BYTES_MAX: u64 = 4 << 20;

/// What a signal or a deadline leaves before the review.
const UNBEGUN: &str = "before anybody was asked; nothing was decided";

/// What one leaves of a decision among processes.
const UNDER_WAY: &str = "while others decide; the same command goes on with it, and so do they";

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

/// Where everything is that a decision needs.
pub(super) struct Place {
    pub(super) repository: Repository,
    pub(super) branch: String,
    pub(super) keys: KeyFolder,
    pub(super) registry: Arc<Registry>,
    pub(super) addresses: Option<Addresses>,
}

impl Place {
    pub(super) fn open(args: &ApproveArgs) -> anyhow::Result<Self> {
        let repository = Repository::open(&args.repo)?;
        let branch = repository.branch(&args.base)?;
        let keys = KeyFolder::open(&args.keys)?;
        let chain = repository.identity(&repository.commit_of(&branch)?)?;
        let registry = Arc::new(Registry::new(chain, keys.roster().clone())?);
        let addresses = args.peers.as_deref().map(Addresses::read).transpose()?;
        addresses.iter().try_for_each(|addresses| addresses.check(&registry))?;
        Ok(Self { repository, branch, keys, registry, addresses })
    }
}

async fn propose(args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut stop = signals::listen()?;
    let file = FileConfig::load()?;
    let Place { repository, branch, keys, registry, addresses } = Place::open(args)?;
    let addresses = addresses.as_ref();
    let ledger = Ledger::open(&registry, &keys, Bench::sitting(addresses))?;
    let runs = settings::runs_dir(args.runs_dir.as_ref(), &file);
    let given = given(args, &repository)?;
    let mut copy = AnswerFile::open(args.output.as_deref())?;
    let bench = Bench::open(&ledger, &keys, &registry, addresses, args.listen.as_deref(), output).await?;
    let mut desk = Desk { repository, ledger, bench, with_checkout: args.checkout, runs, output };
    let finished = tokio::select! {
        finished = desk.finish_what_was_begun() => finished?,
        why = cut_off(args, began, &mut stop, UNDER_WAY) => return Err(why),
    };
    if let Some((proposal, ended)) = finished {
        // The same words after a crash mean the same change.
        let again = candidate(&desk.repository, proposal.base.as_str(), &given);
        if again.is_ok_and(|again| again.tree == proposal.tree) {
            copy.empty()?;
            copy.write_text(&ended.proof)?;
            return desk.tell(&ended.said);
        }
    }
    let candidate = candidate(&desk.repository, &branch, &given)?;
    let reviewers = Reviewers::of(args, &file, &keys)?;
    reviewers.rules_are_of(&desk.repository, &candidate.base, args)?;
    let setup = reviewers.setup(args, &candidate.diff)?;
    // Before anybody is paid for a review that could not land, and before a key signs twice at one place.
    if args.checkout {
        desk.repository.is_clean(&branch)?;
    } else {
        desk.repository.not_checked_out(&branch)?;
    }
    desk.repository.not_marked(&desk.ledger.next_mark())?;
    copy.empty()?;
    let id = Uuid::now_v7();
    let dir = desk.runs.join(id.to_string());
    let checked = tokio::select! {
        checked = verified(args, &desk.repository, &candidate.tree, &dir, output) => checked?,
        why = cut_off(args, began, &mut stop, UNBEGUN) => return Err(why),
    };
    let verification = match checked {
        Some(Checked::Passed(passed)) => Some(passed),
        Some(Checked::Failed { how, said }) => return unverified(output, &dir, &how, &said),
        None => None,
    };
    let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let message = args.message.clone().unwrap_or_default();
    let roleset = if addresses.is_some() { OWN_ROLESETS.to_owned() } else { setup.roleset.clone() };
    let facts = facts(args, &candidate, &desk.repository, verification.is_some(), output)?;
    let draft = Draft { run: id.to_string(), at, branch, message, roleset };
    let proposal = Proposal::new(&candidate, draft, verification, facts)?;
    // It is known to be short enough before it is reviewed.
    proposal.change()?;
    let proposed = began.elapsed();
    let phases = Phases { proposed, ..Phases::default() };
    if addresses.is_some() {
        settings::private_folder(&dir)?;
        output.tell(&format!("quorum: {}", quorum::in_words(registry.quorum(), &domains(&registry))));
        let run = id.to_string();
        let code = tokio::select! {
            code = desk.decide(&proposal, Vec::new(), &run, phases, &mut copy) => code?,
            why = cut_off(args, began, &mut stop, UNDER_WAY) => return Err(why),
        };
        metrics::write(args.metrics_file.as_deref(), &dir, output);
        return Ok(code);
    }
    let names: Vec<String> = setup.agents.iter().map(|agent| agent.name.clone()).collect();
    let Reviewed { result, endpoints } = if args.review.is_some() {
        reviewed(args, &setup)?
    } else {
        let opened = tokio::select! {
            opened = reviewers.opened(args, &file, setup, &dir, output) => opened?,
            why = cut_off(args, began, &mut stop, UNBEGUN) => return Err(why),
        };
        review(opened, None, &dir, &id, began, stop, output).await?
    };
    let models: Vec<String> = endpoints.iter().map(Endpoint::label).collect();
    output.tell(&format!("quorum: {}", quorum::in_words(registry.quorum(), &models)));
    if let (Some(path), Section::Approval(section)) = (&args.sarif, &result.section) {
        write_public(path, &(serde_json::to_string_pretty(&sarif(section))? + "\n"))?;
    }
    let readers = names.into_iter().zip(models).map(|(name, model)| Reader { name, model });
    let proposal = proposal.read_by(readers.collect(), result.journal_head);
    let phases = Phases { reviewed: began.elapsed().saturating_sub(proposed), ..phases };
    let code = desk.decide_reviewed(&proposal, &result, phases, &mut copy).await?;
    metrics::write(args.metrics_file.as_deref(), &desk.runs.join(&result.run), output);
    Ok(code)
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
    output.tell(&quote::terminal(&format!("risk: {} of 100  {reasons}", facts.risk.score)));
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

/// What each reviewer fails together with.
fn domains(registry: &Registry) -> Vec<String> {
    // Those whose domain says nothing are taken to differ: their owners know.
    let seats = registry.roster().reviewers.iter();
    seats
        .map(|seat| if seat.domain == RUNS_MODEL { seat.name.clone() } else { seat.domain.clone() })
        .collect()
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
        Given::Patch(bytes) => Source::Patch(bytes),
        Given::Branch(branch) => Source::Branch(branch),
    };
    repository.candidate(base, source)
}

/// Runs the command that must succeed on a tree, if there is one.
pub(super) async fn verified(
    args: &ApproveArgs,
    repository: &Repository,
    tree: &Oid,
    dir: &Path,
    output: &Output,
) -> anyhow::Result<Option<Checked>> {
    let Some(command) = &args.verify else { return Ok(None) };
    settings::private_folder(dir)?;
    let log = dir.join(VERIFICATION_LOG);
    output.tell(&quote::terminal(&format!("verify: {command}")));
    let guard = std::env::current_exe().context("this program cannot be found")?;
    Ok(Some(Verification::run(&guard, command, repository, tree, args.verify_timeout, &log).await?))
}

fn unverified(output: &Output, dir: &Path, how: &str, said: &str) -> anyhow::Result<ExitCode> {
    let (reason, log) = (format!("the verification failed: {how}"), dir.join(VERIFICATION_LOG));
    if !said.is_empty() {
        output.insist(&quote::terminal(said));
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
