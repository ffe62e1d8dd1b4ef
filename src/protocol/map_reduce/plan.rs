//! The most that a `map_reduce` may cost, before anything is spent.

use super::machine::{Job, Shown, part_setup};
use crate::protocol::{Setup, WorstCase};

/// Bytes of what a token is estimated from: the estimate of a prompt, the other way round.
const BYTES_A_TOKEN: u64 = 3;

/// Returns the most that such a run can use: every piece read, and as many merges as the longest facts would take.
#[must_use]
pub fn worst_case(setup: &Setup) -> WorstCase {
    let mut total = WorstCase::default();
    let Some(spread) = &setup.spread else { return total };
    for index in 0..spread.pieces.len() {
        add(&mut total, part_setup(setup, &Job::Read(index), &Shown::default()).worst_case());
    }
    let facts = Shown { text: bytes(spread.tokens_max), facts: Vec::new() };
    let merge = part_setup(setup, &Job::Merge(Vec::new()), &facts).worst_case();
    // A run writes a text of one reply at most.
    let reply = setup.agents.iter().map(|agent| u64::from(agent.max_tokens)).max().unwrap_or(0);
    let mut tokens = reply.saturating_mul(spread.pieces.len() as u64);
    while tokens > spread.tokens_max {
        let groups = tokens.div_ceil(spread.tokens_max);
        for _ in 0..groups {
            add(&mut total, merge);
        }
        let after = groups.saturating_mul(reply);
        if after >= tokens {
            break;
        }
        tokens = after;
    }
    add(&mut total, part_setup(setup, &Job::Answer, &facts).worst_case());
    total
}

fn bytes(tokens: u64) -> String {
    let length = usize::try_from(tokens.saturating_mul(BYTES_A_TOKEN)).unwrap_or(usize::MAX);
    "x".repeat(length)
}

fn add(total: &mut WorstCase, part: WorstCase) {
    total.calls += part.calls;
    total.prompt_tokens += part.prompt_tokens;
    total.completion_tokens += part.completion_tokens;
    total.context_tokens = total.context_tokens.max(part.context_tokens);
}
