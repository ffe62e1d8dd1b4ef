//! Parameters that a caller gives in place of a roleset's, whatever its protocol.

use super::setup::Thinking;
use crate::core::BasisPoints;
use crate::text::Constraint;

/// One parameter with the value that it gets. Each protocol says which of them it has
/// ([`ProtocolParams::apply`](super::ProtocolParams::apply)).
#[derive(Clone, Debug, PartialEq)]
pub enum Override {
    /// Rounds at most.
    MaxRounds(u32),
    /// What must be reached, between 0 and 1.
    Threshold(BasisPoints),
    /// Where agents reason before they commit.
    Thinking(Thinking),
    /// Further blind drafts from each agent when the first two differ.
    Resample(u32),
    /// Whether confidences are the probabilities of a word, where the server tells them.
    MeasuredConfidence(bool),
    /// What the confidence of each member counts, in the order in which they speak.
    Weights([BasisPoints; 3]),
    /// Rules of the task beside those of the roleset.
    Constraints(Vec<Constraint>),
}
