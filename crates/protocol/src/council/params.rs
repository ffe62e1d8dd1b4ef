//! The parameters of `council`, as a roleset states them.

use serde::{Deserialize, Serialize};

use super::weights::Weights;
use crate::contract::{OnDisagreement, Setup, TalkForm, Task, Thinking};
use crate::core::BasisPoints;
use crate::text::Constraint;

/// Parameters of one `council` run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CouncilParams {
    /// The aggregate confidence that counts as consensus.
    #[serde(deserialize_with = "crate::core::exactly")]
    pub threshold: BasisPoints,
    /// The maximum number of rounds, 1 to 50.
    pub max_rounds: u32,
    /// The weight of each agent's confidence.
    pub weights: Weights,
    /// The number of times that a refused reply is asked for again, 0 to 10.
    pub max_repairs: u32,
    /// The place where agents reason before they commit.
    pub thinking: Thinking,
    /// The maximum number of tokens in the passages of one search, if there are documents to search: 0 to 100,000.
    pub passages_tokens_max: u64,
    /// The origin of the confidences.
    pub confidence: ConfidenceFrom,
    /// Whether a weighted confidence decides in any case, or only what code has counted or found.
    #[serde(skip_serializing_if = "TalkForm::is_always")]
    pub talk: TalkForm,
    /// The answer of a run whose counted answers do not settle. It needs [`TalkForm::Differing`].
    #[serde(skip_serializing_if = "OnDisagreement::is_abstain")]
    pub on_disagreement: OnDisagreement,
    /// The rules of the task that code checks on every response.
    pub constraints: Vec<Constraint>,
}

/// The origin of a member's confidence.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceFrom {
    /// The number that the member states about itself.
    #[default]
    Verbalised,
    /// The probability with which the member writes `yes` when asked whether its own text is sound. Where the server does not report it,
    /// the stated number counts.
    Logprob,
}

impl Default for CouncilParams {
    fn default() -> Self {
        Self {
            threshold: BasisPoints::of_ten_thousand(8_500),
            max_rounds: 3,
            weights: Weights::default(),
            max_repairs: 2,
            thinking: Thinking::Free,
            passages_tokens_max: 1500,
            confidence: ConfidenceFrom::default(),
            talk: TalkForm::Always,
            on_disagreement: OnDisagreement::Abstain,
            constraints: Vec::new(),
        }
    }
}

impl Setup<CouncilParams> {
    /// Returns whether documents are searched before an answer is written.
    pub(super) fn searches(&self) -> bool {
        self.task.is_searched && self.params.passages_tokens_max > 0
    }
}

impl CouncilParams {
    /// Returns true if blind answers to this task are counted. An answer from documents is checked by its quotes instead.
    pub(crate) fn counts(&self, task: &Task) -> bool {
        !self.talk.is_always() && task.documents.is_empty() && !task.is_searched
    }

    /// Returns the range of the first parameter that is out of range, in words, if there is one.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let wrong = [
            ("`max_rounds` is 1 to 50", !(1..=50).contains(&self.max_rounds)),
            ("`max_repairs` is 0 to 10", self.max_repairs > 10),
            ("`passages_tokens_max` is 0 to 100000", self.passages_tokens_max > 100_000),
            ("`weights` must sum to 1", !self.weights.is_whole()),
            (
                "`on_disagreement` needs `talk: differing` (--talk differing) in a council",
                self.talk.is_always() && !self.on_disagreement.is_abstain(),
            ),
            // The forms already have a field for reasoning.
            ("`thinking` is `free` or `none` in a council", self.thinking == Thinking::Field),
        ];
        wrong.iter().find(|(_, is_wrong)| *is_wrong).map(|(name, _)| *name)
    }
}
