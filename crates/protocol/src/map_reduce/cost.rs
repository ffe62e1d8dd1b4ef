//! The most that a `map_reduce` can cost, computed before anything is spent.

use super::machine::part_setup;
use super::state::{Job, Shown};
use crate::contract::{ProtocolParams, Setup, WorstCase, tokens};
use crate::text::evidence::{QUOTES_MAX, SENTENCE_BYTES_MAX};

/// The number of bytes for one token: the estimate of a prompt, the other way round.
const BYTES_A_TOKEN: u64 = 3;

/// Returns the most that such a run can use: every piece is read, and there are as many merges as the longest facts need.
pub fn worst_case<P: ProtocolParams>(setup: &Setup<P>) -> WorstCase {
    let mut total = WorstCase::default();
    let Some(chunk_plan) = &setup.chunk_plan else { return total };
    for index in 0..chunk_plan.pieces.len() {
        add(&mut total, part_setup(setup, &Job::Read(index), &Shown::default()).worst_case());
    }
    let facts = Shown { text: bytes(chunk_plan.tokens_max), ..Shown::default() };
    let merge = part_setup(setup, &Job::Merge(vec![1]), &facts).worst_case();
    // Every reader names as many sentences as it may, and each sentence is as long as possible.
    let name = setup.task.documents.iter().map(|document| tokens(&document.name)).max().unwrap_or(0);
    let of_one = (SENTENCE_BYTES_MAX as u64).div_ceil(BYTES_A_TOKEN) + name;
    let count = (QUOTES_MAX * chunk_plan.pieces.len()) as u64;
    if count.saturating_mul(of_one) > chunk_plan.tokens_max {
        // Every run leaves out at least one fact. After a run that comes to nothing, there are no further merges.
        for _ in 0..count {
            add(&mut total, merge);
        }
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
