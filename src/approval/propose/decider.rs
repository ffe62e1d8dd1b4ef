//! Decides on a change and brings it onto its branch. The log of decisions is written before each step, so that a later process
//! can finish a decision that this one began.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::cluster::Cluster;
use crate::approval::decision_context::write_public;
use crate::approval::error::ApprovalError;
use crate::approval::facts::Facts;
use crate::approval::ledger::{
    Case, CaseOutcome, CommandVerification, DecisionLog, LandedCase, Proposal, RecordedDecision,
    VerifiedRecord, VotedFor, quorum_of_votes,
};
use crate::files::private_folder;
use crate::report::{DECISION_METRICS_FILE, DecisionMetrics, DecisionOutcome};
use crate::repository::{Oid, Repository};
use crate::run::{AnswerFile, Reporter};
use crypto::Digest;
use protocol::text::escape;
use protocol::{Degraded, DegradedKind};
use quorum::{ModelOpinion, Opinion, Sequence, Vote};

/// The file in a run folder with the record of a decision.
const DECISION_FILE: &str = "decision.json";

/// A log of decisions, its repository, the cluster that decides, and the folder of runs.
pub(super) struct Decider<'a> {
    pub(super) repository: Repository,
    pub(super) log: DecisionLog,
    pub(super) cluster: Cluster,
    /// Whether work trees that have the branch checked out are updated with it.
    pub(super) with_checkout: bool,
    pub(super) runs: PathBuf,
    pub(super) reporter: &'a dyn Reporter,
}

/// The end of a decision.
#[derive(Clone, Debug, Serialize)]
pub struct DecisionEnd {
    /// The outcome in a word.
    pub outcome: DecisionOutcome,
    /// The reason why the change did not land.
    pub reason: Option<String>,
    /// The place in the order of decisions.
    pub sequence: Sequence,
    /// The SHA-256 of the text that was decided on.
    pub change: Digest,
    pub branch: String,
    /// The commit that the change applies to.
    pub base: Oid,
    /// The facts about the change.
    pub facts: Facts,
    /// The commit that landed.
    pub commit: Option<Oid>,
    /// The parties that signed the decision.
    pub signed_by: Vec<String>,
    pub votes: Vec<VotedFor>,
    /// The reviewers without a vote.
    pub silent: Vec<String>,
    /// The losses that make the decision worth less than it looks.
    pub degraded: Vec<Degraded>,
    /// The run in which the change was reviewed.
    pub run: String,
    /// The path of the record that proves the decision.
    pub decision: String,
    /// The figures of the decision.
    pub metrics: DecisionMetrics,
}

impl Decider<'_> {
    /// Finishes a decision that an earlier process began. Returns its proposal, its end, and its proof as text.
    pub(super) async fn finish_open_case(
        &mut self,
    ) -> Result<Option<(Proposal, DecisionEnd, String)>, ApprovalError> {
        let Some(case) = self.log.case() else { return Ok(None) };
        let (sequence, proposal) = (case.sequence, case.proposal.clone());
        self.reporter.warn(&format!("decision {sequence} was begun before and is finished first"));
        let ended = self.conclude(Duration::ZERO, Duration::ZERO).await;
        let (end, proof) = ended.map_err(|why| ApprovalError::NotEnded(sequence, Box::new(why)))?;
        self.reporter.warn(&format!("decision {sequence}: {}", end.outcome.name()));
        Ok(Some((proposal, end, proof)))
    }

    /// Decides on a change. `opinions` are those of the reviewers in this process, with the models that formed them.
    /// `proposing` is the time that it took to make the change ready and to verify it, and `reviewing` the time to review it in
    /// this process.
    pub(super) async fn decide(
        &mut self,
        proposal: &Proposal,
        opinions: Vec<ModelOpinion>,
        run: &str,
        proposing: Duration,
        reviewing: Duration,
        copy: &mut AnswerFile,
    ) -> Result<DecisionEnd, ApprovalError> {
        self.log.begin(proposal, opinions, run)?;
        let (end, proof) = self.conclude(proposing, reviewing).await?;
        copy.write_text(&proof)?;
        Ok(end)
    }

    /// Returns the end of the decision by which a change landed earlier, and its proof as text.
    pub(super) fn describe_landed(&self, landed: &LandedCase) -> (DecisionEnd, String) {
        let LandedCase { case, decided, commit } = landed;
        let ended = CaseOutcome::Landed { commit: commit.clone() };
        let file = self.runs.join(&case.run).join(DECISION_FILE);
        let end = DecisionEnd::new(case, decided.clone(), ended, &file, [Duration::ZERO; 3]);
        (end, to_json(&decided.record))
    }

    /// Has the open case decided on, acts on the decision, and closes the case. Returns the proof as well.
    async fn conclude(
        &mut self,
        proposing: Duration,
        reviewing: Duration,
    ) -> Result<(DecisionEnd, String), ApprovalError> {
        let began = Instant::now();
        let (case, decided) = self.log.decision()?;
        let decided = if let Some(decided) = decided {
            decided
        } else {
            let change = case.proposal.change()?;
            let proof = self.cluster.decide(change, case.opinions().to_vec(), self.reporter).await?;
            self.log.record_decision(&proof)?
        };
        let ended = if decided.verified.approved {
            case.land(&decided, &self.repository, &self.log, self.with_checkout)?
        } else {
            CaseOutcome::Rejected
        };
        self.log.close(ended.clone())?;
        // The proof holds even if its copies cannot be written.
        let proof = to_json(&decided.record);
        let dir = self.runs.join(&case.run);
        private_folder(&dir).map_err(ApprovalError::file("make the folder", &dir))?;
        let file = dir.join(DECISION_FILE);
        write_public(&file, &format!("{proof}\n"))?;
        let spans = [proposing, reviewing, began.elapsed()];
        let end = DecisionEnd::new(&case, decided, ended, &file, spans);
        self.report_end(&end, &quorum_of_votes(self.log.membership(), &end.votes));
        write_public(&dir.join(DECISION_METRICS_FILE), &(to_json(&end.metrics) + "\n"))?;
        Ok((end, proof))
    }

    /// Reports each vote that is not an approval, and how the decision ended.
    fn report_end(&self, end: &DecisionEnd, quorum: &str) {
        // A review in this process reported the votes when it ended.
        if matches!(self.cluster, Cluster::Distributed(_)) {
            for VotedFor { reviewer, opinion, .. } in &end.votes {
                let (kind, reason) = match opinion {
                    Opinion::Approve { .. } => continue,
                    Opinion::Reject { reason, .. } => ("rejects", reason),
                    Opinion::Abstain { reason } => ("abstains", reason),
                };
                let line = format!("{reviewer} {kind}: {}", escape::excerpt(reason));
                self.reporter.status(&escape::terminal(&line));
            }
        }
        // By now the votes name the models that formed them.
        self.reporter.status(&escape::terminal(&format!("quorum: {quorum}")));
        let approving = end.votes.iter().filter(|vote| vote.opinion.vote() == Vote::Approve).count();
        let approved =
            format!("{approving} of {} reviewers approve", self.log.membership().quorum().reviewers());
        let commit = end.commit.as_ref();
        let place = commit.map_or_else(String::new, |commit| format!(" on {} by {commit}", end.branch));
        let why = end.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let outcome = end.outcome.name().replace('_', " ");
        let line = format!("decision {}: {outcome}{place}; {approved}{why}", end.sequence);
        self.reporter.status(&escape::terminal(&line));
        for loss in &end.degraded {
            self.reporter.status(&format!("degraded: {}", loss.detail));
        }
        let place = &end.decision;
        self.reporter.status(&format!(
            "proof: {place}; `consensus verify {place} --keys DIR` needs the public keys only"
        ));
    }
}

