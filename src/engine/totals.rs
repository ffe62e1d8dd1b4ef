//! The totals of a run. The input is the usage of single calls, and the output is sums. Nothing is limited here.

use serde::Serialize;

use protocol::core::Usage;

/// The total usage of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// The number of replies.
    pub calls: u64,
    /// The tokens.
    pub usage: Usage,
    /// The cost in millionths of a US dollar; `None` if a price is not known.
    pub cost_micro_usd: Option<u64>,
    /// The number of calls that were made and never answered in the journal.
    pub lost: u64,
    /// The number of calls that were cancelled because nothing depended on them any more.
    pub cancelled: u64,
}

/// The usage of one phase of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct PhaseUsage {
    /// The number of replies.
    pub calls: u64,
    /// The tokens of the prompts.
    pub prompt: u64,
    /// The tokens of the replies.
    pub completion: u64,
}

impl PhaseUsage {
    pub(super) fn add(&mut self, usage: Usage) {
        self.calls += 1;
        self.prompt = self.prompt.saturating_add(usage.prompt);
        self.completion = self.completion.saturating_add(usage.completion);
    }
}
