//! The records of a shard: its journal, its lines of results, and the report of its process.
//!
//! The input is runs that begin and end. The output is what is durable about them, and the same again after a crash. Only `prune` removes
//! runs.

mod batch_stats;
mod prune;
mod result_line;
mod result_places;
mod shard;
mod status;

pub use batch_stats::{BatchStats, EndCounts};
pub use prune::{Pruned, prune};
pub use result_line::ResultLine;
pub(super) use result_line::{EndOnRecord, Grades, ResultOnRecord, ResultParts, RowId, derive_fields};
pub use result_places::ResultPlaces;
pub(super) use shard::{CellState, OPENED_TWICE, read_result_ends};
pub use shard::{Retry, Shard, UnfinishedRun};
pub(super) use status::is_live;
pub use status::{ProcessState, Progress, ShardStatus, status};
