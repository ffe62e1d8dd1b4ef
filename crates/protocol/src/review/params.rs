//! The parameters of a review, as a roleset states them.

use serde::{Deserialize, Serialize};

use super::diff::{self, PARTS_MAX};
use crate::contract::{Task, Thinking};

/// The maximum number of reviewers.
pub const REVIEWERS_MAX: usize = 32;

/// Parameters of one review.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalParams {
    /// Whether one reviewer that rejects with a critical finding stops a change that a quorum would approve.
    pub veto: bool,
    /// The maximum number of tokens in one part of the diff, by the estimate that is used everywhere: 200 to 100,000.
    pub part_tokens: u64,
    /// The number of times that a refused reply is asked for again, 0 to 10.
    pub max_repairs: u32,
    /// The place where reviewers reason before they commit.
    pub thinking: Thinking,
    /// Whether each finding is judged by the other reviewers as well. `consensus review` sets it; a decision does not need it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

impl Default for ApprovalParams {
    fn default() -> Self {
        Self { veto: false, part_tokens: 1500, max_repairs: 2, thinking: Thinking::Free, confirm: false }
    }
}

impl ApprovalParams {
    /// Returns the range of the first parameter that is out of range, in words, if there is one.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let wrong = [
            ("`part_tokens` is 200 to 100000", !(200..=100_000).contains(&self.part_tokens)),
            ("`max_repairs` is 0 to 10", self.max_repairs > 10),
            // The form has no field for thoughts.
            ("`thinking` is `free` or `none` in a review", self.thinking == Thinking::Field),
        ];
        wrong.iter().find(|(_, is_wrong)| *is_wrong).map(|(name, _)| *name)
    }

    /// Returns why the change of a task cannot be reviewed, if it cannot.
    pub fn unreadable_task(&self, task: &Task) -> Option<&'static str> {
        if task.documents.is_empty() {
            return Some("a review needs a diff, such as `git diff` writes it; give it with -f FILE");
        }
        for document in &task.documents {
            if !document.text.lines().any(|line| line.starts_with("@@ ") || line.starts_with("diff ")) {
                return Some(
                    "a review reads diffs, such as `git diff` writes them, and one of the files is none",
                );
            }
        }
        if diff::parts(&task.documents, self.part_tokens).len() > PARTS_MAX {
            return Some(
                "the diff has too many parts for one review, more than 200; give less of it, or raise `part_tokens`",
            );
        }
        task.documents.iter().find_map(|document| diff::fault(&document.text))
    }
}