/// Returns the JSON form of plain data, which always has one.
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

impl DecisionEnd {
    /// Returns the end of a case, with its figures. `file` has the record, and `spans` are the times of the phases.
    fn new(
        case: &Case,
        decided: RecordedDecision,
        ended: CaseOutcome,
        file: &Path,
        spans: [Duration; 3],
    ) -> Self {
        let (outcome, commit, reason) = match ended {
            CaseOutcome::Landed { commit } => (DecisionOutcome::Landed, Some(commit), None),
            CaseOutcome::NotLanded { why } => (DecisionOutcome::NotLanded, None, Some(why)),
            CaseOutcome::Rejected => {
                let why = "fewer reviewers approve than a quorum".to_owned();
                (DecisionOutcome::Rejected, None, Some(why))
            }
        };
        let verified = decided.verified;
        let proposal = &case.proposal;
        Self {
            outcome,
            reason,
            sequence: verified.sequence,
            change: case.change(),
            branch: proposal.branch.clone(),
            base: proposal.base.clone(),
            facts: proposal.facts.clone(),
            commit,
            metrics: build_metrics(&verified, outcome, spans, proposal.churn()),
            signed_by: verified.signed_by,
            votes: verified.votes,
            silent: verified.silent,
            degraded: list_losses(proposal.verification.as_ref()),
            run: case.run.clone(),
            decision: file.display().to_string(),
        }
    }
}

/// Returns the losses of a decision on a change that a command has verified.
fn list_losses(verification: Option<&CommandVerification>) -> Vec<Degraded> {
    match verification {
        Some(verification) if verification.no_sandbox => vec![Degraded {
            kind: DegradedKind::NoSandbox,
            detail: "the command that verified the change ran without a sandbox".to_owned(),
        }],
        Some(_) | None => Vec::new(),
    }
}

/// Returns the figures of a decision with this outcome.
fn build_metrics(
    verified: &VerifiedRecord,
    outcome: DecisionOutcome,
    spans: [Duration; 3],
    churn: u64,
) -> DecisionMetrics {
    let mut metrics = DecisionMetrics {
        proposal_id: verified.sequence,
        outcome,
        phase_latencies_ms: spans.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        success: outcome == DecisionOutcome::Landed,
        change_complexity: churn,
        // Nothing is applied before it is decided.
        rollback_required: false,
        ..DecisionMetrics::default()
    };
    for VotedFor { opinion, .. } in &verified.votes {
        let (kind, reason, severity) = match opinion {
            Opinion::Approve { .. } => ("approve", None, None),
            Opinion::Reject { reason, severity } => ("reject", Some(reason), Some(severity)),
            Opinion::Abstain { reason } => ("abstain", Some(reason), None),
        };
        *metrics.votes.entry(kind.to_owned()).or_default() += 1;
        metrics.dissent_reasons.extend(reason.cloned());
        if let Some(severity) = severity {
            *metrics.severities.entry(severity.to_string()).or_default() += 1;
        }
    }
    metrics.votes.insert("silent".to_owned(), verified.silent.len() as u64);
    metrics
}
