//! Many runs: a matrix of tasks, rolesets, models and seeds, in shards.
//!
//! ```text
//!  tasks, line by line ──► cells of the matrix ──those of this shard──► runs under way ──► results, a line each
//!                                                      │                     │
//!                                     what is there already is skipped       └──► one journal for all of them
//! ```
//!
//! In go task lines, columns (rolesets and models that are ready to run) and a folder; out come one journal and one file of
//! results for each shard. Every run has an id that follows from what it is, so that the same command finds what is finished,
//! goes on with what is not, and begins what is missing: nothing that is durable is asked for again. A line that cannot be run is
//! reported and stops no other. Tasks are read as they are wanted, so that a file of any length takes little memory.
//!
//! Only `columns` knows files of configuration, and nothing is printed.

mod batch_stats;
mod cells;
mod circuit_breaker;
mod columns;
mod error;
mod evidence;
mod groups;
mod matrix;
mod open_run;
mod page;
mod result_line;
mod results;
mod scheduler;
mod shard;
mod shard_id;
mod status;
mod strays;
mod task;
mod task_reader;
mod verify;

pub use batch_stats::{BatchStats, EndCounts};
pub use columns::{ColumnRequest, OpenColumns};
pub use error::BatchError;
pub use groups::{By, Group, Groups, Part, share_in_words};
pub use matrix::Column;
pub use open_run::Options;
pub use page::page;
pub use result_line::ResultLine;
pub use results::{Flat, Told, results};
pub use scheduler::{Columns, Watcher, run};
pub use shard::{Retry, Shard, is_batch};
pub use shard_id::ShardOf;
pub use status::{Progress, ShardStatus, State, status};
pub use strays::strays;
pub use task::{LINE_BYTES_MAX, TaskLine};
pub use task_reader::{Line, TaskReader, feed};
pub use verify::{VerifiedBatch, verify};
