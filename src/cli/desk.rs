//! Where decisions are made and where they land: what `consensus approve` does once a change was reviewed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value as Json, json};

use super::answer::{self, AnswerFile};
use super::output::{Format, Output};
use super::{ExitCode, settings};
use crate::decision::{Case, Decided, Ended, Ledger, Proposal};
use crate::protocol::Section;
use crate::protocol::approval::Opinion;
use crate::report::{RunResult, write_whole};
use crate::repository::{Oid, Repository};
use crate::text::quote;

/// The record of a decision inside a run folder.
const DECISION_FILE: &str = "decision.json";

/// Who may read a proof and findings: they are there to be shown. The folder of a run is its owner's alone all the same.
const PUBLIC: u32 = 0o644;

/// A ledger, the repository that it is for, and where runs are.
pub(super) struct Desk<'a> {
    pub(super) repository: Repository,
    pub(super) ledger: Ledger,
    pub(super) runs: PathBuf,
    pub(super) output: &'a Output,
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
    pub(super) fn finish_what_was_begun(&mut self) -> anyhow::Result<Option<(Proposal, Conclusion)>> {
        let Some(case) = self.ledger.case() else { return Ok(None) };
        let (sequence, proposal) = (case.sequence, case.proposal.clone());
        self.output.insist(&format!("decision {sequence} was begun before, and is brought to its end first"));
        let ended = self.conclude().with_context(|| format!("decision {sequence} cannot be ended"))?;
        let outcome = ended.said["outcome"].as_str().unwrap_or_default();
        self.output.insist(&format!("decision {sequence}: {outcome}"));
        Ok(Some((proposal, ended)))
    }

    /// Decides on a change that was reviewed. The phases are how long it took to propose it and to review it.
    pub(super) fn decide(
        &mut self,
        proposal: &Proposal,
        result: &RunResult,
        [proposed, prepared]: [Duration; 2],
        copy: &mut AnswerFile,
    ) -> anyhow::Result<ExitCode> {
        let Section::Approval(section) = &result.section else {
            anyhow::bail!("the run is no review; that is an error of this program");
        };
        match result.outcome {
            "agreed" | "no_agreement" => {}
            // A review that is not whole, and one that stops the change if the roleset says so: nothing is proposed.
            outcome => {
                let reason = result.reason.clone().unwrap_or_default();
                self.output.insist(&quote::terminal(&format!("not proposed, {outcome}: {reason}")));
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
        let began = Instant::now();
        let opinions: Vec<Opinion> = section.reviews.iter().map(|review| review.opinion.clone()).collect();
        self.ledger.begin(proposal, opinions, &result.run)?;
        let Conclusion { mut said, proof } = self.conclude()?;
        copy.write_text(&proof)?;
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        said["metrics"] = json!({
            "proposal_id": said["sequence"],
            "phase_latencies_ms": [ms(proposed), ms(prepared), ms(began.elapsed())],
            "success": said["outcome"] == "landed",
            "dissent_reasons": result.dissent.iter().map(|dissent| &dissent.why).collect::<Vec<_>>(),
            "change_complexity": proposal.churn(),
            // Nothing is applied before it is decided.
            "rollback_required": false,
        });
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

    /// Decides on the case that is open, does what follows, and closes it.
    fn conclude(&mut self) -> anyhow::Result<Conclusion> {
        let (case, Decided { record, verified }) = self.ledger.decide()?;
        let ended =
            if verified.approved { case.land(&self.repository, &self.ledger)? } else { Ended::Rejected };
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
        self.narrate(&case, outcome, commit.as_ref().map(Oid::as_str), reason.as_deref(), &file);
        let said = json!({
            "outcome": outcome,
            "reason": reason,
            "sequence": case.sequence,
            "change": verified.change,
            "branch": case.proposal.branch,
            "base": case.proposal.base,
            "commit": commit,
            "signed_by": verified.signed_by,
            "votes": verified.votes,
            "run": case.run,
            "decision": file.display().to_string(),
        });
        Ok(Conclusion { said, proof })
    }

    fn narrate(&self, case: &Case, outcome: &str, commit: Option<&str>, reason: Option<&str>, file: &Path) {
        let (sequence, branch, file) = (case.sequence, &case.proposal.branch, file.display());
        let detail = commit.map_or_else(String::new, |commit| format!(" on {branch} by {commit}"));
        let why = reason.map_or_else(String::new, |why| format!(": {why}"));
        let line = format!("decision {sequence}: {}{detail}{why}", outcome.replace('_', " "));
        self.output.tell(&quote::terminal(&line));
        self.output
            .tell(&format!("proof: {file}; `consensus verify {file} --keys DIR` needs the public keys only"));
    }
}

/// Writes a file that everybody may read.
pub(super) fn write_public(path: &Path, text: &str) -> anyhow::Result<()> {
    write_whole(path, text, PUBLIC).with_context(|| format!("cannot write `{}`", path.display()))
}
