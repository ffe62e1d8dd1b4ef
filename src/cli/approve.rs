//! `consensus approve`: a change is reviewed, decided on by a quorum, and brought onto its branch.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Context as _;
use serde_json::json;
use tokio::sync::watch;
use uuid::Uuid;

use super::answer::AnswerFile;
use super::approve_args::ApproveArgs;
use super::desk::{Desk, write_public};
use super::error::{IntegrityError, Interrupted, TooLate, UsageError};
use super::output::{Format, Output};
use super::progress::Story;
use super::{ExitCode, block_on, launch, locate, metrics, quorum, run, settings, signals};
use crate::config::{FileConfig, Roleset, launch_command, resolve_endpoints};
use crate::decision::{Checked, KeyFolder, Ledger, Proposal, Reader, Verification};
use crate::engine::{Engine, Ledger as RunLedger, PROGRAM, StopRequest};
use crate::journal::{FILE_NAME, Opened, read};
use crate::protocol::approval::Registry;
use crate::protocol::{Document, Params, Section, Setup, Task};
use crate::provider::Endpoint;
use crate::report::{RunResult, sarif};
use crate::repository::{Candidate, Repository, RepositoryError, Source};
use crate::text::quote;

/// The roleset of a review that names none.
const ROLESET: &str = "reviewers_f1";

/// What reviewers are asked. The author's own words about a change are not among it.
const TASK: &str = "Decide whether this change may be applied.";

/// What the command that verifies a change has said, inside a run folder.
const VERIFICATION_LOG: &str = "verification.log";

/// The longest patch that is read.
const PATCH_BYTES_MAX: u64 = 4 << 20;

/// What a signal or a deadline leaves before the review.
const UNBEGUN: &str = "before anybody was asked; nothing was decided";

/// A change as it was given.
enum Given {
    Patch(Vec<u8>),
    Branch(String),
}

/// A review that has ended, and where its models were called.
struct Reviewed {
    result: RunResult,
    endpoints: Vec<Endpoint>,
}

pub(super) fn approve(args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    keep_secrets();
    let file = FileConfig::load()?;
    let repository = Repository::open(&args.repo)?;
    let branch = repository.branch(&args.base)?;
    let keys = KeyFolder::open(&args.keys)?;
    let chain = repository.identity(&repository.commit_of(&branch)?)?;
    let registry = Arc::new(Registry::new(chain, keys.roster().clone())?);
    let ledger = Ledger::open(&registry, &keys)?;
    let runs = settings::runs_dir(args.runs_dir.as_ref(), &file);
    let given = given(args, &repository)?;
    let mut copy = AnswerFile::open(args.output.as_deref())?;
    let mut desk = Desk { repository, ledger, runs, output };
    if let Some((proposal, ended)) = desk.finish_what_was_begun()? {
        // The same words after a crash mean the same change.
        let again = candidate(&desk.repository, proposal.base.as_str(), &given);
        if again.is_ok_and(|again| again.tree == proposal.tree) {
            copy.empty()?;
            copy.write_text(&ended.proof)?;
            return desk.tell(&ended.said);
        }
    }
    let candidate = candidate(&desk.repository, &branch, &given)?;
    let (roleset, setup) = setup(args, &file, &candidate, &keys)?;
    // Before anybody is paid for a review that could not land, and before a key signs twice at one place.
    desk.repository.not_checked_out(&branch)?;
    desk.repository.not_marked(&desk.ledger.next_mark())?;
    block_on(async {
        let mut stop = signals::listen()?;
        copy.empty()?;
        let id = Uuid::now_v7();
        let dir = desk.runs.join(id.to_string());
        let checked = tokio::select! {
            checked = verification(args, &desk.repository, &candidate, &dir, output) => checked?,
            () = settings::deadline(&args.limits, began) => return Err(TooLate(UNBEGUN).into()),
            _ = stop.changed() => return Err(Interrupted(UNBEGUN).into()),
        };
        let proposed = began.elapsed();
        let verification = match checked {
            Some(Checked::Passed(passed)) => Some(passed),
            Some(Checked::Failed { how, said }) => return unverified(output, &dir, &how, &said),
            None => None,
        };
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let message = args.message.clone().unwrap_or_default();
        let names: Vec<String> = setup.agents.iter().map(|agent| agent.name.clone()).collect();
        let proposal = Proposal::new(&candidate, branch, at, message, setup.roleset.clone(), verification)?;
        // It is known to be short enough before it is reviewed.
        proposal.change()?;
        let Reviewed { result, endpoints } = if args.review.is_some() {
            reviewed(args, &setup)?
        } else {
            let opened = tokio::select! {
                opened = opened(args, &file, &roleset, setup, &dir, output) => opened?,
                () = settings::deadline(&args.limits, began) => return Err(TooLate(UNBEGUN).into()),
                _ = stop.changed() => return Err(Interrupted(UNBEGUN).into()),
            };
            review(opened, &dir, &id, began, stop, output).await?
        };
        let models: Vec<String> = endpoints.iter().map(Endpoint::label).collect();
        output.tell(&format!("quorum: {}", quorum::in_words(registry.quorum(), &models)));
        output.tell("keys: all are in this process, so that this proves nothing against whoever runs it");
        if let (Some(path), Section::Approval(section)) = (&args.sarif, &result.section) {
            write_public(path, &(serde_json::to_string_pretty(&sarif(section))? + "\n"))?;
        }
        let readers = names.into_iter().zip(models).map(|(name, model)| Reader { name, model });
        let proposal = proposal.read_by(readers.collect(), result.journal_head);
        let phases = [proposed, began.elapsed().saturating_sub(proposed)];
        let code = desk.decide(&proposal, &result, phases, &mut copy)?;
        metrics::write(args.metrics_file.as_deref(), &desk.runs.join(&result.run), output);
        Ok(code)
    })?
}

