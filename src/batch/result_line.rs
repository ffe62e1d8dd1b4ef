//! One line of results: how one run ended, and of what it was the run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::grader::Given;
use super::matrix::Cell;
use crate::crypto::Digest;
use crate::engine::{PhaseUsage, RunState};
use crate::protocol::OutcomeKind;
use crate::report::RunResult;

/// How one run ended.
#[derive(Clone, Debug, Serialize)]
pub struct ResultLine {
    /// The task's id.
    pub task: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// The name of its arm; absent without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// What the task is labelled with; absent where it is not.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// Whether the agreed text is the right answer; null where that is not known.
    pub right: Option<bool>,
    /// The same of the plain vote over blind drafts, before any talk.
    pub blind_right: Option<bool>,
    /// What each phase of the run has used.
    pub phases: BTreeMap<&'static str, PhaseUsage>,
    /// SHA-256 of what the run started from, as its line of tasks, its roleset and parameters say it.
    pub made_of: Digest,
    /// The same as in a `result.json`.
    #[serde(flatten)]
    pub result: RunResult,
}

/// How a run has ended, by its records.
#[derive(Debug)]
pub(super) struct EndedRun {
    pub(super) result: RunResult,
    pub(super) phases: BTreeMap<&'static str, PhaseUsage>,
}

impl EndedRun {
    pub(super) fn new(state: &RunState, journal_head: Digest) -> Self {
        Self { result: RunResult::new(state, journal_head), phases: phases(state) }
    }
}

/// What each phase of a run has used, by its name.
pub(super) fn phases(state: &RunState) -> BTreeMap<&'static str, PhaseUsage> {
    state.phases().iter().map(|(phase, used)| (phase.name(), *used)).collect()
}

/// What is needed of a line to go on with a batch.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Known {
    pub(super) run: Uuid,
    pub(super) outcome: OutcomeKind,
    pub(super) right: Option<bool>,
    pub(super) journal_head: Digest,
}

/// What is needed of a line to grade it anew.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Graded {
    pub(super) outcome: OutcomeKind,
    pub(super) right: Option<bool>,
    pub(super) blind_right: Option<bool>,
    pub(super) made_of: Digest,
    #[serde(flatten)]
    text: Given,
    blind_vote: Given,
}

impl ResultLine {
    /// The line of a run of this cell, which began as what `made_of` says.
    pub(super) fn new(cell: &Cell<'_>, made_of: Digest, ended: EndedRun) -> Self {
        let EndedRun { result, phases } = ended;
        let mut row = Self {
            task: cell.task.id.clone(),
            model: cell.column.model.clone(),
            arm: cell.column.arm.clone(),
            seed: cell.seed,
            meta: cell.meta(),
            right: None,
            blind_right: None,
            phases,
            made_of,
            result,
        };
        let RunResult { outcome, text, sha256, blind_vote, .. } = &row.result;
        let text = Given { text: text.clone(), sha256: *sha256 };
        let blind = Given { text: blind_vote.text.clone(), sha256: blind_vote.sha256 };
        [row.right, row.blind_right] = rights(cell, *outcome, [&text, &blind]);
        row
    }
}

impl Graded {
    /// Whether the run and its blind vote are right, by the answer that its task has now.
    pub(super) fn rights(&self, cell: &Cell<'_>) -> [Option<bool>; 2] {
        rights(cell, self.outcome, [&self.text, &self.blind_vote])
    }
}

/// Whether a run and its blind vote are right; not known of one that was cut off.
fn rights(cell: &Cell<'_>, ending: OutcomeKind, given: [&Given; 2]) -> [Option<bool>; 2] {
    if ending.is_final() { given.map(|given| cell.is_right(given)) } else { [None; 2] }
}
