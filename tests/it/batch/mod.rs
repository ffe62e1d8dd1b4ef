//! A batch runs every cell once, goes on after a kill, names each line that it cannot run, and proves its results by its
//! journals.

mod bad_lines_and_full_disks;
mod banks;
mod damaged_files;
mod each_cell_once;
mod graded_by_command;
mod missing_records;
mod one_way_of_several;
mod read_by_people;
mod redaction;
mod results_verify;
mod resume;
mod shared_budget;

pub(crate) use crate::support::{MOCK, batch, figures, lines, replies, run_of, tasks};
