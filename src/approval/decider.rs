//! Decides on a change and brings it onto its branch. The log of decisions is written before each step, so that a later process
//! can finish a decision that this one began.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::cluster::Cluster;
use super::error::ApprovalError;
use super::facts::Facts;
use super::log::{Case, Decided, DecisionLog, Ended, LandedCase};
use super::proposal::Proposal;
use super::record::{Verified, VotedFor, quorum_of_votes};
use super::verification::CommandVerification;
use crate::files::{private_folder, write_whole};
use crate::report::{DECISION_METRICS_FILE, DecisionMetrics, DecisionOutcome};
use crate::repository::{Oid, Repository};
use crate::run::{AnswerFile, Notices};
use crypto::Digest;
use protocol::text::escape;
use protocol::{Degraded, DegradedKind};
use quorum::{ModelOpinion, Opinion, Sequence, Vote};

/// The file in a run folder with the record of a decision.
const DECISION_FILE: &str = "decision.json";

/// The mode of proofs and findings, which everyone may read, since they are there to be shown. The folder of a run is still its
/// owner's alone.
const PUBLIC: u32 = 0o644;

/// A log of decisions, its repository, the cluster that decides, and the folder of runs.
pub(super) struct Decider<'a> {
    pub(super) repository: Repository,
    pub(super) log: DecisionLog,
    pub(super) cluster: Cluster,
    /// Whether work trees that have the branch checked out are updated with it.
    pub(super) with_checkout: bool,
    pub(super) runs: PathBuf,
    pub(super) notices: &'a dyn Notices,
}

/// The time that passed before a change could be decided on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Phases {
    /// The time to make it ready and to verify it.
    pub(super) proposed: Duration,
    /// The time to review it in this process.
    pub(super) reviewed: Duration,
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
    pub(super) async fn finish_what_was_begun(
        &mut self,
    ) -> Result<Option<(Proposal, DecisionEnd, String)>, ApprovalError> {
        let Some(case) = self.log.case() else { return Ok(None) };
        let (sequence, proposal) = (case.sequence, case.proposal.clone());
        self.notices.warn(&format!("decision {sequence} was begun before and is finished first"));
        let ended = self.conclude(Phases::default()).await;
        let (end, proof) = ended.map_err(|why| ApprovalError::NotEnded(sequence, Box::new(why)))?;
        self.notices.warn(&format!("decision {sequence}: {}", end.outcome.name()));
        Ok(Some((proposal, end, proof)))
    }

    /// Decides on a change. `opinions` are those of the reviewers in this process, with the models that formed them.
    pub(super) async fn decide(
        &mut self,
        proposal: &Proposal,
        opinions: Vec<ModelOpinion>,
        run: &str,
        phases: Phases,
        copy: &mut AnswerFile,
    ) -> Result<DecisionEnd, ApprovalError> {
        self.log.begin(proposal, opinions, run)?;
        let (end, proof) = self.conclude(phases).await?;
        copy.write_text(&proof)?;
        Ok(end)
    }

    /// Returns the end of the decision by which a change landed earlier, and its proof as text.
    pub(super) fn landed_before(&self, landed: &LandedCase) -> (DecisionEnd, String) {
        let LandedCase { case, decided, commit } = landed;
        let ended = Ended::Landed { commit: commit.clone() };
        let file = self.runs.join(&case.run).join(DECISION_FILE);
        let end = end(case, decided.clone(), ended, &file, |outcome, verified| {
            figures(verified, outcome, [Duration::ZERO; 3], case.proposal.churn())
        });
        (end, in_json(&decided.record))
    }

    /// Has the open case decided on, acts on the decision, and closes the case. Returns the proof as well.
    async fn conclude(&mut self, phases: Phases) -> Result<(DecisionEnd, String), ApprovalError> {
        let began = Instant::now();
        let (case, decided) = self.log.decision()?;
        let decided = if let Some(decided) = decided {
            decided
        } else {
            let change = case.proposal.change()?;
            let proof = self.cluster.decide(change, case.opinions().to_vec(), self.notices).await?;
            self.log.decided(&proof)?
        };
        let ended = if decided.verified.approved {
            case.land(&decided, &self.repository, &self.log, self.with_checkout)?
        } else {
            Ended::Rejected
        };
        self.log.close(ended.clone())?;
        // The proof holds even if its copies cannot be written.
        let proof = in_json(&decided.record);
        let dir = self.runs.join(&case.run);
        private_folder(&dir).map_err(ApprovalError::file("make the folder", &dir))?;
        let file = dir.join(DECISION_FILE);
        write_public(&file, &format!("{proof}\n"))?;
        let end = end(&case, decided, ended, &file, |outcome, verified| {
            let spans = [phases.proposed, phases.reviewed, began.elapsed()];
            figures(verified, outcome, spans, case.proposal.churn())
        });
        self.tell(&end, &quorum_of_votes(self.log.membership(), &end.votes));
        write_public(&dir.join(DECISION_METRICS_FILE), &(in_json(&end.metrics) + "\n"))?;
        Ok((end, proof))
    }

    /// Reports each vote that is not an approval, and how the decision ended.
    fn tell(&self, end: &DecisionEnd, quorum: &str) {
        // A review in this process reported the votes when it ended.
        let is_distributed = matches!(self.cluster, Cluster::Distributed(_));
        for VotedFor { reviewer, opinion, .. } in end.votes.iter().filter(|_| is_distributed) {
            let (kind, reason) = match opinion {
                Opinion::Approve { .. } => continue,
                Opinion::Reject { reason, .. } => ("rejects", reason),
                Opinion::Abstain { reason } => ("abstains", reason),
            };
            let line = format!("{reviewer} {kind}: {}", escape::excerpt(reason));
            self.notices.status(&escape::terminal(&line));
        }
        // By now the votes name the models that formed them.
        self.notices.status(&escape::terminal(&format!("quorum: {quorum}")));
        let approving = end.votes.iter().filter(|vote| vote.opinion.vote() == Vote::Approve).count();
        let approved =
            format!("{approving} of {} reviewers approve", self.log.membership().quorum().reviewers());
        let commit = end.commit.as_ref();
        let place = commit.map_or_else(String::new, |commit| format!(" on {} by {commit}", end.branch));
        let why = end.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let outcome = end.outcome.name().replace('_', " ");
        let line = format!("decision {}: {outcome}{place}; {approved}{why}", end.sequence);
        self.notices.status(&escape::terminal(&line));
        for loss in &end.degraded {
            self.notices.status(&format!("degraded: {}", loss.detail));
        }
        let place = &end.decision;
        self.notices.status(&format!(
            "proof: {place}; `consensus verify {place} --keys DIR` needs the public keys only"
        ));
    }
}

