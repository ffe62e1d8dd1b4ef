//! The results of batches: rows, groups with their shares and intervals, differences between groups, and a page with all of them.
//!
//! ```text
//!  files of results ──► rows ──► groups ──► shares with intervals ──► table or page
//!                         │         └─────► differences, task by task ────────▲
//!                         └─────► samples: the tasks behind each group ───────┘
//! ```
//!
//! The input is the results of shards, and the output is figures. Nothing is run, and no journal is touched.

mod difference;
mod groups;
mod inspect;
mod page;
mod rows;
mod samples;
mod share;

pub use difference::Difference;
pub use groups::{By, Group, Groups, RunFilter, TalkEffect};
pub use inspect::{InspectLog, PromptAndTimes};
pub use page::{PageContent, page};
pub use rows::{
    BlindVoteRow, FlatRow, ResultRow, SampleRow, TallyRow, TimingRow, UsageRow, VoteRow, results,
};
pub(super) use rows::{RowId, lines};
pub use samples::Samples;
pub use share::{Share, format_share};
