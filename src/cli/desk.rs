//! Where decisions are made and where they land: what `consensus approve` does once a change was reviewed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value as Json, json};

use super::answer::{self, AnswerFile};
use super::bench::Bench;
use super::global::Format;
use super::output::Output;
use super::reading::ReviewedRun;
use super::{quorum, settings};
use crate::bft::{ModelOpinion, Opinion, Sequence};
use crate::core::ExitCode;
use crate::decision::{Case, Decided, DecisionLog, Ended, Proposal, Verified, VotedFor};
use crate::protocol::Section;
use crate::report::{DECISION_METRICS_FILE, DecisionMetrics, write_whole};
use crate::repository::{Oid, Repository};
use crate::text::escape;

/// The record of a decision inside a run folder.
const DECISION_FILE: &str = "decision.json";

/// Who may read a proof and findings: they are there to be shown. The folder of a run is its owner's alone all the same.
const PUBLIC: u32 = 0o644;

/// A ledger, the repository that it is for, and where runs are.
pub(super) struct Desk<'a> {
    pub(super) repository: Repository,
    pub(super) ledger: DecisionLog,
    pub(super) bench: Bench,
    /// Whether files of a work tree in which the branch is checked out are brought along.
    pub(super) with_checkout: bool,
    pub(super) runs: PathBuf,
    pub(super) output: &'a Output,
}

/// How long it took until a change could be decided on.
#[derive(Clone, Copy, Default)]
pub(super) struct Phases {
    /// To make it ready, and to verify it.
    pub(super) proposed: Duration,
    /// To review it here.
    pub(super) reviewed: Duration,
}

/// How a decision ended.
pub(super) struct Conclusion {
    /// In figures and words, to be printed.
    pub(super) said: Json,
    /// The record that proves it, as text.
    pub(super) proof: String,
}

