//! The parameters of `vote`: how samples are drawn, and when it is enough.

use serde::{Deserialize, Serialize};

use crate::contract::{self, AgentSetup, Lead, Method, OnDisagreement, VOTES_MAX, VoteStop};
use crate::core::BasisPoints;
use crate::sampling::{AnswerExtent, CERTAIN};
use crate::text::Constraint;

/// The most voters of a roleset.
pub(super) const VOTERS_MAX: usize = 16;

/// The samples that a paced vote draws without a permit. Two are the fewest of which one can confirm the other.
pub const SAMPLES_FIRST: u32 = 2;

/// The most samples where whole replies are compared, because the time grows with the number of their pairs.
const WHOLE_MAX: u32 = 16;

/// The most samples of a paced vote, unless a number is set.
const SAMPLES_PACED_MAX: u32 = 12;

/// The parameters of `vote`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoteParams {
    /// The rule by which the samples are enough.
    pub stop: VoteStop,
    /// The certainty that is enough; by the rule if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<BasisPoints>,
    /// The most samples, 1 to 100 (16 for whole replies); by the rule if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_max: Option<u32>,
    /// The number of samples that are asked for at once, 1 to 100; one of each voter if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
    /// The methods whose voters are asked; `words` alone if absent. The other voters stay silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<Vec<Method>>,
    /// The part of a reply that is the answer. Whole replies are texts of any length, which are compared and not only counted.
    #[serde(skip_serializing_if = "AnswerExtent::is_line")]
    pub answer: AnswerExtent,
    /// Whether each sample after the first two needs a permit, because many votes share a budget of tokens. A batch sets it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paced: bool,
    /// The answer of a run whose votes do not settle.
    pub on_disagreement: OnDisagreement,
    /// The fewest voters that must remain when servers fail, 1 to the number of voters that are asked; two thirds of them, rounded up, if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_members: Option<u32>,
    /// The rules of the task that code checks on every answer.
    pub constraints: Vec<Constraint>,
}

impl Default for VoteParams {
    fn default() -> Self {
        Self {
            stop: VoteStop::Fast,
            threshold: None,
            samples_max: None,
            ahead: None,
            modes: None,
            answer: AnswerExtent::Line,
            paced: false,
            on_disagreement: OnDisagreement::Abstain,
            min_members: None,
            constraints: Vec::new(),
        }
    }
}

impl VoteParams {
    /// Returns the certainty at which the samples are enough; `None` if all are drawn.
    pub fn enough(&self) -> Option<BasisPoints> {
        let preset = match self.stop {
            VoteStop::Fast => CERTAIN,
            VoteStop::Sure => BasisPoints::of_ten_thousand(9_500),
            VoteStop::None => return None,
        };
        Some(self.threshold.unwrap_or(preset))
    }

    /// Returns the most samples that are drawn.
    pub fn most(&self) -> u32 {
        let preset = match self.stop {
            VoteStop::Fast => 8,
            VoteStop::Sure => 16,
            VoteStop::None => 5,
        };
        self.samples_max.unwrap_or(if self.paced { SAMPLES_PACED_MAX } else { preset })
    }

    /// Returns the voters that are asked, by their indexes among the agents.
    pub fn voters(&self, agents: &[AgentSetup]) -> Vec<usize> {
        let modes = self.modes.as_deref().unwrap_or(&[Method::Words]);
        (0..agents.len()).filter(|index| modes.contains(&agents[*index].method)).collect()
    }

    /// Returns why no vote can work with these agents, if none can. The parameters must be in their ranges.
    pub(super) fn misfit(&self, agents: &[AgentSetup]) -> Option<&'static str> {
        let voters = self.voters(agents).len();
        if voters == 0 {
            return Some(
                "no voter of the roleset answers in this way; --modes names `words`, `program` or both, and a roleset \
                         such as `vote_number` has a voter for each",
            );
        }
        if let Some(why) = contract::min_members_fault(voters, self.min_members) {
            return Some(why);
        }
        if !self.answer.is_line() {
            if self.most() < SAMPLES_FIRST && self.stop != VoteStop::None {
                return Some("whole replies are compared, so there are at least two; raise --samples-max");
            }
            return None;
        }
        let lead = Lead { leader: self.most(), runner_up: 0 };
        let is_early = self.stop == VoteStop::Fast && self.most() >= 2 && voters >= 2;
        if is_early || self.enough().is_none_or(|share| lead.certainty().reaches(share)) {
            return None;
        }
        Some(
            "no answer can lead with that certainty within so few samples; raise --samples-max, lower --threshold, or take \
             the plain majority with --stop none",
        )
    }

    /// Returns the range of the first parameter that is out of range, in words, if there is one.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let counts = 1..=VOTES_MAX;
        if self.samples_max.is_some_and(|count| !counts.contains(&count)) {
            return Some("`samples_max` is 1 to 100 (with --samples-max, too)");
        }
        if !self.answer.is_line() && self.most() > WHOLE_MAX {
            return Some(
                "whole replies (`answer: whole`, as in `question`) are compared in pairs, so `samples_max` is at most 16 (with \
                 --samples-max, too); name a roleset such as `vote_number` for more",
            );
        }
        if self.ahead.is_some_and(|count| !counts.contains(&count)) {
            return Some("`ahead` is 1 to 100");
        }
        if self.min_members.is_some_and(|min| !(1..=VOTERS_MAX).contains(&(min as usize))) {
            return Some("`min_members` is 1 to 16");
        }
        if self.paced && self.stop == VoteStop::None {
            return Some(
                "`stop` is `fast` or `sure` under a budget of tokens, because a vote must know when it is settled",
            );
        }
        if self.paced && self.ahead.is_some() {
            return Some("`ahead` is left out under a budget of tokens, because each sample needs a permit");
        }
        if self.paced && !self.answer.is_line() {
            return Some(
                "whole replies (`answer: whole`, as in `question`) cannot share a budget of tokens; name a roleset such as `vote_number`",
            );
        }
        if self.paced && self.most() < SAMPLES_FIRST {
            return Some("`samples_max` is at least 2 under a budget of tokens (with --samples-max, too)");
        }
        if self.threshold.is_some_and(|share| !(5_001..10_000).contains(&share.ten_thousandths())) {
            return Some("`threshold` is above 0.5 and below 1 in a vote");
        }
        if self.threshold.is_some() && !self.answer.is_line() {
            return Some("`threshold` has no effect on whole replies (`answer: whole`), which are compared");
        }
        if self.modes.as_ref().is_some_and(Vec::is_empty) {
            return Some("`modes` names `words`, `program` or both");
        }
        None
    }
}