/// Keeps what is in this process, such as keys for providers, from the programs of the same user that a change may bring.
fn keep_secrets() {
    // A system that refuses has other walls or none; there is nothing to do about it.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// Reads the change: a patch in a file or on stdin, or the name of a branch.
fn given(args: &ApproveArgs, repository: &Repository) -> anyhow::Result<Given> {
    let is_stdin = args.change == "-";
    let path = Path::new(&args.change);
    if !is_stdin && !path.is_file() {
        let branch = match repository.branch(&args.change) {
            Err(RepositoryError::NoBranch(_)) => {
                let why = format!("`{}` is neither a file with a patch nor a branch", args.change);
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
    read.with_context(|| format!("cannot read the patch `{}`", args.change))?;
    if bytes.len() as u64 > PATCH_BYTES_MAX {
        let why =
            format!("the patch `{}` is longer than {PATCH_BYTES_MAX} bytes; make several of it", args.change);
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

fn setup(
    args: &ApproveArgs,
    file: &FileConfig,
    candidate: &Candidate,
    keys: &KeyFolder,
) -> anyhow::Result<(Roleset, Setup)> {
    let named = args.roleset.clone().unwrap_or_else(|| ROLESET.to_owned());
    let (name, mut roleset, packs) =
        settings::roleset(Some(&named), args.rolesets.rolesets_dir.as_ref(), file)?;
    if !matches!(roleset.params, Params::Approval(_)) {
        let protocol = roleset.params.protocol();
        let why =
            format!("`{name}` is a roleset of `{protocol}`, and a change is reviewed by one of `approval`");
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
    Ok((roleset, setup))
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

/// What a review starts from, with the server that was launched for it.
type Beginning = (Opened, Option<crate::provider::launch::Launched>);

async fn opened(
    args: &ApproveArgs,
    file: &FileConfig,
    roleset: &Roleset,
    setup: Setup,
    dir: &Path,
    output: &Output,
) -> anyhow::Result<Beginning> {
    let said = args.answer.as_deref().unwrap_or("approve");
    let script = settings::mock_script(args.mock.mock_script.as_deref(), args.mock.mock.then_some(said))?;
    let mut chosen = settings::chosen(&args.server, script);
    let command = launch_command(&chosen, file, Some(roleset))?;
    let server = launch::launch(command.as_ref(), &mut chosen, file, dir, output).await?;
    let endpoints = resolve_endpoints(&chosen, file, roleset).await?;
    let limits = settings::limits(&args.limits);
    settings::check_prices(limits, &endpoints)?;
    let program = PROGRAM.to_owned();
    Ok((Opened { program, setup, endpoints, limits, library: None, redacted: false }, server))
}

/// Lets the reviewers read the change.
async fn review(
    (opened, server): Beginning,
    dir: &Path,
    id: &Uuid,
    began: Instant,
    stop: watch::Receiver<StopRequest>,
    output: &Output,
) -> anyhow::Result<Reviewed> {
    run::introduce(output, &opened, id);
    let endpoints = opened.endpoints.clone();
    let story = Story::new(*output);
    let mut engine = Engine::start(dir, &id.to_string(), opened, &story)?;
    engine.count_from(began);
    let (result, written) = run::finish(&mut engine, server, stop, dir, &story, output).await?;
    written?;
    Ok(Reviewed { result, endpoints })
}

/// Takes a review that was made before: of the very same diff, by the same roleset.
fn reviewed(args: &ApproveArgs, setup: &Setup) -> anyhow::Result<Reviewed> {
    let which =
        super::args::RunRef { run: args.review.clone(), last: false, runs_dir: args.runs_dir.clone() };
    let dir = locate::run_folder(&which)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let ledger = RunLedger::replay(&journal.records)
        .map_err(|(line, why)| IntegrityError(format!("the journal's line {line} does not verify: {why}")))?;
    let made = &ledger.opened().setup;
    let is_same = Setup { seed: made.seed, ..setup.clone() } == *made;
    if !is_same {
        let why = format!(
            "the run `{}` is no review of this change by this roleset; review it anew",
            dir.display()
        );
        return Err(UsageError(why).into());
    }
    let result = RunResult::new(&ledger, journal.head);
    Ok(Reviewed { result, endpoints: ledger.endpoints().to_vec() })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn other_programs_of_the_same_user_cannot_look_into_this_process() {
        super::keep_secrets();
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
    }
}
