//! `consensus approve --replica NAME`: one reviewer in a process of its own.
//!
//! It has its own copy of the repository, its own key, its own model, and trusts nobody's word: it makes the tree from the
//! diff itself, reads it, runs its own command on it if it would approve, and votes on what it has seen.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::approve::{Place, verified};
use super::approve_args::ApproveArgs;
use super::bench::Seated;
use super::desk::write_public;
use super::error::UsageError;
use super::output::{Format, Output};
use super::reading::{Reviewed, Reviewers, begun, review};
use super::{ExitCode, settings, signals};
use crate::config::FileConfig;
use crate::crypto::{Digest, Signature};
use crate::decision::{Checked, Examined, ORCHESTRATOR, Proposal};
use crate::engine::StopRequest;
use crate::peer::{Patience, Reviewer};
use crate::protocol::Section;
use crate::protocol::approval::member::Want;
use crate::protocol::approval::{
    Change, Letter, OPINION_BYTES_MAX, Opinion, Post, Registry, Sequence, Severity, Signed, Value, Vote,
};
use crate::report::write_whole;
use crate::repository::Repository;
use crate::text::quote;

/// How long a fetch may take.
const FETCH_MAX: Duration = Duration::from_mins(1);

/// The longest words of an opinion; however they are written, they fit into what others read.
const WORDS_CHARS_MAX: usize = OPINION_BYTES_MAX / 4;

/// A reviewer with what it needs to review.
struct Chair<'a> {
    args: &'a ApproveArgs,
    file: FileConfig,
    repository: Repository,
    branch: String,
    reviewers: Reviewers,
    runs: PathBuf,
    /// Where its log is.
    folder: PathBuf,
    stop: watch::Receiver<StopRequest>,
    /// One review at a time, however many are proposed.
    turn: Semaphore,
    output: &'a Output,
}

/// What a signal leaves of a reviewer that does not listen yet.
const UNSEATED: &str = "before this reviewer took part; it signed nothing";

pub(super) async fn serve(name: &str, args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening = signals::listen(UNSEATED, None, output)?;
    let file = FileConfig::load()?;
    let Place { repository, branch, keys, registry, addresses } = Place::open(args)?;
    let addresses = addresses.context("--replica needs --peers")?;
    if name == ORCHESTRATOR {
        let why = format!("`{name}` proposes and has no vote: leave --replica away, and give a --change");
        return Err(UsageError(why).into());
    }
    let reviewers = Reviewers::of(args, &file, &keys)?.only(name);
    reviewers.rules_are_of(&repository, &repository.commit_of(&branch)?, args)?;
    if args.fetch.is_some() {
        // Git does not fetch into files that somebody works on.
        repository.not_checked_out(&branch)?;
    }
    let seat = Seated::take(name, &keys, &registry, &addresses, args.listen.as_deref()).await?;
    let Seated { mut peer, mut inbox, connections, folder, heard_at } = seat;
    let known = peer.known();
    output.tell(&format!("{name}: heard at {heard_at}; decisions known: {known}"));
    let runs = settings::runs_dir(args.runs_dir.as_ref(), &file);
    let mut stop = listening.begin();
    let chair = Chair {
        args,
        file,
        repository,
        branch,
        reviewers,
        runs,
        folder: folder.clone(),
        stop: stop.clone(),
        turn: Semaphore::new(1),
        output,
    };
    let patience = Patience { review: args.review_timeout, ..Patience::default() };
    let mut failure = None;
    let tell = |want: &Want<Signature>| match told(want, &registry, &folder, output) {
        Ok(()) => ControlFlow::Continue(()),
        Err(why) => {
            failure = Some(why);
            ControlFlow::Break(())
        }
    };
    let code = tokio::select! {
        biased;
        _ = stop.changed() => ExitCode::Interrupted,
        () = settings::deadline(&args.limits, began) => ExitCode::Success,
        ended = peer.run(&mut inbox, &connections, &chair, patience, tell) => {
            ended?;
            ExitCode::Success
        }
    };
    match failure {
        Some(why) => Err(why),
        None => Ok(code),
    }
}

/// Says what becomes of decisions, and keeps what proves a fraud.
fn told(want: &Want<Signature>, registry: &Registry, folder: &Path, output: &Output) -> anyhow::Result<()> {
    match want {
        Want::Decide(sequence, proof) => {
            let value = proof.check(registry.quorum()).map(|proven| proven.value);
            let outcome = match value {
                Some(Value::Change(digest)) => format!("approved: {digest}"),
                Some(Value::Nothing) | None => "not approved".to_owned(),
            };
            output.tell(&format!("decision {sequence}: {outcome}"));
            if output.format != Format::Text {
                output.json(&json!({"sequence": sequence, "value": value}))?;
            }
        }
        Want::Accuse(pair) => {
            let (first, second) = &**pair;
            let post =
                |signed: &Signed<Signature>| registry.write(&Post::Letter(Letter::alone(signed.clone())));
            let posts = [post(first), post(second)];
            let text = format!("[{},\n {}]\n", posts[0], posts[1]);
            let digest = Digest::of(text.as_bytes()).to_string();
            let path = folder.join(format!("accusation-{}-{}.json", first.sequence, &digest[..8]));
            if path.exists() {
                // It was told of before this process began.
                return Ok(());
            }
            write_public(&path, &text)?;
            let (sequence, place) = (first.sequence, path.display());
            let name = registry.name(first.author()).unwrap_or_default();
            output.insist(&quote::terminal(&format!(
                "decision {sequence}: {name} has signed two things of which an honest one signs one; both are in {place}"
            )));
        }
        Want::Send(..)
        | Want::Review(..)
        | Want::Wait(..)
        | Want::Tell(..)
        | Want::Return(..)
        | Want::Late(..)
        | Want::Recall(..)
        | Want::Stable(..) => {}
    }
    Ok(())
}

