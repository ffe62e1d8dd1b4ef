//! The parties to a decision.

use serde::{Deserialize, Serialize};

use super::message::Reviewer;

/// A party, by its place in the list of its kind.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeId {
    /// A reviewer.
    Reviewer(Reviewer),
    /// An orchestrator.
    Orchestrator(usize),
}
