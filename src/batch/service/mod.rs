//! The service of batches: a plain request becomes runs, or an estimate of what they would take.

mod batch_run;
mod estimate;

pub use batch_run::{BatchEnd, BatchRequest, ReadyBatch, WorkLoad, make_folder};
pub use estimate::{PlannedBatch, PlannedSum};
