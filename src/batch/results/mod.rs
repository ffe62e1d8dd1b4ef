//! The results of batches: rows, groups with their shares and intervals, differences between groups, and a page with all of them.
//!
//! ```text
//!  files of results ──► rows ──► groups ──► shares with intervals ──► table or page
//!                         │         └─────► differences, task by task ────────▲
//!                         └─────► samples: the tasks behind each group ───────┘
//! ```
//!
//! The input is the results of shards, and the output is figures. The calls and the transcripts come from the journals, and so do rows
//! that are lost. Nothing is run or written.

mod calls;
mod difference;
mod groups;
mod inspect;
mod page;
mod rows;
mod samples;
mod share;
mod transcripts;

pub use calls::{CallRow, calls, prompts_and_times};
pub use difference::Difference;
pub use groups::{By, Group, Groups, RunFilter, TalkEffect};
pub use inspect::{InspectLog, PromptAndTimes};
pub use page::{PageContent, page};
pub(super) use rows::lines;
pub use rows::{
    BlindVoteRow, FlatRow, ResultRow, SampleRow, TallyRow, TimingRow, UsageRow, VoteRow, results,
};
pub use samples::Samples;
pub use share::{Share, format_share};
pub use transcripts::{transcripts, transcripts_of};
