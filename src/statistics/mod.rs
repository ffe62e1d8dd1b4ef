//! Statistics of shares and of paired results: intervals, tests, and the number of items that would decide a question.
//!
//! ```text
//!  counts and values ───────► interval: Wilson, Student
//!  better and worse items ──► paired: the exact test, items that are needed
//!  rows of numbers ─────────► bootstrap: the interval of any figure over items
//! ```
//!
//! The input is numbers, and the output is numbers. Nothing here knows a run, reads a file or a clock, or draws by chance: the draws of a
//! bootstrap follow from a seed, so the same values give the same interval on every machine.

mod bootstrap;
mod interval;
mod paired;

pub use bootstrap::{Resampled, UnitRows};
pub use interval::{Interval, student, wilson};
pub use paired::{PairedTest, items_for_equivalence, items_needed};
