//! `consensus approve --replica NAME`: one reviewer in a process of its own.
//!
//! It has its own copy of the repository, its own key, its own model, and trusts nobody's word: it makes the tree from the
//! diff itself, reads it, runs its own command on it if it would approve, and votes on what it has seen.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::approve_args::ApproveArgs;
use super::bench::{Seated, tell_missing};
use super::desk::write_public;
use super::error::UsageError;
use super::global::Format;
use super::output::Output;
use super::place::{DecisionPlace, verified};
use super::reading::{ReviewedRun, Reviewers, begun, review};
use super::{settings, signals};
use crate::bft::node_machine::NodeAction;
use crate::bft::{
    Change, Letter, ModelOpinion, OPINION_BYTES_MAX, Opinion, Post, Registry, Sequence, Severity, Signed,
    Value, Vote,
};
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::crypto::{Digest, Signature};
use crate::decision::{
    Beside, Checked, Examined, LedgerMatch, ORCHESTRATOR, Proposal, compare, told as told_by,
};
use crate::engine::StopRequest;
use crate::peer::{Patience, Peer, ReviewerNode, Unreached};
use crate::protocol::Section;
use crate::report::write_whole;
use crate::repository::{Oid, Repository};
use crate::text::escape;

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
    registry: Arc<Registry>,
    /// Where its owner has said that its log starts.
    starts_at: Option<Sequence>,
    /// The last place that the branch tells of, when it was at this commit.
    landed: RefCell<Option<(Oid, Sequence)>>,
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
    let DecisionPlace { repository, branch, keys, registry, addresses } = DecisionPlace::open(args)?;
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
    if let Some(remote) = &args.fetch {
        fetch(&repository, &branch, remote, output).await;
    }
    let seat = Seated::take(name, &keys, &registry, &addresses, args.listen.as_deref()).await?;
    let Seated { mut peer, mut inbox, connections, folder, heard_at } = seat;
    let place = Beside { place: &folder, starts_at: args.ledger_starts_at, ..Beside::of(&branch) };
    hold(&mut peer, &repository, &registry, place, output)?;
    let known = peer.known();
    output.tell(&format!("{name}: heard at {heard_at}; decisions known: {known}"));
    let runs = settings::runs_dir(args.runs_dir.as_ref(), &file);
    let mut stop = listening.begin();
    let chair = Chair {
        args,
        file,
        repository,
        branch,
        registry: Arc::clone(&registry),
        starts_at: peer.starts_at(),
        landed: RefCell::new(None),
        reviewers,
        runs,
        folder: folder.clone(),
        stop: stop.clone(),
        turn: Semaphore::new(1),
        output,
    };
    let patience = Patience { review: args.review_timeout, ..Patience::default() };
    let mut failure = None;
    let tell = |want: &NodeAction<Signature>| match told(want, &registry, &folder, output) {
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
        () = tell_missing(&connections, &registry, is_other_version, output) => ExitCode::Success,
    };
    match failure {
        Some(why) => Err(why),
        None => Ok(code),
    }
}

/// Compares the branch with this reviewer's log: a log that is not there, and should be, is not begun anew. One that lacks the end
/// learns it from the others before it signs anything there. What its owner says of it counts from then on.
fn hold(
    peer: &mut Peer,
    repository: &Repository,
    registry: &Registry,
    place: Beside<'_>,
    output: &Output,
) -> anyhow::Result<()> {
    let (branch, said, known) = (place.branch, place.starts_at, peer.known());
    if let (Some(sequence), Some(_)) = (said, peer.starts_at()) {
        peer.start_at(sequence)?;
    }
    let told = told_by(repository, registry, &repository.commit_of(branch)?, None)?;
    let starts_at = peer.starts_at().or(said);
    let beside = Beside { starts_at, known, may_learn: !peer.is_new(), is_reviewer: true, ..place };
    let unknown = compare(&told, &beside, |told| match peer.value_at(told.sequence) {
        Some(value) => told.is(value),
        None if told.sequence <= known => LedgerMatch::Same,
        None => LedgerMatch::Nothing,
    })?;
    if let Some(sequence) = said {
        peer.start_at(sequence)?;
    }
    if let Some(last) = unknown {
        peer.hold(last);
        output.insist(&format!(
            "`{branch}` carries decision {last}, and this log knows decisions up to {known}: nothing is signed up to {last} until the \
             others have shown what was decided"
        ));
    }
    Ok(())
}

/// Who is merely away comes back; a party of another version does not by itself.
fn is_other_version(why: &Unreached) -> bool {
    match why {
        Unreached::OtherVersion(_) => true,
        Unreached::Lost(_) => false,
    }
}