impl Reviewer for Chair<'_> {
    async fn review(&self, sequence: Sequence, change: &Change) -> Opinion {
        let _turn = self.turn.acquire().await;
        let opinion = self.opinion(change).await.unwrap_or_else(|why| {
            // Whoever cannot review says so, and nobody waits for it.
            Opinion::Abstain { reason: format!("the review has failed: {why:#}") }
        });
        if *self.stop.borrow() != StopRequest::None {
            // It was cut off, and is no opinion: the review goes on when this one is back.
            std::future::pending::<()>().await;
        }
        let opinion = bounded(opinion);
        let said = match &opinion {
            Opinion::Approve { .. } => "approved of".to_owned(),
            Opinion::Reject { reason, severity } => format!("rejected ({severity}): {reason}"),
            Opinion::Abstain { reason } => format!("abstained from: {reason}"),
        };
        self.output.tell(&quote::terminal(&format!("decision {sequence}: {said}")));
        opinion
    }
}

/// An opinion that others will read: its words are not too many.
fn bounded(opinion: Opinion) -> Opinion {
    let bounded = |text: String| text.chars().take(WORDS_CHARS_MAX).collect();
    match opinion {
        Opinion::Approve { confidence, notes } => Opinion::Approve { confidence, notes: bounded(notes) },
        Opinion::Reject { reason, severity } => Opinion::Reject { reason: bounded(reason), severity },
        Opinion::Abstain { reason } => Opinion::Abstain { reason: bounded(reason) },
    }
}

impl Chair<'_> {
    /// Gets what has landed elsewhere; whoever cannot may have it already.
    async fn fetch(&self, remote: &str) {
        let mut git = Command::from(self.repository.fetch(remote, &self.branch));
        git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let why = match tokio::time::timeout(FETCH_MAX, git.output()).await {
            Ok(Ok(said)) if said.status.success() => return,
            Ok(Ok(said)) => String::from_utf8_lossy(&said.stderr).trim().to_owned(),
            Ok(Err(why)) => why.to_string(),
            Err(_) => "it takes too long".to_owned(),
        };
        self.output.insist(&quote::terminal(&format!("cannot fetch from {remote}: {why}")));
    }

    async fn opinion(&self, change: &Change) -> anyhow::Result<Opinion> {
        if let Some(remote) = &self.args.fetch {
            self.fetch(remote).await;
        }
        let candidate = match Proposal::examine(change.text(), &self.repository, &self.branch)? {
            Examined::Readable(candidate) => candidate,
            Examined::Settled(opinion) => return Ok(opinion),
        };
        self.reviewers.rules_are_of(&self.repository, &candidate.base, self.args)?;
        let setup = self.reviewers.setup(self.args, &candidate.diff)?;
        // A review that was begun before this process was killed is gone on with, in its own run.
        let note = self.folder.join(format!("review-{}", change.digest()));
        let noted = std::fs::read_to_string(&note).ok().and_then(|id| id.trim().parse().ok());
        let earlier = noted.and_then(|id: Uuid| Some((id, begun(&self.runs.join(id.to_string()), &setup)?)));
        let (id, earlier) = earlier.map_or_else(|| (Uuid::now_v7(), None), |(id, run)| (id, Some(run)));
        let dir = self.runs.join(id.to_string());
        write_whole(&note, &format!("{id}\n"), 0o600).context("cannot note which run reviews it")?;
        let opened = self.reviewers.opened(self.args, &self.file, setup, &dir, self.output).await?;
        let Reviewed { result, .. } =
            review(opened, earlier, &dir, &id, Instant::now(), self.stop.clone(), self.output).await?;
        let Section::Approval(section) = result.section else {
            anyhow::bail!("the run is no review");
        };
        let is_whole = matches!(result.outcome, "agreed" | "no_agreement" | "vetoed");
        let review = section.reviews.into_iter().next().filter(|_| is_whole);
        let reason = result.reason.unwrap_or_else(|| result.outcome.to_owned());
        let opinion = review.map(|review| review.opinion).with_context(|| reason)?;
        if opinion.vote() != Vote::Approve {
            return Ok(opinion);
        }
        // What it brings is run only once it was read.
        let checked = verified(self.args, &self.repository, &candidate.tree, &dir, self.output).await?;
        if let Some(Checked::Failed { how, .. }) = checked {
            let reason = format!("the command of this reviewer fails on it: {how}");
            return Ok(Opinion::Reject { reason, severity: Severity::High });
        }
        Ok(opinion)
    }
}
