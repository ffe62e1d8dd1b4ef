//! The parameters of `council`, as a roleset states them.

use serde::{Deserialize, Serialize};

use super::share::{Share, Weights};
use crate::protocol::Thinking;
use crate::text::Constraint;

/// Parameters of one `council` run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CouncilParams {
    /// The aggregate confidence that is consensus.
    pub threshold: Share,
    /// Rounds at most, 1 to 50.
    pub max_rounds: u32,
    /// What each agent's confidence counts.
    pub weights: Weights,
    /// How many times a refused reply is asked for again.
    pub max_repairs: u32,
    /// Where agents reason before they commit.
    pub thinking: Thinking,
    /// Rules of the task that code checks on every response.
    pub constraints: Vec<Constraint>,
}

impl Default for CouncilParams {
    fn default() -> Self {
        Self {
            threshold: Share::of_ten_thousand(8_500),
            max_rounds: 3,
            weights: Weights::default(),
            max_repairs: 2,
            thinking: Thinking::Free,
            constraints: Vec::new(),
        }
    }
}

impl CouncilParams {
    /// Returns the name of the first parameter that is out of its range, if one is.
    #[must_use]
    pub fn out_of_range(&self) -> Option<&'static str> {
        let wrong = [
            ("max_rounds", !(1..=50).contains(&self.max_rounds)),
            ("max_repairs", self.max_repairs > 10),
            ("weights", !self.weights.is_whole()),
            // The forms have a field for reasoning as it is.
            ("thinking", self.thinking == Thinking::Field),
        ];
        wrong.iter().find(|(_, is_wrong)| *is_wrong).map(|(name, _)| *name)
    }
}
