//! The verdict on an arm, in words.
//!
//! The input is the difference of an arm from what it is compared with, its interval, error and p-value, and the smallest difference of
//! interest. The output is one of four verdicts. A verdict is never given by the point alone, and the p-value is one that is corrected
//! for the number of comparisons.

use serde::{Serialize, Serializer};

use crate::statistics::{Resampled, items_for_equivalence, items_needed};

/// The p-value below which a difference is not taken for chance.
const LEVEL: f64 = 0.05;

/// The verdict on an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EvalVerdict {
    /// The interval is above zero with a p-value below 5 %, and the difference is at least the smallest one of interest.
    Helps,
    /// The same below zero.
    Hurts,
    /// The interval is within the smallest difference of interest, on both sides of zero.
    Equivalent,
    /// The items do not decide; so many would find the smallest difference of interest with a power of 80 %.
    NotEnough {
        /// The number of items, which is whole.
        items: f64,
    },
}

impl EvalVerdict {
    /// Judges a difference over this many units by the smallest difference of interest, `effect`, which is above 0 and below 1. `p` is the
    /// p-value after any correction.
    #[must_use]
    pub fn new(difference: f64, found: Resampled, p: f64, units: usize, effect: f64) -> Self {
        let Resampled { interval, error, .. } = found;
        let needed = needed(found, units, effect);
        let units = units as f64;
        // Where no item differs, a bootstrap knows no error, and the exact bound on what was never seen decides.
        if error == 0.0 && difference.abs() < effect {
            return if units >= needed { Self::Equivalent } else { Self::NotEnough { items: needed } };
        }
        match () {
            () if interval.low > 0.0 && p < LEVEL && difference >= effect => Self::Helps,
            () if interval.high < 0.0 && p < LEVEL && difference <= -effect => Self::Hurts,
            () if interval.low > -effect && interval.high < effect => Self::Equivalent,
            () => Self::NotEnough { items: needed.max(units + 1.0) },
        }
    }

    /// Returns the verdict in words.
    #[must_use]
    pub fn in_words(self) -> String {
        match self {
            Self::Helps => "helps".to_owned(),
            Self::Hurts => "hurts".to_owned(),
            Self::Equivalent => "equivalent".to_owned(),
            Self::NotEnough { items } => format!("not enough data: {items} items needed"),
        }
    }
}

/// Returns the number of units that would find the smallest difference of interest with a power of 80 %, where `units` have this error; where
/// they do not differ at all, the number that would bound the difference. It is whole.
#[must_use]
pub(super) fn needed(found: Resampled, units: usize, effect: f64) -> f64 {
    if found.error == 0.0 {
        return items_for_equivalence(effect);
    }
    items_needed(found.error * found.error * units as f64, effect)
}

impl Serialize for EvalVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.in_words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::statistics::Interval;

    fn judged(difference: f64, low: f64, high: f64, units: usize) -> String {
        let found = Resampled { interval: Interval { low, high }, error: (high - low) / 3.92, p: 0.01 };
        EvalVerdict::new(difference, found, found.p, units, 0.02).in_words()
    }

    #[test]
    fn a_verdict_needs_an_interval_and_a_difference_that_matters() {
        assert_eq!(judged(0.05, 0.02, 0.08, 300), "helps");
        assert_eq!(judged(-0.05, -0.08, -0.02, 300), "hurts");
        assert_eq!(judged(0.0, -0.01, 0.01, 300), "equivalent");
        assert_eq!(judged(0.015, 0.011, 0.019, 9000), "equivalent", "sure, and too small to matter");
        // The variance of an item is 100 times the square of the error.
        assert_eq!(judged(0.05, -0.0092, 0.1092, 100), "not enough data: 1790 items needed");
        assert_eq!(judged(0.0, 0.0, 0.0, 182), "not enough data: 183 items needed");
        assert_eq!(judged(0.0, 0.0, 0.0, 183), "equivalent");
        // One of many comparisons, whose own interval does not hold zero.
        let found = Resampled { interval: Interval { low: 0.01, high: 0.09 }, error: 0.02, p: 0.02 };
        let corrected = EvalVerdict::new(0.05, found, 0.08, 300, 0.02);
        assert!(matches!(corrected, EvalVerdict::NotEnough { .. }), "{corrected:?}");
    }
}
