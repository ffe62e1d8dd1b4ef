//! One line of results: how one run ended, and of what it was the run.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::matrix::Cell;
use crate::crypto::Digest;
use crate::protocol::OutcomeKind;
use crate::report::RunResult;

/// How one run ended.
#[derive(Clone, Debug, Serialize)]
pub struct ResultLine {
    /// The task's id.
    pub task: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// The seed.
    pub seed: u64,
    /// Whether the agreed text is the right answer; null where that is not known.
    pub right: Option<bool>,
    /// The same of the plain vote over blind drafts, before any talk.
    pub blind_right: Option<bool>,
    /// SHA-256 of what the run started from, as its line of tasks, its roleset and parameters say it.
    pub made_of: Digest,
    /// The same as in a `result.json`.
    #[serde(flatten)]
    pub result: RunResult,
}

/// What is needed of a line to go on with a batch.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Known {
    pub(super) run: Uuid,
    pub(super) outcome: OutcomeKind,
    pub(super) right: Option<bool>,
    pub(super) blind_right: Option<bool>,
    pub(super) made_of: Digest,
    pub(super) journal_head: Digest,
    sha256: Option<Digest>,
    blind_vote: Blind,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Blind {
    sha256: Option<Digest>,
}

impl ResultLine {
    /// The line of a run of this cell, which began as what `made_of` says.
    pub(super) fn new(cell: &Cell<'_>, made_of: Digest, result: RunResult) -> Self {
        let mut row = Self {
            task: cell.task.id.clone(),
            model: cell.column.model.clone(),
            seed: cell.seed,
            right: None,
            blind_right: None,
            made_of,
            result,
        };
        [row.right, row.blind_right] =
            rights(cell, row.result.outcome, row.result.sha256, row.result.blind_vote.sha256);
        row
    }
}

impl Known {
    /// Whether the run and its blind vote are right, by the answer that its task has now.
    pub(super) fn rights(&self, cell: &Cell<'_>) -> [Option<bool>; 2] {
        rights(cell, self.outcome, self.sha256, self.blind_vote.sha256)
    }
}

/// Whether a run and its blind vote are right; not known of one that was cut off.
fn rights(
    cell: &Cell<'_>,
    ending: OutcomeKind,
    sha256: Option<Digest>,
    blind: Option<Digest>,
) -> [Option<bool>; 2] {
    if ending.is_final() { [sha256, blind].map(|sha256| cell.is_right(sha256)) } else { [None; 2] }
}
