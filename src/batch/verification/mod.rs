//! The verification of a batch: everything that its folder claims is derived again from its journals.
//!
//! The input is the folders of batches. The output is the first fault, or the runs that hold: their number, one of them as if it were
//! alone, or those whose right answers are known. Nothing is run or written here.

mod evidence;
mod graded_runs;
mod missing;
mod noted_variants;
mod pilot;
mod run_selection;
mod verify;

pub use graded_runs::GradedRuns;
pub use missing::{MissingParts, describe_removals, without_results};
pub use pilot::pilots;
pub use run_selection::{CellLabel, RunSelector, SelectedRun, select_runs};
pub use verify::{VerifiedBatch, verify, verify_with_gaps};
