//! Parameters that a caller sets in place of a roleset's, for any protocol.

use serde::{Deserialize, Serialize};

use super::setup::{Method, Thinking};
use crate::core::BasisPoints;
use crate::text::Constraint;

/// One parameter with its new value. Each protocol decides which parameters it has
/// ([`ProtocolParams::apply`](super::ProtocolParams::apply)).
#[derive(Clone, Debug, PartialEq)]
pub enum Override {
    /// The maximum number of rounds.
    MaxRounds(u32),
    /// The threshold that must be reached, between 0 and 1.
    Threshold(BasisPoints),
    /// The place where agents reason before they commit.
    Thinking(Thinking),
    /// The number of further blind drafts from each agent when the first two differ.
    Resample(u32),
    /// Whether a confidence is the probability of a word, where the server reports it.
    MeasuredConfidence(bool),
    /// The weight of each member's confidence, in the order in which the members speak.
    Weights([BasisPoints; 3]),
    /// Rules of the task, in addition to those of the roleset.
    Constraints(Vec<Constraint>),
    /// The rule by which the samples of a vote are enough.
    Stop(VoteStop),
    /// The maximum number of samples of a vote.
    SamplesMax(u32),
    /// The number of samples of a vote that are asked for at once.
    Ahead(u32),
    /// The methods whose voters are asked.
    Modes(Vec<Method>),
    /// The answer of a run whose votes do not settle.
    OnDisagreement(OnDisagreement),
    /// Whether agents talk and judge, or their blind answers are counted.
    Talk(TalkForm),
}

/// Whether agents talk and judge, or their blind answers are counted.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TalkForm {
    /// They talk and judge, as the protocol describes it.
    #[default]
    Always,
    /// Blind answers are counted first. In a panel, no answer is judged at all.
    Differing,
}

impl TalkForm {
    /// Returns true for the form that a roleset need not name, which is the default.
    pub fn is_always(&self) -> bool {
        *self == Self::Always
    }
}

/// The rule by which blind samples are enough.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VoteStop {
    /// As soon as two unlike voters agree at the first try, or the lead is 90 % certain; at most 8 samples.
    #[default]
    Fast,
    /// As soon as the lead is 95 % certain; at most 16 samples.
    Sure,
    /// All samples are drawn, 5 by default, and the most votes decide.
    None,
}

/// The answer of a run whose votes do not settle.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisagreement {
    /// No answer.
    #[default]
    Abstain,
    /// The leading answer, and the result is degraded.
    Leader,
}

impl OnDisagreement {
    /// Returns true for the answer that a roleset need not name, which is the default.
    pub fn is_abstain(&self) -> bool {
        *self == Self::Abstain
    }
}
