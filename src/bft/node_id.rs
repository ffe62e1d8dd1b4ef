//! Who takes part in a decision.

use serde::{Deserialize, Serialize};

use super::message::Reviewer;

/// Somebody who takes part, by the place in its list.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeId {
    /// A reviewer.
    Reviewer(Reviewer),
    /// An orchestrator.
    Orchestrator(usize),
}
