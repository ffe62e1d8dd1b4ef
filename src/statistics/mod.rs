//! Statistics of shares and of paired results: intervals, tests, and the number of items that would decide a question.
//!
//! ```text
//!  counts ──────────────────► interval: Wilson, Clopper–Pearson, Student
//!  better and worse items ──► paired: exact tests, items that are needed
//!  values by item ──────────► bootstrap: the interval of any figure over items
//! ```
//!
//! The input is numbers, and the output is numbers. Nothing here knows a run, reads a file or a clock, or draws by chance: the draws of a
//! bootstrap follow from a seed, so the same values give the same interval on every machine.

mod bootstrap;
mod interval;
mod paired;

pub use bootstrap::{Bootstrap, Clusters};
pub use interval::{Interval, clopper_pearson, clopper_pearson_upper, student, wilson};
pub use paired::{PairedTest, discordance_of_none, items_for_equivalence, items_needed};
