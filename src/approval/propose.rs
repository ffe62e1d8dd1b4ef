//! Proposes a change: it is made ready, verified, reviewed, decided on, and brought onto its branch.
//!
//! The input is a request and the configuration. The output is the end of the decision, with everything durable on the way. A
//! decision that an earlier process began is finished first.

use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use super::cluster::Cluster;
use super::decider::{Decider, DecisionEnd, Phases, write_public};
use super::error::ApprovalError;
use super::facts::{Facts, Reports};
use super::given_change::GivenChange;
use super::keys::KeyFolder;
use super::log::{DecisionLog, LandedCase};
use super::proposal::{Proposal, ProposalDraft, Reader};
use super::request::{ApprovalRequest, CutOff};
use super::review::{ReviewPlace, ReviewedRun, review, reviewed};
use super::reviewers::Reviewers;
use super::site::{DecisionSite, verified};
use super::verification::{Checked, CommandVerification, VERIFICATION_LOG};
use super::watcher::ApprovalWatcher;
use crate::config::FileConfig;
use crate::engine::RunBuilder;
use crate::files::{LARGE_BYTES_MAX, private_folder, read_text};
use crate::report::sarif;
use crate::repository::{Candidate, Repository, RepositoryError};
use crate::run::{AnswerFile, RunId};
use protocol::core::Endpoint;
use protocol::text::escape;
use protocol::{OutcomeKind, Section};
use quorum::ModelOpinion;

/// The state that a signal or a deadline leaves before the review.
pub const UNBEGUN: &str = "before the review began; nothing was decided";

/// The state that a signal or a deadline leaves of a decision among processes.
const UNDER_WAY: &str = "while others decide; they continue, and so does the same command if it is run again";

/// The state that a signal leaves of a change that was reviewed.
const UNDECIDED: &str = "after the review and before the decision; nothing was decided, and the same command with --review RUN decides";

/// The roleset in the record of a change whose reviewers each have their own.
const OWN_ROLESETS: &str = "each reviewer's own";

/// The outcome of a proposed change.
#[derive(Debug)]
pub enum ProposalOutcome {
    /// The change was decided on.
    Decided(Box<DecisionEnd>),
    /// An earlier process began to decide on this very change, and that decision has now ended.
    BegunBefore(Box<DecisionEnd>),
    /// The change has landed before: a process that was killed after that did not report it.
    LandedBefore(Box<DecisionEnd>),
    /// The review was not whole, or stops the change, so that it was not proposed.
    NotReviewed {
        /// The outcome of the review.
        outcome: OutcomeKind,
        reason: String,
        /// The run of the review.
        run: String,
    },
    /// The command that had to succeed on the change failed, so that it was not proposed.
    Unverified {
        /// The end of the command, in words.
        how: String,
        /// The end of its output.
        said: String,
        /// The file with its output.
        log: PathBuf,
    },
}

/// An orchestrator that proposes a change.
pub struct ProposingNode<'a> {
    request: &'a ApprovalRequest,
    watcher: &'a dyn ApprovalWatcher,
    file: FileConfig,
    decider: Decider<'a>,
    site: ProposedSite,
    given: GivenChange,
    /// The file for a copy of the record.
    copy: AnswerFile,
}

/// The part of the site that the decider does not hold.
struct ProposedSite {
    branch: String,
    keys: KeyFolder,
    is_distributed: bool,
}

/// The run in which a change is proposed.
struct ProposalRun {
    id: RunId,
    dir: PathBuf,
}

/// The parts of a proposal about its review.
struct Draft {
    roleset: String,
    verification: Option<CommandVerification>,
    reviewers_verify: bool,
}

impl std::fmt::Debug for ProposingNode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProposingNode").field("branch", &self.site.branch).finish_non_exhaustive()
    }
}

