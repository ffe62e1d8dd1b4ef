//! Proposes a change: it is made ready, verified, reviewed, decided on, and brought onto its branch.
//!
//! The input is a request and the configuration. The output is the end of the decision, with everything durable on the way. A
//! decision that an earlier process began is finished first.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::cluster::Cluster;
use super::decider::{Decider, DecisionEnd};
use crate::approval::decision_context::{DecisionContext, verify, write_public};
use crate::approval::error::ApprovalError;
use crate::approval::facts::Facts;
use crate::approval::keys::KeyFolder;
use crate::approval::ledger::{
    CommandVerification, DecisionLog, Proposal, ProposalDraft, Reader, VERIFICATION_LOG, VerificationResult,
};
use crate::approval::request::{ApprovalRequest, CutOff};
use crate::approval::review::{GivenChange, ReviewEnd, Reviewers, find_earlier, review};
use crate::config::FileConfig;
use crate::engine::RunBuilder;
use crate::files::{LARGE_BYTES_MAX, private_folder, read_text};
use crate::report::sarif;
use crate::repository::{Candidate, Repository, RepositoryError};
use crate::run::{AnswerFile, Reporter, RunId};
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
    file: FileConfig,
    decider: Decider<'a>,
    branch: String,
    keys: KeyFolder,
    is_distributed: bool,
    given: GivenChange,
    /// The file for a copy of the record.
    copy: AnswerFile,
}

impl std::fmt::Debug for ProposingNode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProposingNode").field("branch", &self.branch).finish_non_exhaustive()
    }
}

impl<'a> ProposingNode<'a> {
    /// Opens everything that a decision needs. Nothing is decided yet.
    pub async fn open(
        request: &'a ApprovalRequest,
        file: FileConfig,
        reporter: &'a dyn Reporter,
    ) -> Result<Self, ApprovalError> {
        let DecisionContext { repository, branch, keys, membership, addresses } =
            DecisionContext::open(request)?;
        let addresses = addresses.as_ref();
        let log = DecisionLog::open(&membership, &keys, Cluster::placement(addresses))?;
        // Keys that were copied without their log sign nothing, and finish nothing that was begun.
        log.require_agreement(&repository, &branch)?;
        let given = GivenChange::read(&request.review.change, &repository)?;
        let copy = AnswerFile::open(request.output.as_deref())?;
        let listen_at = request.listen.as_deref();
        let cluster = Cluster::open(&log, &keys, &membership, addresses, listen_at, reporter).await?;
        let runs = request.review.runs_dir.clone();
        let with_checkout = request.with_checkout;
        let decider = Decider { repository, log, cluster, with_checkout, runs, reporter };
        let is_distributed = addresses.is_some();
        Ok(Self { request, file, decider, branch, keys, is_distributed, given, copy })
    }

    /// Proposes the change, and has it decided on. `began` is the time at which the program began.
    ///
    /// Returns [`ApprovalError`]. Everything that is durable remains so, and the same command continues it.
    pub async fn propose(
        mut self,
        mut cut: CutOff,
        began: Instant,
    ) -> Result<ProposalOutcome, ApprovalError> {
        if let Some(end) = self.finish_open_case(&mut cut).await? {
            return Ok(ProposalOutcome::BegunBefore(Box::new(end)));
        }
        let candidate = match self.given.candidate(&self.decider.repository, &self.branch) {
            Err(why @ (RepositoryError::DoesNotApply { .. } | RepositoryError::Nothing(_))) => {
                let (end, proof) = self.find_landed().ok_or(why)?;
                self.copy.empty()?;
                self.copy.write_text(&proof)?;
                return Ok(ProposalOutcome::LandedBefore(Box::new(end)));
            }
            candidate => candidate?,
        };
        let reviewers = Reviewers::read(self.request, &self.file, &self.keys)?;
        reviewers.require_rules_of(&self.decider.repository, &candidate.base, self.request)?;
        let id = RunId::new();
        let builder = reviewers.draft(&self.request.review, &candidate.diff, id)?;
        self.require_landable()?;
        self.copy.empty()?;
        let reviewers_verify = self.wait_for_quorum(&candidate, &mut cut).await?;
        self.require_same_base(&candidate)?;
        let verification = match self.verify(&candidate, id, &mut cut).await? {
            Some(VerificationResult::Passed(passed)) => Some(passed),
            Some(VerificationResult::Failed { how, said, .. }) => {
                let log = self.run_dir(id).join(VERIFICATION_LOG);
                return Ok(ProposalOutcome::Unverified { how, said, log });
            }
            None => None,
        };
        let roleset = if self.is_distributed { OWN_ROLESETS } else { &builder.setup().roleset };
        let proposal = self.draft(&candidate, id, roleset, verification, reviewers_verify)?;
        if self.is_distributed {
            self.decide_distributed(&proposal, id, &mut cut, began).await
        } else {
            self.review_and_decide(proposal, id, &reviewers, builder, &mut cut, began).await
        }
    }

