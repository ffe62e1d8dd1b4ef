//! The parameters of `panel`, as a roleset states them.

use serde::{Deserialize, Serialize};

use crate::contract::{OnDisagreement, TalkForm, Thinking};
use crate::core::BasisPoints;
use crate::text::Constraint;

/// The minimum number of members of a panel.
pub const MEMBERS_MIN: usize = 2;
/// The maximum number of members of a panel; the minimum is [`MEMBERS_MIN`]. A ballot has a label for each answer, and labels are letters.
pub const MEMBERS_MAX: usize = 16;

/// Parameters of one `panel` run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PanelParams {
    /// The normalised score that counts as consensus, between 0 and 1.
    #[serde(deserialize_with = "crate::core::exactly")]
    pub threshold: BasisPoints,
    /// The maximum number of iterations, 1 to 20.
    pub max_iterations: u32,
    /// Whether all members answer and judge at the same time; if not, one call follows the other.
    pub parallel: bool,
    /// Whether ballots that can change neither the winner nor the verdict are cancelled.
    pub early_stop: bool,
    /// The number of times that a refused reply is asked for again, 0 to 10.
    pub max_repairs: u32,
    /// The place where members reason before they commit.
    pub thinking: Thinking,
    /// Whether members judge, or their blind answers are counted.
    #[serde(skip_serializing_if = "TalkForm::is_always")]
    pub talk: TalkForm,
    /// The answer of a run whose counted answers do not settle. It needs [`TalkForm::Differing`].
    #[serde(skip_serializing_if = "OnDisagreement::is_abstain")]
    pub on_disagreement: OnDisagreement,
    /// The fewest members that must remain when servers fail, 1 to the number of members; two thirds of them, rounded up, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_members: Option<u32>,
    /// The rules of the task that code checks on every answer.
    pub constraints: Vec<Constraint>,
}

impl Default for PanelParams {
    fn default() -> Self {
        Self {
            threshold: BasisPoints::of_ten_thousand(7_500),
            max_iterations: 3,
            parallel: true,
            early_stop: true,
            max_repairs: 2,
            thinking: Thinking::Free,
            talk: TalkForm::Always,
            on_disagreement: OnDisagreement::Abstain,
            min_members: None,
            constraints: Vec::new(),
        }
    }
}

impl PanelParams {
    /// Returns the range of the first parameter that is out of range, in words, if there is one.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let wrong = [
            (
                "`max_iterations` is 1 to 20 (with --max-rounds, too)",
                !(1..=20).contains(&self.max_iterations),
            ),
            ("`max_repairs` is 0 to 10", self.max_repairs > 10),
            (
                "`on_disagreement` needs `talk: differing` (--talk differing) in a panel",
                self.talk.is_always() && !self.on_disagreement.is_abstain(),
            ),
            (
                "`min_members` is 1 to 16",
                self.min_members.is_some_and(|min| !(1..=MEMBERS_MAX).contains(&(min as usize))),
            ),
            // The forms have no field for thoughts.
            ("`thinking` is `free` or `none` in a panel", self.thinking == Thinking::Field),
        ];
        wrong.iter().find(|(_, is_wrong)| *is_wrong).map(|(name, _)| *name)
    }
}
