//! The state of a review, and each reviewer's opinion up to now.

use std::collections::{BTreeMap, VecDeque};

use super::diff::{self, DiffLine};
use super::form::{Finding, PartReview, Verdict};
use super::params::ApprovalParams;
use crate::contract::{CallId, Outcome, Setup};
use crate::turn::Draft;
use quorum::{OPINION_BYTES_MAX, Opinion, Quorum, Severity};

/// The text that is agreed on when a quorum approves.
pub(super) const APPROVED: &str = "approve";

/// The state of one review.
#[derive(Clone, Debug)]
pub struct Review {
    pub(super) setup: Setup<ApprovalParams>,
    /// The lines of the diff that are read at once.
    pub(super) parts: Vec<Vec<DiffLine>>,
    /// The forms in the making, by the call that each waits for.
    pub(super) open: BTreeMap<CallId, Draft>,
    /// The parts that each reviewer has not been asked about; once the findings of others are judged, those parts that have some.
    pub(super) waiting: Vec<VecDeque<usize>>,
    /// The forms of each reviewer, by part; `None` for a part without a valid form.
    pub(super) forms: Vec<BTreeMap<usize, Option<PartReview>>>,
    /// Which findings of others each reviewer confirms, by part, in the order of its claims; `None` for a part without a valid form.
    pub(super) confirmations: Vec<BTreeMap<usize, Option<Vec<bool>>>>,
    /// Whether the findings of others are being judged.
    pub(super) is_confirming: bool,
    pub(super) repairs: Vec<u32>,
    pub(super) outcome: Option<Outcome>,
    pub(super) has_started: bool,
    pub(super) remark: Option<&'static str>,
}

impl Review {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub fn new(setup: Setup<ApprovalParams>) -> Self {
        let reviewers = setup.agents.len();
        let parts = diff::parts(&setup.task.documents, setup.params.part_tokens);
        Self {
            open: BTreeMap::new(),
            waiting: vec![(0..parts.len()).collect(); reviewers],
            forms: vec![BTreeMap::new(); reviewers],
            confirmations: vec![BTreeMap::new(); reviewers],
            is_confirming: false,
            repairs: vec![0; reviewers],
            outcome: None,
            has_started: false,
            remark: None,
            parts,
            setup,
        }
    }

    /// Returns the quorum that must approve.
    pub(super) fn quorum(&self) -> Option<Quorum> {
        Quorum::new(self.setup.agents.len())
    }

    /// Returns the findings of a reviewer up to now.
    pub(super) fn findings(&self, reviewer: usize) -> impl Iterator<Item = &Finding> {
        self.forms[reviewer].values().flatten().flat_map(|form| &form.findings)
    }

    /// Returns a reviewer's opinion on the whole change, once it has read all of it.
    pub(super) fn opinion(&self, reviewer: usize) -> Option<Opinion> {
        let forms = &self.forms[reviewer];
        if forms.len() < self.parts.len() {
            return None;
        }
        let valid: Vec<&PartReview> = forms.values().flatten().collect();
        if valid.iter().any(|form| form.verdict == Verdict::Reject) {
            let rejecting = valid.iter().filter(|form| form.verdict == Verdict::Reject);
            let findings: Vec<&Finding> = rejecting.flat_map(|form| &form.findings).collect();
            let severity = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Low);
            let lines = findings.iter().map(ToString::to_string);
            return Some(Opinion::Reject { reason: join_bounded(lines), severity });
        }
        let lost = forms.iter().find(|(_, form)| form.is_none()).map(|(part, _)| part + 1);
        if let Some(part) = lost {
            let reason = format!("it wrote no valid review of part {part} of {}", self.parts.len());
            return Some(Opinion::Abstain { reason });
        }
        if valid.iter().any(|form| form.verdict == Verdict::Abstain) {
            return Some(Opinion::Abstain { reason: join_summaries(&valid, Verdict::Abstain) });
        }
        // A reviewer is no surer of the whole than of any part.
        let confidence = valid.iter().map(|form| form.confidence).min().unwrap_or(0);
        let notes = join_summaries(&valid, Verdict::Approve);
        Some(Opinion::Approve { confidence: u16::from(confidence) * 100, notes })
    }
}

/// Returns the summaries of the forms with this verdict, as many as an opinion may have.
fn join_summaries(forms: &[&PartReview], verdict: Verdict) -> String {
    join_bounded(forms.iter().filter(|form| form.verdict == verdict).map(|form| form.summary.clone()))
}

/// Returns as many of these lines as an opinion may have.
fn join_bounded(lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        if text.len() + line.len() + 1 > OPINION_BYTES_MAX {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    }
    text
}