impl<'a> ProposingNode<'a> {
    /// Opens everything that a decision needs. Nothing is decided yet.
    pub async fn open(
        request: &'a ApprovalRequest,
        file: FileConfig,
        watcher: &'a dyn ApprovalWatcher,
    ) -> Result<Self, ApprovalError> {
        let DecisionSite { repository, branch, keys, membership, addresses } = DecisionSite::open(request)?;
        let addresses = addresses.as_ref();
        let log = DecisionLog::open(&membership, &keys, Cluster::placement(addresses))?;
        // Keys that were copied without their log sign nothing, and finish nothing that was begun.
        log.agrees_with(&repository, &branch)?;
        let given = GivenChange::read(&request.change, &repository)?;
        let copy = AnswerFile::open(request.output.as_deref())?;
        let listen_at = request.listen.as_deref();
        let cluster = Cluster::open(&log, &keys, &membership, addresses, listen_at, watcher).await?;
        let runs = request.runs_dir.clone();
        let with_checkout = request.with_checkout;
        let decider = Decider { repository, log, cluster, with_checkout, runs, notices: watcher };
        let site = ProposedSite { branch, keys, is_distributed: addresses.is_some() };
        Ok(Self { request, watcher, file, decider, site, given, copy })
    }

    /// Proposes the change, and has it decided on. `began` is the time at which the program began.
    ///
    /// # Errors
    ///
    /// [`ApprovalError`]. Everything that is durable remains so, and the same command continues it.
    pub async fn propose(
        mut self,
        mut cut: CutOff,
        began: Instant,
    ) -> Result<ProposalOutcome, ApprovalError> {
        if let Some(end) = self.finish_what_was_begun(&mut cut).await? {
            return Ok(ProposalOutcome::BegunBefore(Box::new(end)));
        }
        let candidate = match self.given.candidate(&self.decider.repository, &self.site.branch) {
            Err(why @ (RepositoryError::DoesNotApply { .. } | RepositoryError::Nothing(_))) => {
                let (end, proof) = self.landed_before().ok_or(why)?;
                self.copy.empty()?;
                self.copy.write_text(&proof)?;
                return Ok(ProposalOutcome::LandedBefore(Box::new(end)));
            }
            candidate => candidate?,
        };
        let reviewers = Reviewers::read(self.request, &self.file, &self.site.keys)?;
        reviewers.rules_are_of(&self.decider.repository, &candidate.base, self.request)?;
        let id = RunId::new();
        let builder = reviewers.draft(&self.request.reviewed_by(), &candidate.diff, id)?;
        self.can_land()?;
        self.copy.empty()?;
        let run = ProposalRun { dir: self.decider.runs.join(id.to_string()), id };
        let reviewers_verify = self.ready(&candidate, &mut cut).await?;
        self.is_still_at(&candidate)?;
        let verification = match self.verify(&candidate, &run, &mut cut).await? {
            Some(Checked::Passed(passed)) => Some(passed),
            Some(Checked::Failed { how, said, .. }) => {
                return Ok(ProposalOutcome::Unverified { how, said, log: run.dir.join(VERIFICATION_LOG) });
            }
            None => None,
        };
        let roleset = if self.site.is_distributed { OWN_ROLESETS } else { &builder.setup().roleset };
        let roleset = roleset.to_owned();
        let proposal = self.draft(&candidate, &run, Draft { roleset, verification, reviewers_verify })?;
        if self.site.is_distributed {
            self.decide_distributed(&proposal, &run, &mut cut, began).await
        } else {
            let reviewed = self.reviewed(&run, &reviewers, builder, &mut cut, began).await?;
            self.decide_reviewed(proposal, &reviewed).await
        }
    }

    /// Finishes a decision that an earlier process began. Nothing else is left to do if it was on this very change.
    async fn finish_what_was_begun(
        &mut self,
        cut: &mut CutOff,
    ) -> Result<Option<DecisionEnd>, ApprovalError> {
        let finished = tokio::select! {
            finished = self.decider.finish_what_was_begun() => finished?,
            why = cut.heard(UNDER_WAY) => return Err(why),
        };
        let Some((proposal, end, proof)) = finished else { return Ok(None) };
        // The same command after a crash means the same change.
        let again = self.given.candidate(&self.decider.repository, proposal.base.as_str());
        if !again.is_ok_and(|again| again.tree == proposal.tree) {
            return Ok(None);
        }
        self.copy.empty()?;
        self.copy.write_text(&proof)?;
        Ok(Some(end))
    }

