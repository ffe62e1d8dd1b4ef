//! Blind samples: voters answer one after another, each alone, and code counts equal answers.
//!
//! ```text
//!  setup ──► samples in their order ──► answers by rule, or in a form ──► votes for each answer, and the lead of the first
//! ```
//!
//! The input is a setup and the replies. The output is requests, and the count of the samples that were looked at. When the count is enough
//! is decided by a protocol. No prompt contains a word of another sample, and no sample is repaired.

mod found;
mod mentions;
mod options;
mod prompt;
mod quantity;
mod report;
mod sample;
mod sampler;
mod tally;

pub use mentions::FoundBy;
pub use options::first_option;
pub(crate) use prompt::VoterIntroduction;
pub use report::{SampleReport, VoteSection, VotedAnswer};
pub(crate) use sampler::Sampler;
pub use tally::StopClass;
pub(crate) use tally::VoteCount;

use crate::contract::{Method, ProtocolParams, Setup, Thinking, WorstCase, tokens};

/// The tokens of the controller's own words in one sample: an upper bound of the texts in `prompt`.
const SAMPLE_WORDS: u64 = 300;

/// Returns the most that so many samples of these voters cost, if every reply is as long as allowed and each answer in words is asked for
/// in a form as well.
pub(crate) fn worst_case<P: ProtocolParams>(
    setup: &Setup<P>,
    voters: &[usize],
    introduction: VoterIntroduction,
    samples: usize,
) -> WorstCase {
    let task = tokens(&prompt::words(setup, &setup.task.prompt).situation);
    let mut total = WorstCase::default();
    if voters.is_empty() {
        return total;
    }
    for sample in 0..samples {
        let voter = voters[sample % voters.len()];
        let agent = &setup.agents[voter];
        let thinking = match agent.method {
            Method::Words => Thinking::Free,
            Method::Program => Thinking::None,
        };
        let mut conversation = tokens(&introduction.system(setup, voter)) + task + SAMPLE_WORDS;
        total.add_form(&mut conversation, thinking, 0, u64::from(agent.max_tokens));
    }
    total
}
