//! The state of a review, and each reviewer's opinion up to now.

use std::collections::{BTreeMap, VecDeque};

use super::diff::{self, DiffPart};
use super::form::{Finding, Form, Verdict};
use super::params::ReviewSetup;
use crate::contract::{CallId, Outcome};
use crate::turn::Draft;
use quorum::{OPINION_BYTES_MAX, Opinion, Quorum, Severity};

/// The text that is agreed on when a quorum approves.
pub(super) const APPROVED: &str = "approve";

/// The state of one review.
#[derive(Clone, Debug)]
pub struct Review {
    pub(super) setup: ReviewSetup,
    pub(super) parts: Vec<DiffPart>,
    /// The forms in the making, by the call that each waits for.
    pub(super) open: BTreeMap<CallId, Draft>,
    /// The parts that each reviewer has not been asked about.
    pub(super) waiting: Vec<VecDeque<usize>>,
    /// The forms of each reviewer, by part; `None` for a part without a valid form.
    pub(super) forms: Vec<BTreeMap<usize, Option<Form>>>,
    pub(super) repairs: Vec<u32>,
    pub(super) outcome: Option<Outcome>,
    pub(super) has_started: bool,
    pub(super) remark: Option<&'static str>,
}

impl Review {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub fn new(setup: ReviewSetup) -> Self {
        let reviewers = setup.agents.len();
        let parts = diff::parts(&setup.task.documents, setup.params.part_tokens);
        Self {
            open: BTreeMap::new(),
            waiting: vec![(0..parts.len()).collect(); reviewers],
            forms: vec![BTreeMap::new(); reviewers],
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
        Quorum::new(self.setup.agents.len()).ok()
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
        let valid = || forms.values().flatten();
        if valid().any(|form| form.verdict == Verdict::Reject) {
            let rejecting = valid().filter(|form| form.verdict == Verdict::Reject);
            let findings: Vec<&Finding> = rejecting.flat_map(|form| &form.findings).collect();
            let severity = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Low);
            let lines = findings.iter().map(ToString::to_string);
            return Some(Opinion::Reject { reason: bounded(lines), severity });
        }
        let lost = forms.iter().find(|(_, form)| form.is_none()).map(|(part, _)| part + 1);
        if let Some(part) = lost {
            let reason = format!("it wrote no valid review of part {part} of {}", self.parts.len());
            return Some(Opinion::Abstain { reason });
        }
        let summaries = |verdict| {
            bounded(valid().filter(move |form| form.verdict == verdict).map(|form| form.summary.clone()))
        };
        if valid().any(|form| form.verdict == Verdict::Abstain) {
            return Some(Opinion::Abstain { reason: summaries(Verdict::Abstain) });
        }
        // A reviewer is no surer of the whole than of any part.
        let confidence = valid().map(|form| form.confidence).min().unwrap_or(0);
        Some(Opinion::Approve { confidence: u16::from(confidence) * 100, notes: summaries(Verdict::Approve) })
    }
}

/// Returns as many of these lines as an opinion may have.
fn bounded(lines: impl Iterator<Item = String>) -> String {
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
