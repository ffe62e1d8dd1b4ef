//! Deciding on a change and bringing it onto its branch: the log of decisions is written before each step, so that a
//! later process can finish what this one began.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::cluster::Cluster;
use super::error::ApprovalError;
use super::facts::Facts;
use super::log::{Case, Decided, DecisionLog, Ended, LandedCase};
use super::proposal::Proposal;
use super::quorum_words;
use super::record::{Verified, VotedFor};
use crate::bft::{ModelOpinion, Opinion, Sequence, Vote};
use crate::crypto::Digest;
use crate::files::{private_folder, write_whole};
use crate::report::{DECISION_METRICS_FILE, DecisionMetrics, DecisionOutcome};
use crate::repository::{Oid, Repository};
use crate::run::{AnswerFile, Notices};
use crate::text::escape;

/// The record of a decision inside a run folder.
const DECISION_FILE: &str = "decision.json";

/// Who may read a proof and findings: they are there to be shown. The folder of a run is its owner's alone all the same.
const PUBLIC: u32 = 0o644;

/// A log of decisions, the repository that it is for, who decides, and where runs are.
pub(super) struct Decider<'a> {
    pub(super) repository: Repository,
    pub(super) log: DecisionLog,
    pub(super) cluster: Cluster,
    /// Whether files of a work tree in which the branch is checked out are brought along.
    pub(super) with_checkout: bool,
    pub(super) runs: PathBuf,
    pub(super) notices: &'a dyn Notices,
}

/// How long it took until a change could be decided on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Phases {
    /// To make it ready, and to verify it.
    pub(super) proposed: Duration,
    /// To review it here.
    pub(super) reviewed: Duration,
}

/// How a decision ended.
#[derive(Clone, Debug, Serialize)]
pub struct DecisionEnd {
    /// In a word.
    pub outcome: DecisionOutcome,
    /// Why it did not land.
    pub reason: Option<String>,
    /// Its place in the order of decisions.
    pub sequence: Sequence,
    /// The SHA-256 of what was decided on.
    pub change: Digest,
    /// The branch.
    pub branch: String,
    /// The commit that the change is for.
    pub base: Oid,
    /// What code knows of the change.
    pub facts: Facts,
    /// The commit that landed.
    pub commit: Option<Oid>,
    /// Who signed the decision.
    pub signed_by: Vec<String>,
    /// The votes.
    pub votes: Vec<VotedFor>,
    /// Reviewers without a vote.
    pub silent: Vec<String>,
    /// The run in which it was reviewed.
    pub run: String,
    /// Where the record is that proves it.
    pub decision: String,
    /// Its figures.
    pub metrics: DecisionMetrics,
}

impl Decider<'_> {
    /// Brings a decision that an earlier process has begun to its end. Returns what was decided on, and how it ended.
    /// The third part is the proof, as text.
    pub(super) async fn finish_what_was_begun(
        &mut self,
    ) -> Result<Option<(Proposal, DecisionEnd, String)>, ApprovalError> {
        let Some(case) = self.log.case() else { return Ok(None) };
        let (sequence, proposal) = (case.sequence, case.proposal.clone());
        self.notices.warn(&format!("decision {sequence} was begun before, and is brought to its end first"));
        let ended = self.conclude(Phases::default()).await;
        let (end, proof) = ended.map_err(|why| ApprovalError::NotEnded(sequence, Box::new(why)))?;
        self.notices.warn(&format!("decision {sequence}: {}", end.outcome.name()));
        Ok(Some((proposal, end, proof)))
    }

    /// Decides on a change: of those who are in this process, these are the opinions, and the models that formed them.
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

    /// Returns how the decision ended by which a change has landed before, and the proof, as text.
    pub(super) fn landed_before(&self, landed: &LandedCase) -> (DecisionEnd, String) {
        let LandedCase { case, decided, commit } = landed;
        let ended = Ended::Landed { commit: commit.clone() };
        let file = self.runs.join(&case.run).join(DECISION_FILE);
        let end = end(case, decided.clone(), ended, &file, |outcome, verified| {
            figures(verified, outcome, [Duration::ZERO; 3], case.proposal.churn())
        });
        (end, in_json(&decided.record))
    }

    /// Has the case that is open decided on, does what follows, and closes it. Returns the proof as well.
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
        // What is proven is proven, whatever becomes of the copies.
        let proof = in_json(&decided.record);
        let dir = self.runs.join(&case.run);
        private_folder(&dir).map_err(ApprovalError::file("make the folder", &dir))?;
        let file = dir.join(DECISION_FILE);
        write_public(&file, &format!("{proof}\n"))?;
        let end = end(&case, decided, ended, &file, |outcome, verified| {
            let spans = [phases.proposed, phases.reviewed, began.elapsed()];
            figures(verified, outcome, spans, case.proposal.churn())
        });
        self.tell(&end, &quorum_words::of_votes(self.log.membership(), &end.votes));
        write_public(&dir.join(DECISION_METRICS_FILE), &(in_json(&end.metrics) + "\n"))?;
        Ok((end, proof))
    }

    /// Tells how each reviewer voted who did not approve, and how the decision ended.
    fn tell(&self, end: &DecisionEnd, quorum: &str) {
        // A review in this process has told it when it ended.
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
        // By now the votes say on which models they rest.
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
        let place = &end.decision;
        self.notices.status(&format!(
            "proof: {place}; `consensus verify {place} --keys DIR` needs the public keys only"
        ));
    }
}

/// Plain data, which always has a JSON form.
fn in_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// How a case has ended, with its figures.
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
        run: case.run.clone(),
        decision: file.display().to_string(),
    }
}

/// The figures of a decision that ended so.
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

/// Writes a file that everybody may read.
pub(super) fn write_public(path: &Path, text: &str) -> Result<(), ApprovalError> {
    write_whole(path, text, PUBLIC).map_err(ApprovalError::file("write", path))
}
