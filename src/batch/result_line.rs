//! One line of results: how one run ended, and of what it was the run.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::matrix::Cell;
use crate::crypto::Digest;
use crate::protocol::Outcome;
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

/// How a run ended, in a word.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    Agreed,
    NoAgreement,
    Vetoed,
    Budget,
    Failed,
    Interrupted,
}

/// What is needed of a line to go on with a batch.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Known {
    pub(super) run: Uuid,
    pub(super) outcome: Ending,
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

impl Ending {
    const ALL: [Self; 6] =
        [Self::Agreed, Self::NoAgreement, Self::Vetoed, Self::Budget, Self::Failed, Self::Interrupted];

    /// That of an outcome.
    pub(super) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Agreed { .. } => Self::Agreed,
            Outcome::NoAgreement { .. } => Self::NoAgreement,
            Outcome::Vetoed { .. } => Self::Vetoed,
            Outcome::Budget { .. } => Self::Budget,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::Interrupted => Self::Interrupted,
        }
    }

    /// Whether the protocol itself has ended the run.
    pub(super) fn is_final(self) -> bool {
        match self {
            Self::Agreed | Self::NoAgreement | Self::Vetoed => true,
            Self::Budget | Self::Failed | Self::Interrupted => false,
        }
    }

    /// The outcome's name in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::NoAgreement => "no_agreement",
            Self::Vetoed => "vetoed",
            Self::Budget => "budget",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

impl ResultLine {
    /// How it ended, in a word.
    pub(super) fn ending(&self) -> Ending {
        let is_it = |ending: &Ending| ending.name() == self.result.outcome;
        Ending::ALL.into_iter().find(is_it).unwrap_or(Ending::Interrupted)
    }

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
            rights(cell, row.ending(), row.result.sha256, row.result.blind_vote.sha256);
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
    ending: Ending,
    sha256: Option<Digest>,
    blind: Option<Digest>,
) -> [Option<bool>; 2] {
    if ending.is_final() { [sha256, blind].map(|sha256| cell.is_right(sha256)) } else { [None; 2] }
}
