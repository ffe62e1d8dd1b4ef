//! Statistics of shares and of paired results: intervals and tests.
//!
//! ```text
//!  counts and values ───────► interval: Wilson, Student
//!  better and worse items ──► paired: the exact test
//! ```
//!
//! The input is numbers, and the output is numbers. Nothing here knows a run, reads a file or a clock, or draws by chance.

mod interval;
mod paired;

pub use interval::{Interval, student, wilson};
pub use paired::sign_test;
