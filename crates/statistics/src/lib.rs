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

#![warn(missing_docs)]

mod bootstrap;
mod interval;
mod logistic;
mod paired;

pub use bootstrap::{Resampled, UnitRows};
pub use interval::{
    Interval, at_most, clopper_pearson_upper, count_within, standard_error, student, student_around,
    student_p, wilson, wilson_of_clusters,
};
pub use logistic::{logistic_fit, logistic_value};
pub use paired::{PairedTest, items_for_equivalence, items_needed};

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The random cases that `tests/experiments/figures.py vectors` has computed with scipy and statsmodels.
    fn cases(kind: &str) -> Vec<[f64; 4]> {
        let known: Value = serde_json::from_str(include_str!("../cases.json")).unwrap();
        let cases: Vec<[f64; 4]> = serde_json::from_value(known[kind].clone()).unwrap();
        assert!(cases.len() >= 200, "{kind}");
        cases
    }

    fn near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 1e-8
    }

    #[test]
    fn intervals_and_tests_are_those_of_independent_libraries() {
        for case @ [count, of, low, high] in cases("wilson") {
            let found = wilson(count / of, of);
            assert!(near(found.low, low) && near(found.high, high), "{case:?} {found:?}");
        }
        for case @ [count, of, doubt, upper] in cases("clopper_pearson_upper") {
            let found = clopper_pearson_upper(count, of, doubt);
            assert!(near(found, upper), "{case:?} {found}");
        }
        for case @ [better, worse, p, mid_p] in cases("mcnemar") {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "they are small counts"
            )]
            let found = PairedTest::new(better as u64, worse as u64);
            assert!(near(found.p, p) && near(found.mid_p, mid_p), "{case:?} {found:?}");
        }
    }
}