    /// Returns the decision by which this very change has landed, if it is among the last ones.
    fn landed_before(&self) -> Option<(DecisionEnd, String)> {
        let Decider { repository, log, .. } = &self.decider;
        let is_it = |landed: &&LandedCase| {
            let proposal = &landed.case.proposal;
            let again = self.given.candidate(repository, proposal.base.as_str());
            proposal.branch == self.site.branch && again.is_ok_and(|again| again.tree == proposal.tree)
        };
        log.landed().find(is_it).map(|landed| self.decider.landed_before(landed))
    }

    /// Checks what can be known before a review is paid for that could not land, and before a key signs twice at one place.
    fn can_land(&self) -> Result<(), ApprovalError> {
        let Decider { repository, log, .. } = &self.decider;
        if self.request.with_checkout {
            repository.is_clean(&self.site.branch)?;
        } else {
            repository.not_checked_out(&self.site.branch)?;
        }
        Ok(repository.not_marked(&log.next_mark())?)
    }

    /// Refuses a change whose base was left behind while the program waited for reviewers.
    fn is_still_at(&self, candidate: &Candidate) -> Result<(), ApprovalError> {
        if self.decider.repository.commit_of(&self.site.branch)? == candidate.base {
            return self.can_land();
        }
        let branch = &self.site.branch;
        Err(ApprovalError::NotReady(format!(
            "`{branch}` moved while the program waited for reviewers, and nothing was proposed; run the same command again"
        )))
    }

    /// Waits until a quorum could vote on a change of this base, if the reviewers are in processes of their own.
    async fn ready(&mut self, candidate: &Candidate, cut: &mut CutOff) -> Result<bool, ApprovalError> {
        let ready = self.decider.cluster.ready(&candidate.base, &self.site.branch, self.watcher);
        tokio::select! {
            ready = ready => ready,
            why = cut.heard(UNBEGUN) => Err(why),
        }
    }

    async fn verify(
        &self,
        candidate: &Candidate,
        run: &ProposalRun,
        cut: &mut CutOff,
    ) -> Result<Option<Checked>, ApprovalError> {
        let repository = &self.decider.repository;
        tokio::select! {
            checked = verified(self.request, repository, &candidate.tree, &run.dir, self.watcher) => checked,
            why = cut.heard(UNBEGUN) => Err(why),
        }
    }

    /// Makes the proposal.
    fn draft(
        &self,
        candidate: &Candidate,
        run: &ProposalRun,
        Draft { roleset, verification, reviewers_verify }: Draft,
    ) -> Result<Proposal, ApprovalError> {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let at = at.map_err(|_| ApprovalError::Internal("the clock is before 1970"))?.as_secs();
        let message = self.request.message.clone().unwrap_or_default();
        let is_verified = verification.is_some() || reviewers_verify;
        let facts = self.facts(candidate, &self.decider.repository, is_verified)?;
        let branch = self.site.branch.clone();
        let author = self.given.authorship(&self.decider.repository, &candidate.base)?;
        let run = run.id.to_string();
        let draft = ProposalDraft { run, at, branch, message, author, roleset, reviewers_verify };
        let proposal = Proposal::new(candidate, draft, verification, facts)?;
        // The length of the change is checked before it is reviewed.
        proposal.change()?;
        Ok(proposal)
    }

    /// Returns the facts about a change, with the reports of other tools on it.
    fn facts(
        &self,
        candidate: &Candidate,
        repository: &Repository,
        is_verified: bool,
    ) -> Result<Facts, ApprovalError> {
        let read = |path: &PathBuf| {
            let read = read_text(path, LARGE_BYTES_MAX);
            read.map_err(|why| ApprovalError::Usage(format!("cannot read `{}`: {why}", path.display())))
        };
        let coverage = self.request.coverage.as_ref().map(read).transpose()?;
        let findings = self.request.findings.as_ref().map(read).transpose()?;
        let facts = Facts::new(candidate, repository, is_verified, &Reports { coverage, findings })?;
        // A score without a reason would say that the change is safe.
        if !facts.risk.reasons.is_empty() {
            let reasons = facts.risk.reasons.join("; ");
            self.watcher.status(&escape::terminal(&format!("risk: {} of 100  {reasons}", facts.risk.score)));
        }
        Ok(facts)
    }

