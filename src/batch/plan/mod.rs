//! What a batch runs: the cells of a matrix of tasks, variants and seeds.
//!
//! The input is tasks as they come, and a person's choice of rolesets, servers and samples. The output is cells, each with the id of its
//! run. Only `variants` reads configuration files. No run is begun here.

mod bank;
mod cells;
mod matrix;
mod task_reader;
mod variants;

pub(super) use bank::{BANK_ARMS, drawn_with};
pub use bank::{Draws, WORDS_ARM};
pub use cells::OwnCell;
pub(super) use cells::{Cells, Work, read_documents};
pub(super) use matrix::{Cell, origin, run_id};
pub use matrix::{Variant, require_answer, text_is_right};
pub use task_reader::{TaskLines, TaskReader, TaskRow, feed};
pub use variants::{VariantRequest, VariantSet, planned_variants};
