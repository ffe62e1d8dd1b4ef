//! The most that a run can cost, computed before anything is spent.

use super::params::VoteSetup;
use super::prompt;
use crate::contract::{Method, Thinking, WorstCase, tokens};

/// The tokens of the controller's own words in one sample: an upper bound of the texts in `prompt`.
const SAMPLE_WORDS: u64 = 300;

/// Returns the most that a run with this setup can use.
///
/// The estimate assumes that all samples are drawn, that every reply is as long as allowed, and that each answer in words is asked for in
/// a form as well.
pub(super) fn worst_case(setup: &VoteSetup) -> WorstCase {
    let voters = setup.params.voters(&setup.agents);
    let task = tokens(&prompt::words(setup, &setup.task.prompt).situation);
    let mut total = WorstCase::default();
    if voters.is_empty() {
        return total;
    }
    for sample in 0..setup.params.most() as usize {
        let voter = voters[sample % voters.len()];
        let agent = &setup.agents[voter];
        let thinking = match agent.method {
            Method::Words => Thinking::Free,
            Method::Program => Thinking::None,
        };
        let mut conversation = tokens(&setup.system_alone(voter)) + task + SAMPLE_WORDS;
        total.add_form(&mut conversation, thinking, 0, u64::from(agent.max_tokens));
    }
    total
}
