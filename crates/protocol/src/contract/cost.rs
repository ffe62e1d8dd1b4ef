//! The most that a run can cost, computed before anything is spent.

use serde::Serialize;

use super::setup::Thinking;

/// The tokens of one refusal: an upper bound of the controller's words.
const REPAIR_WORDS: u64 = 150;
/// The prompt tokens for each token of an agent's own reply. A token of a reply is rarely more than six bytes, which an estimate of prompts
/// counts as two tokens.
const ECHO: u64 = 2;
/// The same number for a text that another agent sees as a JSON string, half of which is escapes.
pub(crate) const QUOTED: u64 = 3;

/// Returns an estimate of a text's tokens, as for a whole prompt: a third of its bytes, and a frame.
pub(crate) fn tokens(text: &str) -> u64 {
    text.len() as u64 / 3 + 5
}

/// An upper bound on what a run can use. Real runs use far less: most end in the first rounds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct WorstCase {
    /// The number of model calls, without repeated network attempts.
    pub calls: u64,
    /// The prompt tokens of all calls together, by estimate.
    pub prompt_tokens: u64,
    /// The completion tokens of all calls together.
    pub completion_tokens: u64,
    /// The longest single prompt with its reply, in tokens: the context that a model needs.
    pub context_tokens: u64,
}

impl WorstCase {
    /// Adds the most that one valid form can use. `conversation` is the length of its conversation in tokens, and grows with each reply.
    pub(crate) fn add_form(
        &mut self,
        conversation: &mut u64,
        thinking: Thinking,
        max_repairs: u32,
        reply: u64,
    ) {
        let thinks = u32::from(thinking == Thinking::Free);
        for _ in 0..thinks + 1 + max_repairs {
            self.add_call(*conversation, reply);
            *conversation += ECHO * reply + REPAIR_WORDS;
        }
    }

    /// Returns the bound for a run whose prompts and replies may have at most `limit` tokens together, if there is a limit.
    pub fn within(self, limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        Self {
            prompt_tokens: self.prompt_tokens.min(limit),
            completion_tokens: self.completion_tokens.min(limit),
            context_tokens: self.context_tokens.min(limit),
            ..self
        }
    }

    /// Returns the bound for a run that may have both parts.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            completion_tokens: self.completion_tokens + other.completion_tokens,
            context_tokens: self.context_tokens.max(other.context_tokens),
        }
    }

    /// Adds a call whose prompt and reply have at most so many tokens.
    pub fn add_call(&mut self, prompt: u64, reply: u64) {
        self.calls += 1;
        self.prompt_tokens += prompt;
        self.completion_tokens += reply;
        self.context_tokens = self.context_tokens.max(prompt + reply);
    }
}