    /// Finishes a decision that an earlier process began. Nothing else is left to do if it was on this very change.
    async fn finish_open_case(&mut self, cut: &mut CutOff) -> Result<Option<DecisionEnd>, ApprovalError> {
        let finished = tokio::select! {
            finished = self.decider.finish_open_case() => finished?,
            why = cut.wait(UNDER_WAY) => return Err(why),
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
    fn find_landed(&self) -> Option<(DecisionEnd, String)> {
        let Decider { repository, log, .. } = &self.decider;
        for landed in log.landed_cases() {
            let proposal = &landed.case.proposal;
            let again = self.given.candidate(repository, proposal.base.as_str());
            if proposal.branch == self.branch && again.is_ok_and(|again| again.tree == proposal.tree) {
                return Some(self.decider.describe_landed(landed));
            }
        }
        None
    }

    /// Checks what can be known before a review is paid for that could not land, and before a key signs twice at one place.
    fn require_landable(&self) -> Result<(), ApprovalError> {
        let Decider { repository, log, .. } = &self.decider;
        if self.request.with_checkout {
            repository.require_clean(&self.branch)?;
        } else {
            repository.require_not_checked_out(&self.branch)?;
        }
        Ok(repository.require_unmarked(&log.next_mark())?)
    }

    /// Refuses a change whose base was left behind while the program waited for reviewers.
    fn require_same_base(&self, candidate: &Candidate) -> Result<(), ApprovalError> {
        let branch = &self.branch;
        if self.decider.repository.commit_of(branch)? == candidate.base {
            return self.require_landable();
        }
        Err(ApprovalError::NotReady(format!(
            "`{branch}` moved while the program waited for reviewers, and nothing was proposed; run the same command again"
        )))
    }

    /// Waits until a quorum could vote on a change of this base, if the reviewers are in processes of their own.
    async fn wait_for_quorum(
        &mut self,
        candidate: &Candidate,
        cut: &mut CutOff,
    ) -> Result<bool, ApprovalError> {
        let cluster = &mut self.decider.cluster;
        let ready = cluster.wait_for_quorum(&candidate.base, &self.branch, self.decider.reporter);
        tokio::select! {
            ready = ready => ready,
            why = cut.wait(UNBEGUN) => Err(why),
        }
    }

    /// Returns the folder of a run.
    fn run_dir(&self, id: RunId) -> PathBuf {
        self.decider.runs.join(id.to_string())
    }

    async fn verify(
        &self,
        candidate: &Candidate,
        id: RunId,
        cut: &mut CutOff,
    ) -> Result<Option<VerificationResult>, ApprovalError> {
        let (repository, dir) = (&self.decider.repository, self.run_dir(id));
        tokio::select! {
            checked = verify(self.request, repository, &candidate.tree, &dir, self.decider.reporter) => checked,
            why = cut.wait(UNBEGUN) => Err(why),
        }
    }

    /// Makes the proposal.
    fn draft(
        &self,
        candidate: &Candidate,
        id: RunId,
        roleset: &str,
        verification: Option<CommandVerification>,
        reviewers_verify: bool,
    ) -> Result<Proposal, ApprovalError> {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let at = at.map_err(|_| ApprovalError::Internal("the clock is before 1970"))?.as_secs();
        let message = self.request.message.clone().unwrap_or_default();
        let is_verified = verification.is_some() || reviewers_verify;
        let facts = self.facts(candidate, &self.decider.repository, is_verified)?;
        let (branch, roleset) = (self.branch.clone(), roleset.to_owned());
        let author = self.given.read_authorship(&self.decider.repository, &candidate.base)?;
        let run = id.to_string();
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
        let lcov = self.request.coverage.as_deref().map(read_report).transpose()?;
        let sarif = self.request.findings.as_deref().map(read_report).transpose()?;
        let facts = Facts::new(candidate, repository, is_verified, lcov.as_deref(), sarif.as_deref())?;
        // A score without a reason would say that the change is safe.
        if !facts.risk.reasons.is_empty() {
            let reasons = facts.risk.reasons.join("; ");
            self.decider
                .reporter
                .status(&escape::terminal(&format!("risk: {} of 100  {reasons}", facts.risk.score)));
        }
        Ok(facts)
    }

    /// Has the change decided on by reviewers in processes of their own.
    async fn decide_distributed(
        &mut self,
        proposal: &Proposal,
        id: RunId,
        cut: &mut CutOff,
        began: Instant,
    ) -> Result<ProposalOutcome, ApprovalError> {
        let proposing = began.elapsed();
        let dir = self.run_dir(id);
        private_folder(&dir).map_err(ApprovalError::file("make the folder", &dir))?;
        let (run, copy) = (id.to_string(), &mut self.copy);
        let end = tokio::select! {
            end = self.decider.decide(proposal, Vec::new(), &run, proposing, Duration::ZERO, copy) => end?,
            why = cut.wait(UNDER_WAY) => return Err(why),
        };
        Ok(ProposalOutcome::Decided(Box::new(end)))
    }

    /// Has the change reviewed in this process, or takes the review that was made before, and decides on it.
    async fn review_and_decide(
        &mut self,
        proposal: Proposal,
        id: RunId,
        reviewers: &Reviewers,
        builder: RunBuilder,
        cut: &mut CutOff,
        began: Instant,
    ) -> Result<ProposalOutcome, ApprovalError> {
        let proposing = began.elapsed();
        let dir = self.run_dir(id);
        let agents = &builder.setup().agents;
        let names: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
        let reviewed = if self.request.earlier_review.is_some() {
            find_earlier(self.request, builder.setup())?
        } else {
            let request = &self.request.review;
            let ready = tokio::select! {
                ready = reviewers.prepare(request, &self.file, builder, &dir, self.decider.reporter) => ready?,
                why = cut.wait(UNBEGUN) => return Err(why),
            };
            review(ready, None, &dir, id, began, cut.stop.clone(), self.decider.reporter).await?
        };
        let ReviewEnd { result, endpoints } = &reviewed;
        let has_verdict = matches!(result.outcome, OutcomeKind::Agreed | OutcomeKind::NoAgreement);
        if has_verdict && cut.is_stopped() {
            return Err(ApprovalError::Interrupted(UNDECIDED));
        }
        let reviewing = began.elapsed().saturating_sub(proposing);
        let Section::Approval(section) = &result.section else {
            return Err(ApprovalError::Internal("the run is not a review"));
        };
        if let Some(path) = &self.request.sarif {
            let log = serde_json::to_string_pretty(&sarif(section)).unwrap_or_default();
            write_public(path, &(log + "\n"))?;
        }
        // Nothing is proposed if the review is not whole, or if it stops the change because the roleset says so.
        if !has_verdict {
            let reason = result.reason.clone().unwrap_or_default();
            let run = result.run.clone();
            return Ok(ProposalOutcome::NotReviewed { outcome: result.outcome, reason, run });
        }
        let labels = endpoints.iter().map(Endpoint::label);
        let readers = names.into_iter().zip(labels).map(|(name, model)| Reader { name, model });
        let proposal = proposal.read_by(readers.collect(), result.journal_head);
        let mut opinions = Vec::new();
        for (at, review) in section.reviews.iter().enumerate() {
            opinions.push(ModelOpinion { opinion: review.opinion.clone(), model: reviewed.model_of(at) });
        }
        let copy = &mut self.copy;
        let end = self.decider.decide(&proposal, opinions, &result.run, proposing, reviewing, copy).await?;
        Ok(ProposalOutcome::Decided(Box::new(end)))
    }
}

/// Reads a report of another tool.
fn read_report(path: &Path) -> Result<String, ApprovalError> {
    let read = read_text(path, LARGE_BYTES_MAX);
    read.map_err(|why| ApprovalError::Usage(format!("cannot read `{}`: {why}", path.display())))
}
