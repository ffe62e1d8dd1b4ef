//! The figures of one decision on a change. They are kept in its run folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The name of the figures' file inside a run folder.
pub const DECISION_METRICS_FILE: &str = "decision-metrics.json";

/// The outcome of a decision, in a word.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// The change was approved, and is on its branch.
    Landed,
    /// The change was approved, but the branch had moved on.
    NotLanded,
    /// Fewer reviewers approved than a quorum.
    #[default]
    Rejected,
}

impl DecisionOutcome {
    /// Returns the word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landed => "landed",
            Self::NotLanded => "not_landed",
            Self::Rejected => "rejected",
        }
    }
}

/// The figures of one decision.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionMetrics {
    /// The place of the decision in the order of decisions.
    pub proposal_id: u64,
    pub outcome: DecisionOutcome,
    /// The time to propose the change, to review it, and to decide and land it, in milliseconds. Reviewers in
    /// processes of their own review while the decision is made.
    pub phase_latencies_ms: [u64; 3],
    /// Whether the change landed.
    pub success: bool,
    /// The reasons of the reviewers who did not approve.
    pub dissent_reasons: Vec<String>,
    /// The number of lines added and removed.
    pub change_complexity: u64,
    /// Whether a change had to be undone.
    pub rollback_required: bool,
    /// The number of votes of each kind: `approve`, `reject`, `abstain`, and `silent` for those that had not come.
    pub votes: BTreeMap<String, u64>,
    /// The number of votes against the change, by severity.
    pub severities: BTreeMap<String, u64>,
}
