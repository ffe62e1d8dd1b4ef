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
//! Only `plan` reads configuration files, and nothing is printed.
//!
//! # Wings
//!
//! A file uses its own wing and the wings of lower lines. The test `tidy` reads this block.
//!
//! ```text
//! service
//! schedule  verification
//! results
//! store
//! plan  pacing
//! tasks  folder
//! ```
//!
//! - `tasks`: lines of a file as tasks, with their right answers and graders.
//! - `folder`: shards, files, the manifest, and the errors that stop a batch.
//! - `plan`: the matrix of tasks, variants and seeds, cell by cell.
//! - `pacing`: the ledger of a budget of tokens that votes share, made from a journal.
//! - `store`: the journal and the lines of results of a shard.
//! - `results`: rows, groups, pages, and what other tools read.
//! - `schedule`: many runs at once, each from its cell to its graded result.
//! - `service`: a plain request, and the batch or the estimate that comes of it.
//! - `verification`: what a folder claims, derived again from its journals.

mod folder;
mod pacing;
mod plan;
mod results;
mod schedule;
mod service;
mod store;
mod tasks;
mod verification;

pub use folder::{
    BatchError, BatchNote, BudgetNote, CommandNote, DataNote, Provenance, ServerNote, ShardOf, VariantNote,
    check_settings, is_batch, mixed_variants, note, note_plan, note_servers, provenance, redactions_file,
    require_own_build, stray_files,
};
pub use plan::{
    Draws, OwnCell, TaskLines, TaskReader, TaskRow, Variant, VariantRequest, VariantSet, WORDS_ARM, feed,
    planned_variants, require_answer, text_is_right,
};
pub use results::{
    BlindVoteRow, By, CallRow, Difference, FlatRow, Group, Groups, InspectLog, PageContent, PromptAndTimes,
    ResultRow, RunFilter, SampleRow, Samples, Share, TalkEffect, TallyRow, TimingRow, UsageRow, VoteRow,
    calls, format_share, page, prompts_and_times, results, transcripts, transcripts_of,
};
pub use schedule::{BatchObserver, BatchPlan, CommandGrader, Options, Sum, VariantPlan, run};
pub use service::{BatchEnd, BatchRequest, PlannedBatch, PlannedSum, ReadyBatch, WorkLoad, make_folder};
pub use store::{
    BatchStats, EndCounts, ProcessState, Progress, Pruned, ResultLine, ResultPlaces, Retry, Shard,
    ShardStatus, UnfinishedRun, prune, status,
};
pub use tasks::{DocumentLine, FIELDS, Grader, LINE_BYTES_MAX, TaskForm, TaskLine};
pub use verification::{
    CellLabel, GradedRuns, MissingParts, RunSelector, SelectedRun, VerifiedBatch, describe_removals, pilots,
    select_runs, verify, verify_with_gaps, without_results,
};
