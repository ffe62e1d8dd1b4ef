//! `consensus approve --replica NAME`: one reviewer in a process of its own.
//!
//! It has its own copy of the repository, its own key and its own model, and trusts no one's word. It makes the tree from the
//! diff itself, and reads it. It runs its own command on the tree if it would approve. Then it votes on what it has seen.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Semaphore, watch};

use super::decider::write_public;
use super::error::ApprovalError;
use super::history::{Beside, LedgerMatch, compare, told as told_by};
use super::keys::ORCHESTRATOR;
use super::node::{
    BaseState, Connections, Inbox, Inquiry, Node, Patience, Question, Questions, Readiness, ReviewerNode,
    Unreached,
};
use super::proposal::Proposal;
use super::recheck::Examined;
use super::request::{ApprovalRequest, CutOff, passed};
use super::review::{ReviewPlace, ReviewedRun, begun, review};
use super::reviewers::Reviewers;
use super::seat::{Seated, tell_missing};
use super::site::{DecisionSite, sandbox, verified};
use super::upstream::Upstream;
use super::verification::Checked;
use super::watcher::ApprovalWatcher;
use crate::config::FileConfig;
use crate::engine::StopRequest;
use crate::files::{SMALL_BYTES_MAX, read_text, write_whole};
use crate::program::PROGRAM;
use crate::repository::{Oid, Repository};
use crate::run::{Notices, RunId};
use crypto::{Digest, Signature};
use protocol::Section;
use protocol::text::escape;
use quorum::node_machine::NodeAction;
use quorum::{
    Change, Membership, ModelOpinion, OPINION_BYTES_MAX, Opinion, Packet, Sequence, Severity, Signed,
    SignedMessage, Value, Vote,
};

/// The most characters in the text of an opinion. However they are written, they fit into what others read.
const WORDS_CHARS_MAX: usize = OPINION_BYTES_MAX / 4;

/// A reviewer, with everything that it needs to review.
struct ReplicaReviewer<'a> {
    request: &'a ApprovalRequest,
    file: FileConfig,
    repository: Repository,
    upstream: Upstream,
    membership: Arc<Membership>,
    /// The start of its log, as its owner has given it.
    /// The last place that the branch carried when it was at this commit.
    landed: RefCell<Option<(Oid, Sequence)>>,
    reviewers: Reviewers,
    runs: PathBuf,
    /// The folder of its log.
    folder: PathBuf,
    stop: watch::Receiver<StopRequest>,
    /// The permit to review: there is one review at a time, however many changes are proposed.
    turn: Semaphore,
    watcher: &'a dyn ApprovalWatcher,
}

/// A reviewer that is ready to take part.
pub struct ReviewingNode<'a> {
    name: String,
    node: Node,
    inbox: Inbox,
    connections: Connections,
    questions: Questions,
    reviewer: ReplicaReviewer<'a>,
}

impl std::fmt::Debug for ReviewingNode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReviewingNode").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> ReviewingNode<'a> {
    /// Makes the reviewer of this name ready to take part: others can reach it, and its log agrees with its branch. A request
    /// to stop comes through `stop`.
    ///
    /// # Errors
    ///
    /// [`ApprovalError`]. Nothing was signed.
    pub async fn open(
        name: &str,
        request: &'a ApprovalRequest,
        file: FileConfig,
        stop: watch::Receiver<StopRequest>,
        watcher: &'a dyn ApprovalWatcher,
    ) -> Result<Self, ApprovalError> {
        let DecisionSite { repository, branch, keys, membership, addresses } = DecisionSite::open(request)?;
        let needs_peers = || ApprovalError::Usage("--replica needs --peers".to_owned());
        let addresses = addresses.ok_or_else(needs_peers)?;
        if name == ORCHESTRATOR {
            let why = format!("`{name}` proposes and has no vote; leave out --replica, and give a --change");
            return Err(ApprovalError::Usage(why));
        }
        // A reviewer that cannot run its command says so before it takes its seat.
        if request.verify.is_some() {
            sandbox(request).await?;
        }
        let reviewers = Reviewers::read(request, &file, &keys)?.only(name);
        let upstream = Upstream::new(branch, request.fetch.clone());
        upstream.fetch(&repository, watcher).await;
        let tip = upstream.tip(&repository)?;
        reviewers.rules_are_of(&repository, &tip, request)?;
        let seat = Seated::take(name, &keys, &membership, &addresses, request.listen.as_deref()).await?;
        let Seated { mut node, inbox, connections, questions, folder, heard_at } = seat;
        let place =
            Beside { place: &folder, starts_at: request.ledger_starts_at, ..Beside::new(upstream.branch()) };
        hold(&mut node, (&repository, &tip), &membership, place, watcher)?;
        let known = node.known();
        watcher.status(&format!("{name}: heard at {heard_at}; decisions known: {known}"));
        let reviewer = ReplicaReviewer {
            request,
            file,
            repository,
            upstream,
            membership,
            landed: RefCell::new(None),
            reviewers,
            runs: request.runs_dir.clone(),
            folder,
            stop,
            turn: Semaphore::new(1),
            watcher,
        };
        Ok(Self { name: name.to_owned(), node, inbox, connections, questions, reviewer })
    }

    /// Takes part until a signal or the deadline comes. Returns whether a signal came.
    ///
    /// # Errors
    ///
    /// [`ApprovalError`] if the reviewer cannot continue.
    pub async fn run(self, cut: CutOff) -> Result<bool, ApprovalError> {
        let Self { mut node, mut inbox, connections, questions, reviewer, .. } = self;
        let (membership, watcher) = (&reviewer.membership, reviewer.watcher);
        let patience = Patience { review: reviewer.request.review_timeout, ..Patience::default() };
        let mut failure = None;
        let tell = |action: &NodeAction<Signature>| match told(action, membership, &reviewer.folder, watcher)
        {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => {
                failure = Some(why);
                ControlFlow::Break(())
            }
        };
        let CutOff { mut stop, deadline } = cut;
        let is_stopped = tokio::select! {
            biased;
            () = stopped(&mut stop, &reviewer.turn) => true,
            () = passed(deadline) => false,
            ended = node.run(&mut inbox, &connections, &reviewer, patience, tell) => {
                ended?;
                false
            }
            () = tell_missing(&connections, membership, is_other_version, |line| watcher.warn(line)) => false,
            () = reviewer.answer(questions) => false,
        };
        failure.map_or(Ok(is_stopped), Err)
    }
}

