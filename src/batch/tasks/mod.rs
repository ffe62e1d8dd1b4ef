//! The tasks of a batch: lines of a file, in this program's form or another, with their right answers and graders.
//!
//! The input is the bytes of a file. The output is one task line for each row, or the reason why the row is not one. No file is
//! opened here, and nothing here knows what a run is.

mod grader;
mod public_row;
mod task;
mod task_form;
mod task_rows;

pub use grader::Grader;
pub(super) use grader::RunText;
pub(super) use task::id_in;
pub use task::{LINE_BYTES_MAX, TaskLine};
pub use task_form::{DocumentLine, FIELDS, TaskForm};
pub(super) use task_rows::Rows;
