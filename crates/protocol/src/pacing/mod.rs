//! Many votes under one budget of tokens: who draws one more sample, and when no one does.
//!
//! ```text
//!  two samples of each run ──► round: one more sample for each run whose certainty is below the threshold ──► …
//!                                │
//!                                └─ the budget is too small for the whole round: the least certain runs draw, as many as fit,
//!                                   and then every run that waits is decided from what it has
//! ```
//!
//! The input is what the records of the runs say at the end of a round: the tokens, the samples, and the certainty of each run that waits.
//! The output is the next round, or the end. Nothing here knows how a run is made, and no order of runs or records changes a round.
//!
//! # The thresholds
//!
//! A fixed list has every hundredth from 0.51 to 1. The threshold of a round is the first entry that is not below that of the round before
//! and that some run does not reach. An entry is therefore used until every run reaches it. By then each run has drawn until its certainty
//! first reached the entry. That is exactly what the greedy order draws, which gives each sample to the least certain run. The two orders
//! differ within an entry alone, and only in which samples come first. No entry joins two certainties of at most 12 votes below 0.95, so
//! the list is as fine as the greedy order. Most entries lie between the same two certainties, and need no round.
//!
//! # Invariants
//!
//! - **A round is planned at rest.** It begins when each run waits or has ended.
//! - **A round is permitted whole.** Its cost is the mean of a sample until then, times the number of its runs, rounded up.
//! - **There is one last round at most.** A round that does not fit as a whole is followed by the end, whatever it leaves.
//! - **A ruling follows from the records before it.** `verify` makes each one again.

mod ledger;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::contract::Fraction;
use crate::core::BasisPoints;
use crate::text::escape;

pub use ledger::{PacingError, PacingLedger};

/// The rule in words, as a manifest states it.
pub const RULE: &str = "Each run draws two samples. In a round, each run that waits with a certainty below the threshold draws one more. \
     The threshold is the first of the list that is not below the last one and that some run does not reach. A round fits if the tokens \
     until then, and the mean tokens of a sample for each of its runs, are within the budget. If it does not fit, the least certain runs \
     draw, as many as fit, and then the runs that wait are decided.";

/// Returns the thresholds of the rounds, the lowest first.
pub fn thresholds() -> impl Iterator<Item = BasisPoints> {
    (51..=100).map(|hundredths| BasisPoints::of_ten_thousand(hundredths * 100))
}

/// The name of a run under a budget. Of two runs with equal certainties, the one with the lower name draws first.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PacedName {
    /// The id of the task.
    pub task: String,
    pub roleset: String,
    /// The model as it was named.
    pub model: String,
    pub seed: u64,
}

impl fmt::Display for PacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [task, roleset] = [&self.task, &self.roleset].map(|name| escape::excerpt(name));
        write!(f, "the run of task `{task}` by `{roleset}` with seed {}", self.seed)
    }
}

/// A run under a budget, by its records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacedRun {
    pub position: RunPosition,
    /// The tokens of its replies and their prompts.
    pub tokens: u64,
    /// The samples to which a reply is on record.
    pub samples: u64,
}

/// The position of a run between two rounds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RunPosition {
    /// The run has something left to do.
    UnderWay,
    /// The run waits for a permit, with this certainty.
    Waiting(Fraction),
    /// The run has an end on record.
    Ended,
}

/// A permit for one more sample.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SamplePermit {
    /// The number of the round, from 1.
    pub round: u32,
    /// The threshold of the round. The run's certainty is below it.
    pub threshold: BasisPoints,
    /// The tokens that all runs under the budget had used before the round.
    pub spent: u64,
}

/// The end of the permits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetEnd {
    /// The tokens that all runs under the budget had used by then.
    pub spent: u64,
}

/// The ruling of a budget on a run that waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BudgetRuling {
    /// It draws one more sample.
    Permit(SamplePermit),
    /// It is decided from what it has.
    Close(BudgetEnd),
}

impl fmt::Display for BudgetRuling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permit(SamplePermit { round, threshold, spent }) => {
                write!(f, "a permit of round {round}, below {threshold}, after {spent} tokens")
            }
            Self::Close(BudgetEnd { spent }) => write!(f, "the end of its permits after {spent} tokens"),
        }
    }
}

/// One ruling, and the runs that it is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RoundPlan {
    pub ruling: BudgetRuling,
    pub runs: BTreeSet<PacedName>,
}