/// Resolves when a signal has come and no review is under way any more: the replies of its open calls are paid for and kept.
async fn stopped(stop: &mut watch::Receiver<StopRequest>, turn: &Semaphore) {
    let _ = stop.changed().await;
    let _ = turn.acquire().await;
}

/// Compares the branch with this reviewer's log. A log that is missing, and should be there, is not begun anew. A log that
/// lacks its end learns it from the others before anything is signed there. The start that the owner gives counts from then on.
fn hold(
    node: &mut Node,
    (repository, tip): (&Repository, &Oid),
    membership: &Membership,
    place: Beside<'_>,
    notices: &dyn Notices,
) -> Result<(), ApprovalError> {
    let (branch, said, known) = (place.branch, place.starts_at, node.known());
    if let (Some(sequence), Some(_)) = (said, node.starts_at()) {
        node.start_at(sequence)?;
    }
    let told = told_by(repository, membership, tip, None)?;
    let starts_at = node.starts_at().or(said);
    let beside = Beside { starts_at, known, may_learn: !node.is_new(), is_reviewer: true, ..place };
    let unknown = compare(&told, &beside, |told| match node.value_at(told.sequence) {
        Some(value) => told.is(value),
        None if told.sequence <= known => LedgerMatch::Same,
        None => LedgerMatch::Nothing,
    })?;
    if let Some(sequence) = said {
        node.start_at(sequence)?;
    }
    if let Some(last) = unknown {
        node.hold(last);
        notices.warn(&format!(
            "`{branch}` carries decision {last}, but this log knows decisions up to {known}: nothing is signed up to {last} until the \
             others have shown what was decided"
        ));
    }
    Ok(())
}

/// Returns whether a party speaks another version. It does not come back by itself, as a party does that is merely away.
fn is_other_version(why: &Unreached) -> bool {
    match why {
        Unreached::OtherVersion(_) => true,
        Unreached::Lost(_) => false,
    }
}

