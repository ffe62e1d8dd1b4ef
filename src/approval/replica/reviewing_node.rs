//! `consensus approve --replica NAME`: one reviewer in a process of its own.
//!
//! It has its own copy of the repository, its own key and its own model, and trusts no one's word. It makes the tree from the
//! diff itself, and reads it. It runs its own command on the tree if it would approve. Then it votes on what it has seen.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tokio::sync::{Semaphore, mpsc, watch};

use super::recheck::Examination;
use super::upstream::Upstream;
use crate::approval::connected_node::{ConnectedNode, report_unreachable};
use crate::approval::decision_context::{DecisionContext, sandbox, verify, write_public};
use crate::approval::error::ApprovalError;
use crate::approval::keys::ORCHESTRATOR;
use crate::approval::ledger::{
    LedgerContext, LedgerMatch, Proposal, VerificationResult, compare, landed_decisions,
};
use crate::approval::node::{
    BaseQuery, BaseState, Node, PhaseTimeouts, Question, Readiness, ReviewerNode, Unreached,
};
use crate::approval::request::{ApprovalRequest, CutOff, wait_until};
use crate::approval::review::{ReviewEnd, Reviewers, reopen, review};
use crate::config::FileConfig;
use crate::engine::StopRequest;
use crate::files::{SMALL_BYTES_MAX, read_text, write_whole};
use crate::program::PROGRAM;
use crate::repository::{Oid, Repository};
use crate::run::{Reporter, RunId};
use crypto::{Digest, Signature};
use protocol::Section;
use protocol::text::escape;
use quorum::node_machine::NodeAction;
use quorum::{
    Change, Membership, ModelOpinion, OPINION_BYTES_MAX, Opinion, Packet, Sequence, Severity, SignedMessage,
    Value, Vote,
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
    /// The last place that the branch carried when it was at this commit.
    landed: RefCell<Option<(Oid, Sequence)>>,
    reviewers: Reviewers,
    runs: PathBuf,
    /// The folder of its log.
    folder: PathBuf,
    stop: watch::Receiver<StopRequest>,
    /// The permit to review: there is one review at a time, however many changes are proposed.
    turn: Semaphore,
    reporter: &'a dyn Reporter,
}

/// A reviewer that is ready to take part.
pub struct ReviewingNode<'a> {
    name: String,
    seat: ConnectedNode,
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
    /// Returns [`ApprovalError`]. Nothing was signed.
    pub async fn open(
        name: &str,
        request: &'a ApprovalRequest,
        file: FileConfig,
        stop: watch::Receiver<StopRequest>,
        reporter: &'a dyn Reporter,
    ) -> Result<Self, ApprovalError> {
        let DecisionContext { repository, branch, keys, membership, addresses } =
            DecisionContext::open(request)?;
        let Some(addresses) = addresses else {
            return Err(ApprovalError::Usage("--replica needs --peers".to_owned()));
        };
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
        upstream.fetch(&repository, reporter).await;
        let tip = upstream.tip(&repository)?;
        reviewers.require_rules_of(&repository, &tip, request)?;
        let listen_at = request.listen.as_deref();
        let mut seat = ConnectedNode::open(name, &keys, &membership, &addresses, listen_at).await?;
        let folder = seat.folder.clone();
        let context = LedgerContext {
            branch: upstream.branch(),
            place: &folder,
            starts_at: request.ledger_starts_at,
            known: seat.node.known(),
            may_learn: !seat.node.is_new(),
            is_reviewer: true,
        };
        reconcile_log(&mut seat.node, &repository, &tip, &membership, context, reporter)?;
        let (heard_at, known) = (seat.heard_at, seat.node.known());
        reporter.status(&format!("{name}: heard at {heard_at}; decisions known: {known}"));
        let reviewer = ReplicaReviewer {
            request,
            file,
            repository,
            upstream,
            membership,
            landed: RefCell::new(None),
            reviewers,
            runs: request.review.runs_dir.clone(),
            folder,
            stop,
            turn: Semaphore::new(1),
            reporter,
        };
        Ok(Self { name: name.to_owned(), seat, reviewer })
    }

    /// Takes part until a signal or the deadline comes. Returns whether a signal came.
    ///
    /// Returns [`ApprovalError`] if the reviewer cannot continue.
    pub async fn run(self, cut: CutOff) -> Result<bool, ApprovalError> {
        let Self { seat, reviewer, .. } = self;
        let ConnectedNode { mut node, mut inbox, connections, questions, .. } = seat;
        let (membership, reporter) = (&reviewer.membership, reviewer.reporter);
        let timeouts = PhaseTimeouts { review: reviewer.request.review_timeout, ..PhaseTimeouts::default() };
        let mut failure = None;
        let CutOff { mut stop, deadline } = cut;
        let running = node.run(&mut inbox, &connections, &reviewer, timeouts, |action| {
            match report_action(action, membership, &reviewer.folder, reporter) {
                Ok(()) => ControlFlow::Continue(()),
                Err(why) => {
                    failure = Some(why);
                    ControlFlow::Break(())
                }
            }
        });
        let is_stopped = tokio::select! {
            biased;
            () = wait_for_stop(&mut stop, &reviewer.turn) => true,
            () = wait_until(deadline) => false,
            ended = running => {
                ended?;
                false
            }
            () = report_unreachable(&connections, membership, is_other_version, |line| reporter.warn(line)) => false,
            () = reviewer.answer(questions) => false,
        };
        match failure {
            Some(why) => Err(why),
            None => Ok(is_stopped),
        }
    }
}

