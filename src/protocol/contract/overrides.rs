//! Parameters that a caller sets in place of a roleset's, for any protocol.

use super::setup::Thinking;
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
}