/// Gets what has landed elsewhere; a copy that cannot may have it already.
async fn fetch(repository: &Repository, branch: &str, remote: &str, output: &Output) {
    let mut git = Command::from(repository.fetch(remote, branch));
    git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let why = match tokio::time::timeout(FETCH_MAX, git.output()).await {
        Ok(Ok(said)) if said.status.success() => return,
        Ok(Ok(said)) => String::from_utf8_lossy(&said.stderr).trim().to_owned(),
        Ok(Err(why)) => why.to_string(),
        Err(_) => "it takes too long".to_owned(),
    };
    output.insist(&escape::terminal(&format!("cannot fetch from {remote}: {why}")));
}

/// Says what becomes of decisions, and keeps what proves a fraud.
fn told(
    want: &NodeAction<Signature>,
    registry: &Registry,
    folder: &Path,
    output: &Output,
) -> anyhow::Result<()> {
    match want {
        NodeAction::Decide(sequence, proof) => {
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
        NodeAction::Accuse(pair) => {
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
            output.insist(&escape::terminal(&format!(
                "decision {sequence}: {name} has signed two things of which an honest one signs one; both are in {place}"
            )));
        }
        NodeAction::Send(..)
        | NodeAction::Review(..)
        | NodeAction::Wait(..)
        | NodeAction::Tell(..)
        | NodeAction::Return(..)
        | NodeAction::Late(..)
        | NodeAction::Recall(..)
        | NodeAction::Stable(..) => {}
    }
    Ok(())
}

impl ReviewerNode for Chair<'_> {
    async fn review(&self, sequence: Sequence, change: &Change) -> ModelOpinion {
        let turn = self.turn.acquire().await;
        let reading = match self.reading(sequence, change).await {
            Ok(Some(reading)) => reading,
            Ok(None) => {
                self.output.insist(&format!(
                    "decision {sequence}: `{}` carries it already, and this reviewer does not vote on it again",
                    self.branch
                ));
                // Others show how it was decided; until then nothing is said, and other reviews go on.
                drop(turn);
                return std::future::pending().await;
            }
            // A reviewer that cannot review says so, and the others do not wait for it.
            Err(why) => Opinion::Abstain { reason: format!("the review has failed: {why:#}") }.into(),
        };
        if *self.stop.borrow() != StopRequest::None {
            // It was cut off, and is no opinion: the review goes on when this one is back.
            std::future::pending::<()>().await;
        }
        let ModelOpinion { opinion, model } = reading;
        let opinion = bounded(opinion);
        let said = match &opinion {
            Opinion::Approve { .. } => "approved of".to_owned(),
            Opinion::Reject { reason, severity } => format!("rejected ({severity}): {reason}"),
            Opinion::Abstain { reason } => format!("abstained from: {reason}"),
        };
        self.output.tell(&escape::terminal(&format!("decision {sequence}: {said}")));
        ModelOpinion { opinion, model }
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
    /// The last place of a decision of this roster that the branch carries by now; 0, if it carries none.
    fn landed(&self) -> anyhow::Result<Sequence> {
        let tip = self.repository.commit_of(&self.branch)?;
        let before = self.landed.borrow().clone();
        let (since, last) = before.map_or((None, 0), |(tip, last)| (Some(tip), last));
        // Where the branch was moved to another history, all of it is read again.
        let since = match since {
            Some(since) if self.repository.is_ancestor(&since, &tip)? => Some(since),
            Some(_) | None => None,
        };
        let told = told_by(&self.repository, &self.registry, &tip, since.as_ref())?;
        let told = told.iter().find(|told| !told.is_others(self.starts_at)).map_or(0, |told| told.sequence);
        let last = last.max(told);
        self.landed.replace(Some((tip, last)));
        Ok(last)
    }

    /// Reads a change; none, if the branch carries a decision at this place already, or a later one.
    async fn reading(&self, sequence: Sequence, change: &Change) -> anyhow::Result<Option<ModelOpinion>> {
        if let Some(remote) = &self.args.fetch {
            fetch(&self.repository, &self.branch, remote, self.output).await;
        }
        if self.landed()? >= sequence {
            return Ok(None);
        }
        let candidate = match Proposal::examine(change.text(), &self.repository, &self.branch)? {
            Examined::Readable(candidate) => candidate,
            Examined::Settled(opinion) => return Ok(Some(opinion.into())),
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
        let reviewed =
            review(opened, earlier, &dir, &id, Instant::now(), self.stop.clone(), self.output).await?;
        let model = reviewed.model_of(0);
        let opinion = self.opinion(reviewed, &candidate.tree, &dir).await?;
        Ok(Some(ModelOpinion { opinion, model }))
    }

    /// What this reviewer thinks, after its model has reviewed a change, and its own command has run on the tree.
    async fn opinion(&self, reviewed: ReviewedRun, tree: &Oid, dir: &Path) -> anyhow::Result<Opinion> {
        let ReviewedRun { result, .. } = reviewed;
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
        let checked = verified(self.args, &self.repository, tree, dir, self.output).await?;
        if let Some(Checked::Failed { how, .. }) = checked {
            let reason = format!("the command of this reviewer fails on it: {how}");
            return Ok(Opinion::Reject { reason, severity: Severity::High });
        }
        Ok(opinion)
    }
}
