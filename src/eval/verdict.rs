//! The verdict on an arm, in words.
//!
//! The input is the difference of an arm from what it is compared with, its interval, error and p-value, and the smallest difference of
//! interest. The output is one of five verdicts. A verdict is never given by the point alone, and the p-value is one that is corrected
//! for the number of comparisons.

use serde::{Serialize, Serializer};

use super::comparison::Against;
use statistics::{Resampled, items_for_equivalence, items_needed};

/// The p-value below which a difference is not taken for chance.
const LEVEL: f64 = 0.05;

/// The verdict on an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EvalVerdict {
    /// The interval is above zero with a p-value below 5 %, and the difference is at least the smallest one of interest.
    Helps,
    /// The interval is below zero with a p-value below 5 %, and the difference is at least the smallest one of interest.
    Hurts,
    /// The interval is within the smallest difference of interest, on both sides of zero.
    Equivalent,
    /// The items do not decide. The number says how many would find the smallest difference of interest with a power of 80 %.
    NotEnough {
        /// The number of items, which is whole.
        items: f64,
    },
    /// The arm takes more tokens than all samples of the curve, so that nothing it is better than took as many.
    Dearer,
}

impl EvalVerdict {
    /// Judges an arm by the smallest difference of interest, `effect`, which is above 0 and below 1. `p` is the p-value after any
    /// correction. The interval is over this many units, with this many items in them.
    pub(super) fn new(against: &Against, p: f64, units: usize, items: usize, effect: f64) -> Self {
        let Against { difference, found, bounds, is_dearer, .. } = *against;
        let is_sure = p < LEVEL;
        if found.interval.high < 0.0 && is_sure && difference <= -effect {
            return Self::Hurts;
        }
        if is_dearer {
            return Self::Dearer;
        }
        if found.interval.low > 0.0 && is_sure && difference >= effect {
            return Self::Helps;
        }
        // A difference that no item shows is bounded by the number of items alone.
        let is_bounded = units as f64 >= items_for_equivalence(effect);
        if bounds.low > -effect && bounds.high < effect && is_bounded {
            return Self::Equivalent;
        }
        Self::NotEnough { items: items_to_decide(found, units, items, effect).max(items as f64 + 1.0) }
    }

    /// Returns the verdict in words.
    pub fn summary(self) -> String {
        match self {
            Self::Helps => "helps".to_owned(),
            Self::Hurts => "hurts".to_owned(),
            Self::Equivalent => "equivalent".to_owned(),
            Self::NotEnough { items } => format!("not enough data: {items} items needed"),
            Self::Dearer => "dearer than all samples".to_owned(),
        }
    }
}

/// Returns the number of items that would find the smallest difference of interest with a power of 80 %, where these units of items have
/// this error. It is at least the number that bounds the difference where no item differs, and whole.
pub(super) fn items_to_decide(found: Resampled, units: usize, items: usize, effect: f64) -> f64 {
    let least = items_for_equivalence(effect);
    let units_needed = items_needed(found.error * found.error * units as f64, effect).max(least);
    (units_needed * items as f64 / units.max(1) as f64).ceil()
}

impl Serialize for EvalVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::{Interval, PairedTest};

    fn against(difference: f64, low: f64, high: f64) -> Against {
        let bounds = Interval { low, high };
        let found = Resampled { interval: bounds, error: (high - low) / 3.92, below: 0.0, above: 0.0 };
        let exact = PairedTest::new(0, 0);
        let (curve, samples, better, worse) = (0.5, 1, 0, 0);
        let (p, is_dearer) = (0.01, false);
        Against { curve, difference, found, p, bounds, is_dearer, samples, better, worse, exact }
    }

    fn judge(difference: f64, low: f64, high: f64, units: usize) -> String {
        EvalVerdict::new(&against(difference, low, high), 0.01, units, units, 0.02).summary()
    }

    /// The difference must be large enough to matter.
    #[test]
    fn verdict_needs_interval_and_difference() {
        assert_eq!(judge(0.05, 0.02, 0.08, 300), "helps");
        assert_eq!(judge(-0.05, -0.08, -0.02, 300), "hurts");
        assert_eq!(judge(0.0, -0.01, 0.01, 300), "equivalent");
        assert_eq!(judge(0.015, 0.011, 0.019, 9000), "equivalent", "sure, and too small to matter");
        // The variance of an item is 100 times the square of the error.
        assert_eq!(judge(0.05, -0.0092, 0.1092, 100), "not enough data: 1791 items needed");
        assert_eq!(judge(0.0, 0.0, 0.0, 182), "not enough data: 183 items needed");
        assert_eq!(judge(0.0, 0.0, 0.0, 183), "equivalent");
        assert_eq!(judge(0.0, -0.01, 0.01, 10), "not enough data: 183 items needed", "so few bound nothing");
    }

    #[test]
    fn verdict_respects_corrected_p_and_cost() {
        // One of many comparisons, whose own interval does not hold zero.
        let corrected = EvalVerdict::new(&against(0.05, 0.01, 0.09), 0.08, 300, 300, 0.02).summary();
        assert!(corrected.starts_with("not enough data"), "{corrected}");
        for (difference, low, high, words) in [
            (0.05, 0.02, 0.08, "dearer than all samples"),
            // It hurts even for more tokens.
            (-0.05, -0.08, -0.02, "hurts"),
        ] {
            let dear = Against { is_dearer: true, ..against(difference, low, high) };
            assert_eq!(EvalVerdict::new(&dear, 0.01, 300, 300, 0.02).summary(), words);
        }
        // Fifteen clusters of ten items need their clusters and not their items.
        let clustered = EvalVerdict::new(&against(0.05, -0.05, 0.15), 0.01, 15, 150, 0.02).summary();
        assert_eq!(clustered, "not enough data: 7670 items needed");
    }
}
