//! The parameters of `vote`: how samples are drawn, and when it is enough.

use serde::{Deserialize, Serialize};

use crate::contract::{AgentSetup, Lead, Method, OnDisagreement, VOTES_MAX, VoteStop};
use crate::core::BasisPoints;
use crate::sampling::CERTAIN;
use crate::text::Constraint;

/// The most voters of a roleset.
pub(super) const VOTERS_MAX: usize = 16;

/// The parameters of `vote`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoteParams {
    /// The rule by which the samples are enough.
    pub stop: VoteStop,
    /// The certainty that is enough; by the rule if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<BasisPoints>,
    /// The most samples, 1 to 100; by the rule if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_max: Option<u32>,
    /// The number of samples that are asked for at once, 1 to 100; one of each voter if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
    /// The methods whose voters are asked; `words` alone if absent. The other voters stay silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<Vec<Method>>,
    /// The answer of a run whose votes do not settle.
    pub on_disagreement: OnDisagreement,
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
            on_disagreement: OnDisagreement::Abstain,
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
        self.samples_max.unwrap_or(match self.stop {
            VoteStop::Fast => 8,
            VoteStop::Sure => 16,
            VoteStop::None => 5,
        })
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
        if self.ahead.is_some_and(|count| !counts.contains(&count)) {
            return Some("`ahead` is 1 to 100");
        }
        if self.threshold.is_some_and(|share| !(5_001..10_000).contains(&share.ten_thousandths())) {
            return Some("`threshold` is above 0.5 and below 1 in a vote");
        }
        if self.modes.as_ref().is_some_and(Vec::is_empty) {
            return Some("`modes` names `words`, `program` or both");
        }
        None
    }
}