/// Resolves when a signal has come and no review is under way any more: the replies of its open calls are paid for and kept.
async fn wait_for_stop(stop: &mut watch::Receiver<StopRequest>, turn: &Semaphore) {
    let _ = stop.changed().await;
    let _ = turn.acquire().await;
}

/// Compares the branch with this reviewer's log. A log that is missing, and should be there, is not begun anew. A log that
/// lacks its end learns it from the others before anything is signed there. The start that the owner gives counts from then on.
fn reconcile_log(
    node: &mut Node,
    repository: &Repository,
    tip: &Oid,
    membership: &Membership,
    context: LedgerContext<'_>,
    reporter: &dyn Reporter,
) -> Result<(), ApprovalError> {
    let LedgerContext { branch, starts_at: given, known, .. } = context;
    if let (Some(sequence), Some(_)) = (given, node.starts_at()) {
        node.start_at(sequence)?;
    }
    let landed = landed_decisions(repository, membership, tip, None)?;
    let context = LedgerContext { starts_at: node.starts_at().or(given), ..context };
    let unknown = compare(&landed, &context, |decision| match node.value_at(decision.sequence) {
        Some(value) => decision.match_with(value),
        None if decision.sequence <= known => LedgerMatch::Same,
        None => LedgerMatch::Nothing,
    })?;
    if let Some(sequence) = given {
        node.start_at(sequence)?;
    }
    if let Some(last) = unknown {
        node.hold_up_to(last);
        reporter.warn(&format!(
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
fn report_action(
    action: &NodeAction<Signature>,
    membership: &Membership,
    folder: &Path,
    reporter: &dyn Reporter,
) -> Result<(), ApprovalError> {
    match action {
        NodeAction::Decide(sequence, proof) => {
            let value = proof.check(membership.quorum()).map(|proven| proven.value);
            let outcome = match value {
                Some(Value::Change(digest)) => format!("approved: {digest}"),
                Some(Value::Nothing) | None => "not approved".to_owned(),
            };
            reporter.status(&format!("decision {sequence}: {outcome}"));
            reporter
                .report_row(&json!({"sequence": sequence, "value": value}))
                .map_err(ApprovalError::Printed)?;
        }
        NodeAction::Accuse(pair) => {
            let (first, second) = &**pair;
            let packets = [first, second]
                .map(|signed| membership.write(&Packet::Message(SignedMessage::alone(signed.clone()))));
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
            reporter.warn(&escape::terminal(&format!(
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
        let reading = match self.review_change(sequence, change).await {
            Ok(Some(reading)) => reading,
            Ok(None) => {
                self.reporter.warn(&format!(
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
        let opinion = bound_text(opinion);
        let vote = match &opinion {
            Opinion::Approve { .. } => "approve".to_owned(),
            Opinion::Reject { reason, severity } => format!("reject ({severity}): {reason}"),
            Opinion::Abstain { reason } => format!("abstain: {reason}"),
        };
        self.reporter.status(&escape::terminal(&format!("decision {sequence}: this reviewer voted {vote}")));
        ModelOpinion { opinion, model }
    }
}

/// Returns the opinion of a review that a signal has cut off. It is never sent.
fn cut_off() -> Opinion {
    Opinion::Abstain { reason: "the review was cut off".to_owned() }
}

/// Bounds the text of an opinion that others will read.
fn bound_text(mut opinion: Opinion) -> Opinion {
    let (Opinion::Approve { notes: text, .. }
    | Opinion::Reject { reason: text, .. }
    | Opinion::Abstain { reason: text }) = &mut opinion;
    *text = text.chars().take(WORDS_CHARS_MAX).collect();
    opinion
}

impl ReplicaReviewer<'_> {
    /// Answers parties that ask whether this one could take part. Never ends.
    async fn answer(&self, mut questions: mpsc::Receiver<Question>) {
        while let Some(Question { about, answer }) = questions.recv().await {
            // The party that asked may have gone. Only a commit that git can name is fetched.
            if answer.is_closed() {
                continue;
            }
            let mut state = self.state_of(&about);
            let is_name = Oid::try_from(about.base.clone()).is_ok();
            if state == BaseState::Missing && is_name && self.upstream.has_remote() {
                self.upstream.fetch_when_due(&self.repository, self.reporter).await;
                state = self.state_of(&about);
            }
            let fetch_failed = if state == BaseState::Known { None } else { self.upstream.failure() };
            let readiness = Readiness {
                program: PROGRAM.to_owned(),
                base: state,
                verifies: self.request.verify.is_some(),
                review_s: self.request.review_timeout.as_secs(),
                fetch_failed,
            };
            // The party that asked may have gone by now.
            let _ = answer.send(readiness);
        }
        std::future::pending::<()>().await;
    }

    /// Returns the state of a base in this copy. A base that git cannot look up could not be reviewed either.
    fn state_of(&self, about: &BaseQuery) -> BaseState {
        if about.branch != self.upstream.branch() {
            return BaseState::OtherBranch;
        }
        match self.reaches_base(&about.base) {
            Some(true) => BaseState::Known,
            Some(false) => BaseState::Behind,
            None => BaseState::Missing,
        }
    }

    /// Returns whether the branch is at this base or comes before it, or `None` if git cannot look it up.
    fn reaches_base(&self, base: &str) -> Option<bool> {
        let base = Oid::try_from(base.to_owned()).ok()?;
        let base = self.repository.commit_of(base.as_str()).ok()?;
        let tip = self.upstream.tip(&self.repository).ok()?;
        self.repository.is_ancestor(&tip, &base).ok()
    }

    /// Resolves when a signal has come. Work that costs nothing is not waited for then.
    async fn wait_for_signal(&self) {
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
    fn last_landed(&self) -> Result<Sequence, ApprovalError> {
        let tip = self.upstream.tip(&self.repository)?;
        let before = self.landed.borrow().clone();
        let (since, last) = before.map_or((None, 0), |(tip, last)| (Some(tip), last));
        // If the branch was moved to another history, all of it is read again.
        let since = match since {
            Some(since) if self.repository.is_ancestor(&since, &tip)? => Some(since),
            Some(_) | None => None,
        };
        let landed = landed_decisions(&self.repository, &self.membership, &tip, since.as_ref())?;
        let last = landed.first().map_or(last, |decision| last.max(decision.sequence));
        self.landed.replace(Some((tip, last)));
        Ok(last)
    }

    /// Reads a change. Returns `None` if the branch already carries a decision at this place, or a later one.
    async fn review_change(
        &self,
        sequence: Sequence,
        change: &Change,
    ) -> Result<Option<ModelOpinion>, ApprovalError> {
        tokio::select! {
            () = self.upstream.fetch(&self.repository, self.reporter) => {}
            () = self.wait_for_signal() => return Ok(Some(cut_off().into())),
        }
        if self.last_landed()? >= sequence {
            return Ok(None);
        }
        let (branch, tip) = (self.upstream.branch(), self.upstream.tip(&self.repository)?);
        let candidate = match Proposal::examine(change.text(), &self.repository, branch, &tip)? {
            Examination::Readable(candidate) => candidate,
            Examination::Settled(Opinion::Abstain { reason }) => {
                let failure = self.upstream.failure().map(|why| format!(" ({why})"));
                let reason = reason + &failure.unwrap_or_default();
                return Ok(Some(Opinion::Abstain { reason }.into()));
            }
            Examination::Settled(opinion) => return Ok(Some(opinion.into())),
        };
        self.reviewers.require_rules_of(&self.repository, &candidate.base, self.request)?;
        // A new run has an id of its own, which gives its seed.
        let new = RunId::new();
        let request = &self.request.review;
        let builder = self.reviewers.draft(request, &candidate.diff, new)?;
        // A review that was begun before this process was killed continues in its own run.
        let note = self.folder.join(format!("review-{}", change.digest()));
        let noted = read_text(&note, SMALL_BYTES_MAX).ok().and_then(|id| RunId::from_text(&id));
        let (mut id, mut earlier) = (new, None);
        if let Some(noted) = noted
            && let Some(run) = reopen(&self.runs.join(noted.to_string()), builder.setup())
        {
            (id, earlier) = (noted, Some(run));
        }
        let dir = self.runs.join(id.to_string());
        write_whole(&note, &format!("{id}\n"), 0o600).map_err(ApprovalError::Note)?;
        let ready = self.reviewers.prepare(request, &self.file, builder, &dir, self.reporter).await?;
        let (began, stop) = (Instant::now(), self.stop.clone());
        let reviewed = review(ready, earlier, &dir, id, began, stop, self.reporter).await?;
        let model = reviewed.model_of(0);
        let opinion = self.opinion(reviewed, &candidate.tree, &dir).await?;
        Ok(Some(ModelOpinion { opinion, model }))
    }

    /// Returns the opinion of this reviewer, after its model has reviewed a change and its own command has run on the tree.
    async fn opinion(&self, reviewed: ReviewEnd, tree: &Oid, dir: &Path) -> Result<Opinion, ApprovalError> {
        let ReviewEnd { result, .. } = reviewed;
        let Section::Approval(section) = result.section else {
            return Err(ApprovalError::Internal("the run is not a review"));
        };
        let opinion = match section.reviews.into_iter().next() {
            Some(review) if result.outcome.is_final() => review.opinion,
            Some(_) | None => {
                let reason = result.reason.unwrap_or_else(|| result.outcome.name().to_owned());
                return Err(ApprovalError::NoReview(reason));
            }
        };
        if opinion.vote() != Vote::Approve {
            return Ok(opinion);
        }
        // The content of a change is run only after it was read.
        let checked = tokio::select! {
            checked = verify(self.request, &self.repository, tree, dir, self.reporter) => checked?,
            () = self.wait_for_signal() => return Ok(cut_off()),
        };
        if let Some(VerificationResult::Failed { how, is_missing, .. }) = checked {
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