impl Desk<'_> {
    /// Brings a decision that an earlier process has begun to its end. Returns what was decided on, and how it ended.
    pub(super) async fn finish_what_was_begun(&mut self) -> anyhow::Result<Option<(Proposal, Conclusion)>> {
        let Some(case) = self.ledger.case() else { return Ok(None) };
        let (sequence, proposal) = (case.sequence, case.proposal.clone());
        self.output.insist(&format!("decision {sequence} was begun before, and is brought to its end first"));
        let ended = self
            .conclude(Phases::default())
            .await
            .with_context(|| format!("decision {sequence} cannot be ended"))?;
        let outcome = ended.said["outcome"].as_str().unwrap_or_default();
        self.output.insist(&format!("decision {sequence}: {outcome}"));
        Ok(Some((proposal, ended)))
    }

    /// Decides on a change that was reviewed here.
    pub(super) async fn decide_reviewed(
        &mut self,
        proposal: &Proposal,
        reviewed: &ReviewedRun,
        phases: Phases,
        copy: &mut AnswerFile,
    ) -> anyhow::Result<ExitCode> {
        let result = &reviewed.result;
        let Section::Approval(section) = &result.section else {
            anyhow::bail!("the run is no review; that is an error of this program");
        };
        match result.outcome {
            "agreed" | "no_agreement" => {}
            // A review that is not whole, and one that stops the change if the roleset says so: nothing is proposed.
            outcome => {
                let reason = result.reason.clone().unwrap_or_default();
                self.output.insist(&escape::terminal(&format!("not proposed, {outcome}: {reason}")));
                if outcome != "vetoed" {
                    let run = &result.run;
                    self.output.insist(&format!(
                        "once `consensus resume {run}` has ended the review, decide with the same words and --review {run}"
                    ));
                }
                let said = json!({"outcome": outcome, "reason": reason, "run": result.run});
                self.print(&said)?;
                return Ok(answer::exit_code(result, false));
            }
        }
        let opinions = section.reviews.iter().map(|review| review.opinion.clone());
        let readings =
            opinions.enumerate().map(|(at, opinion)| ModelOpinion { opinion, model: reviewed.model_of(at) });
        self.decide(proposal, readings.collect(), &result.run, phases, copy).await
    }

    /// Decides on a change: of those who sit together, these are the opinions, and the models that formed them.
    pub(super) async fn decide(
        &mut self,
        proposal: &Proposal,
        readings: Vec<ModelOpinion>,
        run: &str,
        phases: Phases,
        copy: &mut AnswerFile,
    ) -> anyhow::Result<ExitCode> {
        self.ledger.begin(proposal, readings, run)?;
        let Conclusion { said, proof } = self.conclude(phases).await?;
        copy.write_text(&proof)?;
        self.tell(&said)
    }

    /// Prints how a decision ended.
    pub(super) fn tell(&self, said: &Json) -> anyhow::Result<ExitCode> {
        let is_landed = said["outcome"] == "landed";
        let outcome = said["outcome"].as_str().unwrap_or_default();
        if self.output.format == Format::Text {
            self.output.line(said["commit"].as_str().unwrap_or(outcome))?;
        }
        self.print(said)?;
        Ok(if is_landed { ExitCode::Success } else { ExitCode::NoAgreement })
    }

    fn print(&self, said: &Json) -> anyhow::Result<()> {
        if self.output.format == Format::Text { Ok(()) } else { self.output.json(said) }
    }

    /// Has the case that is open decided on, does what follows, and closes it.
    async fn conclude(&mut self, phases: Phases) -> anyhow::Result<Conclusion> {
        let began = Instant::now();
        let (case, decided) = self.ledger.decision()?;
        let decided = if let Some(decided) = decided {
            decided
        } else {
            let change = case.proposal.change()?;
            let ruling = self.bench.decide(change, case.opinions().to_vec()).await?;
            self.ledger.decided(&ruling)?
        };
        let ended = if decided.verified.approved {
            case.land(&decided, &self.repository, &self.ledger, self.with_checkout)?
        } else {
            Ended::Rejected
        };
        let Decided { record, verified } = decided;
        self.ledger.close(ended.clone())?;
        // What is proven is proven, whatever becomes of the copies.
        let proof = serde_json::to_string_pretty(&record)?;
        let dir = self.runs.join(&case.run);
        settings::private_folder(&dir)?;
        let file = dir.join(DECISION_FILE);
        write_public(&file, &format!("{proof}\n"))?;
        let (outcome, commit, reason) = match ended {
            Ended::Landed { commit } => ("landed", Some(commit), None),
            Ended::NotLanded { why } => ("not_landed", None, Some(why)),
            Ended::Rejected => ("rejected", None, Some("fewer reviewers approve than a quorum".to_owned())),
        };
        for VotedFor { reviewer, opinion, .. } in &verified.votes {
            let (kind, reason) = match opinion {
                Opinion::Approve { .. } => continue,
                Opinion::Reject { reason, .. } => ("rejects", reason),
                Opinion::Abstain { reason } => ("abstains", reason),
            };
            self.output.tell(&escape::terminal(&format!("{reviewer} {kind}: {}", escape::excerpt(reason))));
        }
        if matches!(self.bench, Bench::Apart(_)) {
            // By now the votes say on which models they rest.
            let quorum = quorum::of_votes(self.ledger.registry(), &verified);
            self.output.tell(&escape::terminal(&format!("quorum: {quorum}")));
        }
        let line = detail(verified.sequence, outcome, commit.as_ref(), &case, reason.as_deref());
        self.output.tell(&escape::terminal(&line));
        let place = file.display();
        self.output.tell(&format!(
            "proof: {place}; `consensus verify {place} --keys DIR` needs the public keys only"
        ));
        let spans = [phases.proposed, phases.reviewed, began.elapsed()];
        let metrics = figures(&verified, outcome, spans, case.proposal.churn());
        let figures = serde_json::to_string_pretty(&metrics)? + "\n";
        write_public(&dir.join(DECISION_METRICS_FILE), &figures)?;
        let said = json!({
            "outcome": outcome,
            "reason": reason,
            "sequence": verified.sequence,
            "change": case.change(),
            "branch": case.proposal.branch,
            "base": case.proposal.base,
            "facts": case.proposal.facts,
            "commit": commit,
            "signed_by": verified.signed_by,
            "votes": verified.votes,
            "silent": verified.silent,
            "run": case.run,
            "decision": file.display().to_string(),
            "metrics": metrics,
        });
        Ok(Conclusion { said, proof })
    }
}

/// The figures of a decision that ended so.
fn figures(verified: &Verified, outcome: &str, spans: [Duration; 3], churn: u64) -> DecisionMetrics {
    let mut metrics = DecisionMetrics {
        proposal_id: verified.sequence,
        outcome: outcome.to_owned(),
        phase_latencies_ms: spans.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        success: outcome == "landed",
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

/// How a decision ended, in a line.
fn detail(
    sequence: Sequence,
    outcome: &str,
    commit: Option<&Oid>,
    case: &Case,
    reason: Option<&str>,
) -> String {
    let place = commit.map_or_else(String::new, |commit| format!(" on {} by {commit}", case.proposal.branch));
    let why = reason.map_or_else(String::new, |why| format!(": {why}"));
    format!("decision {sequence}: {}{place}{why}", outcome.replace('_', " "))
}

/// Writes a file that everybody may read.
pub(super) fn write_public(path: &Path, text: &str) -> anyhow::Result<()> {
    write_whole(path, text, PUBLIC).with_context(|| format!("cannot write `{}`", path.display()))
}