    /// Has the change decided on by reviewers in processes of their own.
    async fn decide_distributed(
        &mut self,
        proposal: &Proposal,
        run: &ProposalRun,
        cut: &mut CutOff,
        began: Instant,
    ) -> Result<ProposalOutcome, ApprovalError> {
        let phases = Phases { proposed: began.elapsed(), ..Phases::default() };
        private_folder(&run.dir).map_err(ApprovalError::file("make the folder", &run.dir))?;
        let id = run.id.to_string();
        let end = tokio::select! {
            end = self.decider.decide(proposal, Vec::new(), &id, phases, &mut self.copy) => end?,
            why = cut.heard(UNDER_WAY) => return Err(why),
        };
        Ok(ProposalOutcome::Decided(Box::new(end)))
    }

    /// Has the change reviewed in this process, or takes the review that was made before. Returns the time until then as well.
    async fn reviewed(
        &self,
        run: &ProposalRun,
        reviewers: &Reviewers,
        builder: RunBuilder,
        cut: &mut CutOff,
        began: Instant,
    ) -> Result<TimedReview, ApprovalError> {
        let proposed = began.elapsed();
        let agents = &builder.setup().agents;
        let names: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
        let review = if self.request.review.is_some() {
            reviewed(self.request, builder.setup())?
        } else {
            let asked = self.request.reviewed_by();
            let ready = tokio::select! {
                ready = reviewers.prepare(&asked, &self.file, builder, &run.dir, self.watcher) => ready?,
                why = cut.heard(UNBEGUN) => return Err(why),
            };
            let place = ReviewPlace { dir: &run.dir, id: run.id, began };
            review(ready, None, place, cut.stop.clone(), self.watcher).await?
        };
        let has_verdict = matches!(review.result.outcome, OutcomeKind::Agreed | OutcomeKind::NoAgreement);
        if has_verdict && cut.is_stopped() {
            return Err(ApprovalError::Interrupted(UNDECIDED));
        }
        let phases = Phases { proposed, reviewed: began.elapsed().saturating_sub(proposed) };
        Ok(TimedReview { review, names, phases })
    }

    /// Decides on a change that was reviewed in this process.
    async fn decide_reviewed(
        &mut self,
        proposal: Proposal,
        reviewed: &TimedReview,
    ) -> Result<ProposalOutcome, ApprovalError> {
        let TimedReview { review, names, phases } = reviewed;
        let ReviewedRun { result, endpoints } = review;
        let Section::Approval(section) = &result.section else {
            return Err(ApprovalError::Internal("the run is not a review"));
        };
        if let Some(path) = &self.request.sarif {
            let log = serde_json::to_string_pretty(&sarif(section)).unwrap_or_default();
            write_public(path, &(log + "\n"))?;
        }
        match result.outcome {
            OutcomeKind::Agreed | OutcomeKind::NoAgreement => {}
            // Nothing is proposed if the review is not whole, or if it stops the change because the roleset says so.
            outcome @ (OutcomeKind::Abstained
            | OutcomeKind::Vetoed
            | OutcomeKind::Budget
            | OutcomeKind::Failed
            | OutcomeKind::Interrupted) => {
                let reason = result.reason.clone().unwrap_or_default();
                return Ok(ProposalOutcome::NotReviewed { outcome, reason, run: result.run.clone() });
            }
        }
        let labels = endpoints.iter().map(Endpoint::label);
        let readers = names.iter().cloned().zip(labels).map(|(name, model)| Reader { name, model });
        let proposal = proposal.read_by(readers.collect(), result.journal_head);
        let opinions = section.reviews.iter().map(|review| review.opinion.clone());
        let opinions =
            opinions.enumerate().map(|(at, opinion)| ModelOpinion { opinion, model: review.model_of(at) });
        let end =
            self.decider.decide(&proposal, opinions.collect(), &result.run, *phases, &mut self.copy).await?;
        Ok(ProposalOutcome::Decided(Box::new(end)))
    }
}

/// A review that has ended, with its reviewers and the time until then.
struct TimedReview {
    review: ReviewedRun,
    names: Vec<String>,
    phases: Phases,
}
