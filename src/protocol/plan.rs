//! The most that a run may cost, before anything is spent.

use serde::Serialize;

/// An upper bound on what a run can use. Real runs use far less: most end in the first rounds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct WorstCase {
    /// Model calls, repeated network attempts aside.
    pub calls: u64,
    /// Prompt tokens of all calls together, by estimate.
    pub prompt_tokens: u64,
    /// Completion tokens of all calls together.
    pub completion_tokens: u64,
    /// The longest single prompt with its reply: the context a model needs.
    pub context_tokens: u64,
}

impl WorstCase {
    /// Adds a call with a prompt and a reply of so many tokens at most.
    pub fn add_call(&mut self, prompt: u64, reply: u64) {
        self.calls += 1;
        self.prompt_tokens += prompt;
        self.completion_tokens += reply;
        self.context_tokens = self.context_tokens.max(prompt + reply);
    }
}
