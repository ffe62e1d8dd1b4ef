//! The budget of tokens that the votes of an arm share, as the manifest notes it.
//!
//! The input is a number of tokens and of shards. The output is the note, with the rule by which samples are permitted. Each shard has an
//! equal part of the tokens, so that no shard waits for another.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::BatchError;
use crate::journal::BATCH_FILE;
use protocol::core::BasisPoints;
use protocol::pacing::{RULE, thresholds};
use protocol::text::escape;

/// The budget of the votes of one arm.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetNote {
    /// The name of the arm; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// The tokens of prompts and replies, for all shards together.
    pub tokens: u64,
    /// The tokens of each shard: an equal part, rounded down.
    pub tokens_a_shard: u64,
    /// The thresholds of the rounds, the lowest first.
    pub thresholds: Vec<BasisPoints>,
    /// The rule in words.
    pub rule: String,
}

impl BudgetNote {
    /// Returns the note of a budget of so many tokens for so many shards.
    pub fn new(arm: &str, tokens: u64, shards: u64) -> Self {
        Self {
            arm: arm.to_owned(),
            tokens,
            tokens_a_shard: tokens / shards.max(1),
            thresholds: thresholds().collect(),
            rule: RULE.to_owned(),
        }
    }

    /// Refuses a note that no build like this one writes for a batch in a folder with so many shards.
    ///
    /// Returns [`BatchError::Stray`].
    pub(super) fn require_possible(&self, folder: &Path, shards: u64) -> Result<(), BatchError> {
        if *self == Self::new(&self.arm, self.tokens, shards) {
            return Ok(());
        }
        let arm = escape::excerpt(&self.arm);
        let why =
            format!("the budget of the arm `{arm}` names another part, other thresholds or another rule");
        Err(BatchError::Stray { path: folder.join(BATCH_FILE), why })
    }
}

/// Merges the budget of a command into the known ones. `is_begun` is whether any run has begun.
///
/// Returns [`BatchError::Usage`] if the arm has another budget.
pub(super) fn merge_budget(
    folder: &Path,
    mut known: Vec<BudgetNote>,
    new: &BudgetNote,
    is_begun: bool,
) -> Result<Vec<BudgetNote>, BatchError> {
    match known.iter_mut().find(|other| other.arm == new.arm) {
        None => known.push(new.clone()),
        Some(other) if *other == *new => {}
        // Without a run, no permit follows from the old budget.
        Some(other) if !is_begun => *other = new.clone(),
        Some(other) => {
            let (folder, tokens) = (folder.display(), other.tokens);
            return Err(BatchError::Usage(format!(
                "`{folder}` has runs with a budget of {tokens} tokens; give --budget-tokens {tokens} to continue them, or name other runs with --arm NAME"
            )));
        }
    }
    Ok(known)
}