/// Returns the JSON form of plain data, which always has one.
fn in_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the end of a case, with its figures.
fn end(
    case: &Case,
    decided: Decided,
    ended: Ended,
    file: &Path,
    figures: impl FnOnce(DecisionOutcome, &Verified) -> DecisionMetrics,
) -> DecisionEnd {
    let (outcome, commit, reason) = match ended {
        Ended::Landed { commit } => (DecisionOutcome::Landed, Some(commit), None),
        Ended::NotLanded { why } => (DecisionOutcome::NotLanded, None, Some(why)),
        Ended::Rejected => {
            let why = "fewer reviewers approve than a quorum".to_owned();
            (DecisionOutcome::Rejected, None, Some(why))
        }
    };
    let verified = decided.verified;
    DecisionEnd {
        outcome,
        reason,
        sequence: verified.sequence,
        change: case.change(),
        branch: case.proposal.branch.clone(),
        base: case.proposal.base.clone(),
        facts: case.proposal.facts.clone(),
        commit,
        metrics: figures(outcome, &verified),
        signed_by: verified.signed_by,
        votes: verified.votes,
        silent: verified.silent,
        degraded: degraded(case.proposal.verification.as_ref()),
        run: case.run.clone(),
        decision: file.display().to_string(),
    }
}

/// Returns the losses of a decision on a change that a command has verified.
fn degraded(verification: Option<&CommandVerification>) -> Vec<Degraded> {
    let unwalled = verification.filter(|verification| verification.no_sandbox);
    let lost = |_| Degraded {
        kind: DegradedKind::NoSandbox,
        detail: "the command that verified the change ran without a sandbox".to_owned(),
    };
    unwalled.map(lost).into_iter().collect()
}

/// Returns the figures of a decision with this outcome.
fn figures(
    verified: &Verified,
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

/// Writes a file that everyone may read.
pub(super) fn write_public(path: &Path, text: &str) -> Result<(), ApprovalError> {
    write_whole(path, text, PUBLIC).map_err(ApprovalError::file("write", path))
}
