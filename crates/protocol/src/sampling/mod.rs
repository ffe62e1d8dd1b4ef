//! Blind samples: voters answer one after another, each alone, and code counts equal answers.
//!
//! ```text
//!  setup ──► samples in their order ──► answers by rule, or in a form ──► votes for each answer, and the lead of the first
//! ```
//!
//! The input is a setup and the replies. The output is requests, and the count of the samples that were looked at. A protocol decides when
//! the count is enough. No prompt contains a word of another sample, and no sample is repaired.

mod compared;
mod counting;
mod found;
mod mentions;
mod options;
mod prompt;
mod quantity;
mod report;
mod sample;
mod sampler;
mod tally;
mod trials;

pub use compared::{ComparedTexts, DraftDifference};
pub(crate) use counting::{CountDecision, CountProgress, CountRule, Counting, LongTexts};
pub use mentions::FoundBy;
pub use options::first_option;
pub use prompt::AnswerExtent;
pub(crate) use prompt::{SampleForm, VoterIntroduction};
pub use report::{SampleReport, VoteSection, VotedAnswer};
pub(crate) use sampler::{Sampler, worst_case};
pub use tally::StopClass;
pub(crate) use tally::{CERTAIN, VoteCount};
pub use trials::{BehaviourSection, TriedInput};
