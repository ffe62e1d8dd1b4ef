//! Many runs: a matrix of tasks, rolesets, models and seeds, in shards.
//!
//! ```text
//!  tasks, line by line ──► cells of the matrix ──those of this shard──► runs under way ──► results, a line each
//!                                                      │                     │
//!                                     finished runs are skipped              └──► one journal for all of them
//! ```
//!
//! The input is task lines, columns (rolesets and models that are ready to run) and a folder. The output is one journal and one file
//! of results for each shard. The id of a run follows from what the run is. The same command therefore finds finished runs,
//! continues unfinished ones and begins missing ones: no durable call is made again. A line that cannot be run is reported, and the
//! other lines still run. Tasks are read only when they are needed, so a file of any length takes little memory.
//!
//! Only `columns` reads configuration files, and nothing is printed.

mod bank;
mod batch_stats;
mod calls;
mod cells;
mod circuit_breaker;
mod columns;
mod error;
mod evidence;
mod graded_runs;
mod grader;
mod grading;
mod layout;
mod manifest;
mod matrix;
mod missing;
mod noted_columns;
mod open_run;
mod picked;
mod pilot;
mod plan;
mod prompts_and_times;
mod prune;
mod public_row;
mod result_line;
mod result_places;
mod results;
mod scheduler;
mod shard;
mod shard_id;
mod status;
mod strays;
mod task;
mod task_form;
mod task_reader;
mod task_rows;
mod transcripts;
mod verify;

pub use bank::{Draws, WORDS_ARM};
pub use batch_stats::{BatchStats, EndCounts};
pub use calls::{CallRow, calls};
pub use cells::OwnCell;
pub use columns::{ColumnRequest, OpenColumns, planned_columns};
pub use error::BatchError;
pub use graded_runs::GradedRuns;
pub use grader::Grader;
pub use grading::CommandGrader;
pub use layout::{is_batch, redactions_file};
pub use manifest::{
    BatchNote, ColumnNote, CommandNote, DataNote, Provenance, ServerNote, check_settings, mixed_columns,
    note, note_plan, note_servers, provenance, require_own_build,
};
pub use matrix::{Column, require_answer, text_is_right};
pub use missing::{MissingParts, removed_in_words, without_results};
pub use open_run::{Onlooker, Options};
pub use picked::{CellLabel, Pick, PickedRun, pick};
pub use pilot::pilots;
pub use plan::{BatchPlan, ColumnPlan, Sum};
pub use prompts_and_times::prompts_and_times;
pub use prune::{Pruned, prune};
pub use result_line::ResultLine;
pub use result_places::ResultPlaces;
pub use results::{
    BlindTold, By, Difference, Flat, Group, Groups, InspectLog, Only, PageContent, PromptAndTimes,
    SampleTold, Samples, Share, TalkEffect, TallyTold, TimingTold, Told, UsageTold, VotesTold, page, results,
    share_in_words,
};
pub use scheduler::{Columns, Watcher, run};
pub use shard::{Retry, Shard, UnfinishedRun};
pub use shard_id::ShardOf;
pub use status::{Progress, ShardStatus, State, status};
pub use strays::strays;
pub use task::{DocumentLine, LINE_BYTES_MAX, TaskLine};
pub use task_form::{FIELDS, TaskForm};
pub use task_reader::{Line, TaskLines, TaskReader, feed};
pub use transcripts::{transcripts, transcripts_of};
pub use verify::{Examine, VerifiedBatch, verify, verify_with_gaps};
