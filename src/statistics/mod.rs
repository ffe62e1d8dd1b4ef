//! Statistics of shares and of paired results: intervals, tests, and the number of items that would decide a question.
//!
//! ```text
//!  counts and values ───────► interval: Wilson, Clopper and Pearson, Student
//!  better and worse items ──► paired: the exact test, items that are needed
//!  rows of numbers ─────────► bootstrap: the interval of any figure over items
//!  rows with yes or no ─────► logistic: the probability of yes
//! ```
//!
//! The input is numbers, and the output is numbers. Nothing here knows a run, reads a file or a clock, or draws by chance: the draws of a
//! bootstrap follow from a seed, so the same values give the same interval on every machine.

mod bootstrap;
mod interval;
mod logistic;
mod paired;

pub use bootstrap::{Resampled, UnitRows};
pub use interval::{
    Interval, at_most, clopper_pearson_upper, count_within, standard_error, student, wilson,
    wilson_of_clusters,
};
pub use logistic::{logistic_fit, logistic_value};
pub use paired::{PairedTest, items_for_equivalence, items_needed};
