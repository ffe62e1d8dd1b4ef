//! Many runs: a matrix of tasks, rolesets, models and seeds, in shards.
//!
//! ```text
//!  tasks, line by line ──► cells of the matrix ──those of this shard──► runs under way ──► results, a line each
//!                                                      │                     │
//!                                     finished runs are skipped              └──► one journal for all of them
//! ```
//!
//! The input is task lines, variants (rolesets and models that are ready to run) and a folder. The output is one journal and one file
//! of results for each shard. The id of a run follows from what the run is. The same command therefore finds finished runs,
//! continues unfinished ones and begins missing ones: no durable call is made again. A line that cannot be run is reported, and the
//! other lines still run. Tasks are read only when they are needed, so a file of any length takes little memory.
//!
//! Only `variants` reads configuration files, and nothing is printed.

mod bank;
mod batch_stats;
mod calls;
mod cells;
mod circuit_breaker;
mod error;
mod evidence;
mod graded_runs;
mod grader;
mod grading;
mod layout;
mod manifest;
mod matrix;
mod missing;
mod noted_variants;
mod open_run;
mod pilot;
mod plan;
mod prune;
mod public_row;
mod result_line;
mod result_places;
mod results;
mod run_selection;
mod scheduler;
mod shard;
mod shard_id;
mod status;
mod stray_files;
mod task;
mod task_form;
mod task_reader;
mod task_rows;
mod transcripts;
mod variants;
mod verify;

pub use bank::{Draws, WORDS_ARM};
pub use batch_stats::{BatchStats, EndCounts};
pub use calls::{CallRow, calls, prompts_and_times};
pub use cells::OwnCell;
pub use error::BatchError;
pub use graded_runs::GradedRuns;
pub use grader::Grader;
pub use grading::CommandGrader;
pub use layout::{is_batch, redactions_file};
pub use manifest::{
    BatchNote, CommandNote, DataNote, Provenance, ServerNote, VariantNote, check_settings, mixed_variants,
    note, note_plan, note_servers, provenance, require_own_build,
};
pub use matrix::{Variant, require_answer, text_is_right};
pub use missing::{MissingParts, describe_removals, without_results};
pub use open_run::{Options, RunObserver};
pub use pilot::pilots;
pub use plan::{BatchPlan, Sum, VariantPlan};
pub use prune::{Pruned, prune};
pub use result_line::ResultLine;
pub use result_places::ResultPlaces;
pub use results::{
    BlindVoteRow, By, Difference, FlatRow, Group, Groups, InspectLog, PageContent, PromptAndTimes, ResultRow,
    RunFilter, SampleRow, Samples, Share, TalkEffect, TallyRow, TimingRow, UsageRow, VoteRow, format_share,
    page, results,
};
pub use run_selection::{CellLabel, RunSelector, SelectedRun, select_runs};
pub use scheduler::{BatchObserver, run};
pub use shard::{Retry, Shard, UnfinishedRun};
pub use shard_id::ShardOf;
pub use status::{ProcessState, Progress, ShardStatus, status};
pub use stray_files::stray_files;
pub use task::{LINE_BYTES_MAX, TaskLine};
pub use task_form::{DocumentLine, FIELDS, TaskForm};
pub use task_reader::{TaskLines, TaskReader, TaskRow, feed};
pub use transcripts::{transcripts, transcripts_of};
pub use variants::{VariantRequest, VariantSet, planned_variants};
pub use verify::{VerifiedBatch, verify, verify_with_gaps};