/// Reports the outcome of decisions, and keeps the proof of a fraud.
fn told(
    action: &NodeAction<Signature>,
    membership: &Membership,
    folder: &Path,
    watcher: &dyn ApprovalWatcher,
) -> Result<(), ApprovalError> {
    match action {
        NodeAction::Decide(sequence, proof) => {
            let value = proof.check(membership.quorum()).map(|proven| proven.value);
            let outcome = match value {
                Some(Value::Change(digest)) => format!("approved: {digest}"),
                Some(Value::Nothing) | None => "not approved".to_owned(),
            };
            watcher.status(&format!("decision {sequence}: {outcome}"));
            watcher.decided(*sequence, value).map_err(ApprovalError::Printed)?;
        }
        NodeAction::Accuse(pair) => {
            let (first, second) = &**pair;
            let packet = |signed: &Signed<Signature>| {
                membership.write(&Packet::Message(SignedMessage::alone(signed.clone())))
            };
            let packets = [packet(first), packet(second)];
            let text = format!("[{},\n {}]\n", packets[0], packets[1]);
            let digest = Digest::new(text.as_bytes()).to_string();
            let path = folder.join(format!("accusation-{}-{}.json", first.sequence, &digest[..8]));
            if path.exists() {
                // The fraud was reported before this process began.
                return Ok(());
            }
            write_public(&path, &text)?;
            let (sequence, place) = (first.sequence, path.display());
            let name = membership.name(first.author()).unwrap_or_default();
            watcher.warn(&escape::terminal(&format!(
                "decision {sequence}: {name} has signed two statements, of which an honest party signs one; both are in {place}"
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

impl ReviewerNode for ReplicaReviewer<'_> {
    async fn review(&self, sequence: Sequence, change: &Change) -> ModelOpinion {
        let turn = self.turn.acquire().await;
        if self.is_stopped() {
            drop(turn);
            return std::future::pending().await;
        }
        let reading = match self.reading(sequence, change).await {
            Ok(Some(reading)) => reading,
            Ok(None) => {
                self.watcher.warn(&format!(
                    "decision {sequence}: `{}` carries it already, and this reviewer does not vote on it again",
                    self.upstream.branch()
                ));
                // Others show how it was decided. Until then nothing is said, and other reviews continue.
                drop(turn);
                return std::future::pending().await;
            }
            // A reviewer that cannot review says so, and the others do not wait for it.
            Err(why) => {
                Opinion::Abstain { reason: format!("the review has failed: {:#}", anyhow::Error::from(why)) }
                    .into()
            }
        };
        if self.is_stopped() {
            // The review was cut off, and there is no opinion. It continues when this process is back.
            drop(turn);
            return std::future::pending().await;
        }
        let ModelOpinion { opinion, model } = reading;
        let opinion = bounded(opinion);
        let said = match &opinion {
            Opinion::Approve { .. } => "approve".to_owned(),
            Opinion::Reject { reason, severity } => format!("reject ({severity}): {reason}"),
            Opinion::Abstain { reason } => format!("abstain: {reason}"),
        };
        self.watcher.status(&escape::terminal(&format!("decision {sequence}: this reviewer voted {said}")));
        ModelOpinion { opinion, model }
    }
}

/// Returns the opinion of a review that a signal has cut off. It is never sent.
fn cut_off() -> Opinion {
    Opinion::Abstain { reason: "the review was cut off".to_owned() }
}

/// Bounds the text of an opinion that others will read.
fn bounded(opinion: Opinion) -> Opinion {
    let bounded = |text: String| text.chars().take(WORDS_CHARS_MAX).collect();
    match opinion {
        Opinion::Approve { confidence, notes } => Opinion::Approve { confidence, notes: bounded(notes) },
        Opinion::Reject { reason, severity } => Opinion::Reject { reason: bounded(reason), severity },
        Opinion::Abstain { reason } => Opinion::Abstain { reason: bounded(reason) },
    }
}

impl ReplicaReviewer<'_> {
    /// Answers parties that ask whether this one could take part. Never ends.
    async fn answer(&self, mut questions: Questions) {
        while let Some(Question { about, answer }) = questions.recv().await {
            // The party that asked may have gone. Only a commit that git can name is fetched.
            if answer.is_closed() {
                continue;
            }
            let mut state = self.state_of(&about);
            let is_name = Oid::try_from(about.base.clone()).is_ok();
            if state == BaseState::Missing && is_name && self.upstream.has_remote() {
                self.upstream.fetch_when_due(&self.repository, self.watcher).await;
                state = self.state_of(&about);
            }
            let failure = self.upstream.failure().filter(|_| state != BaseState::Known);
            let readiness = Readiness {
                program: PROGRAM.to_owned(),
                base: state,
                verifies: self.request.verify.is_some(),
                review_s: self.request.review_timeout.as_secs(),
                fetch_failed: failure,
            };
            // The party that asked may have gone by now.
            let _ = answer.send(readiness);
        }
        std::future::pending::<()>().await;
    }

    /// Returns the state of a base in this copy. A base that git cannot look up could not be reviewed either.
    fn state_of(&self, Inquiry { base, branch }: &Inquiry) -> BaseState {
        if *branch != self.upstream.branch() {
            return BaseState::OtherBranch;
        }
        let state = || {
            let base = Oid::try_from(base.clone()).ok()?;
            let base = self.repository.commit_of(base.as_str()).ok()?;
            let tip = self.upstream.tip(&self.repository).ok()?;
            let is_ahead = self.repository.is_ancestor(&tip, &base).ok()?;
            Some(if is_ahead { BaseState::Known } else { BaseState::Behind })
        };
        state().unwrap_or(BaseState::Missing)
    }

    /// Resolves when a signal has come. Work that costs nothing is not waited for then.
    async fn signal(&self) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|asked| *asked != StopRequest::None).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns whether a signal has come.
    fn is_stopped(&self) -> bool {
        *self.stop.borrow() != StopRequest::None
    }

    /// Returns the last place of a decision of this roster that the branch carries by now; 0 if it carries none.
    fn landed(&self) -> Result<Sequence, ApprovalError> {
        let tip = self.upstream.tip(&self.repository)?;
        let before = self.landed.borrow().clone();
        let (since, last) = before.map_or((None, 0), |(tip, last)| (Some(tip), last));
        // If the branch was moved to another history, all of it is read again.
        let since = match since {
            Some(since) if self.repository.is_ancestor(&since, &tip)? => Some(since),
            Some(_) | None => None,
        };
        let told = told_by(&self.repository, &self.membership, &tip, since.as_ref())?;
        let told = told.first().map_or(0, |told| told.sequence);
        let last = last.max(told);
        self.landed.replace(Some((tip, last)));
        Ok(last)
    }

    /// Reads a change. Returns `None` if the branch already carries a decision at this place, or a later one.
    async fn reading(
        &self,
        sequence: Sequence,
        change: &Change,
    ) -> Result<Option<ModelOpinion>, ApprovalError> {
        tokio::select! {
            () = self.upstream.fetch(&self.repository, self.watcher) => {}
            () = self.signal() => return Ok(Some(cut_off().into())),
        }
        if self.landed()? >= sequence {
            return Ok(None);
        }
        let (branch, tip) = (self.upstream.branch(), self.upstream.tip(&self.repository)?);
        let candidate = match Proposal::examine(change.text(), &self.repository, branch, &tip)? {
            Examined::Readable(candidate) => candidate,
            Examined::Settled(Opinion::Abstain { reason }) => {
                let failure = self.upstream.failure().map(|why| format!(" ({why})"));
                let reason = reason + &failure.unwrap_or_default();
                return Ok(Some(Opinion::Abstain { reason }.into()));
            }
            Examined::Settled(opinion) => return Ok(Some(opinion.into())),
        };
        self.reviewers.rules_are_of(&self.repository, &candidate.base, self.request)?;
        // A new run has an id of its own, which gives its seed.
        let new = RunId::new();
        let builder = self.reviewers.draft(&self.request.reviewed_by(), &candidate.diff, new)?;
        // A review that was begun before this process was killed continues in its own run.
        let note = self.folder.join(format!("review-{}", change.digest()));
        let noted = read_text(&note, SMALL_BYTES_MAX).ok().and_then(|id| RunId::from_text(&id));
        let earlier =
            noted.and_then(|id: RunId| Some((id, begun(&self.runs.join(id.to_string()), builder.setup())?)));
        let (id, earlier) = earlier.map_or_else(|| (new, None), |(id, run)| (id, Some(run)));
        let dir = self.runs.join(id.to_string());
        write_whole(&note, &format!("{id}\n"), 0o600).map_err(ApprovalError::Note)?;
        let ready = self
            .reviewers
            .prepare(&self.request.reviewed_by(), &self.file, builder, &dir, self.watcher)
            .await?;
        let place = ReviewPlace { dir: &dir, id, began: Instant::now() };
        let reviewed = review(ready, earlier, place, self.stop.clone(), self.watcher).await?;
        let model = reviewed.model_of(0);
        let opinion = self.opinion(reviewed, &candidate.tree, &dir).await?;
        Ok(Some(ModelOpinion { opinion, model }))
    }

    /// Returns the opinion of this reviewer, after its model has reviewed a change and its own command has run on the tree.
    async fn opinion(&self, reviewed: ReviewedRun, tree: &Oid, dir: &Path) -> Result<Opinion, ApprovalError> {
        let ReviewedRun { result, .. } = reviewed;
        let Section::Approval(section) = result.section else {
            return Err(ApprovalError::Internal("the run is not a review"));
        };
        let is_whole = result.outcome.is_final();
        let review = section.reviews.into_iter().next().filter(|_| is_whole);
        let reason = result.reason.unwrap_or_else(|| result.outcome.name().to_owned());
        let opinion = review.map(|review| review.opinion).ok_or(ApprovalError::NoReview(reason))?;
        if opinion.vote() != Vote::Approve {
            return Ok(opinion);
        }
        // The content of a change is run only after it was read.
        let checked = tokio::select! {
            checked = verified(self.request, &self.repository, tree, dir, self.watcher) => checked?,
            () = self.signal() => return Ok(cut_off()),
        };
        if let Some(Checked::Failed { how, is_missing, .. }) = checked {
            if is_missing {
                let reason = format!("the command of this reviewer cannot be started: {how}");
                return Ok(Opinion::Abstain { reason });
            }
            let reason = format!("the command of this reviewer fails on it: {how}");
            return Ok(Opinion::Reject { reason, severity: Severity::High });
        }
        Ok(opinion)
    }
}
