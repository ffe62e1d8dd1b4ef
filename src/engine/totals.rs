//! What a run has used by now. In: what single calls used. Out: sums. Nothing is limited here.

use serde::Serialize;

use crate::core::Usage;

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Replies.
    pub calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// Cost in millionths of a US dollar; none if a price is not known.
    pub cost_micro_usd: Option<u64>,
    /// Calls that were made and never answered in the journal.
    pub lost: u64,
    /// Calls that were given up since nothing depended on them any more.
    pub cancelled: u64,
}

/// What one phase of a run has used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct PhaseUsage {
    /// Replies.
    pub calls: u64,
    /// Tokens of their prompts.
    pub prompt: u64,
    /// Tokens of the replies.
    pub completion: u64,
}

impl PhaseUsage {
    pub(super) fn add(&mut self, usage: Usage) {
        self.calls += 1;
        self.prompt = self.prompt.saturating_add(usage.prompt);
        self.completion = self.completion.saturating_add(usage.completion);
    }
}
