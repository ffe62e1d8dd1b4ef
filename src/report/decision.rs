//! The figures of one decision on a change, as they are kept in its run folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The figures' file name inside a run folder.
pub const DECISION_METRICS_FILE: &str = "decision-metrics.json";

/// How a decision ended, in a word.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// It was approved, and is on its branch.
    Landed,
    /// It was approved, and the branch had gone on.
    NotLanded,
    /// Fewer reviewers approved than a quorum.
    #[default]
    Rejected,
}

impl DecisionOutcome {
    /// Returns the word.
    #[must_use]
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
    /// Its place in the order of decisions.
    pub proposal_id: u64,
    /// How it ended.
    pub outcome: DecisionOutcome,
    /// Milliseconds to propose it, to review it, and to decide and land it. Where reviewers are processes of their own, they
    /// review while it is decided.
    pub phase_latencies_ms: [u64; 3],
    /// Whether it landed.
    pub success: bool,
    /// Why reviewers did not approve.
    pub dissent_reasons: Vec<String>,
    /// Lines that come and go.
    pub change_complexity: u64,
    /// Whether something had to be undone.
    pub rollback_required: bool,
    /// Votes by kind: `approve`, `reject`, `abstain`, and `silent` for those that had not come.
    pub votes: BTreeMap<String, u64>,
    /// Votes against it by how bad it would be to apply it.
    pub severities: BTreeMap<String, u64>,
}
