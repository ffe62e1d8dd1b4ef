//! The verdict on an arm, in words.
//!
//! The input is the difference of an arm from what it is compared with, its interval, error and p-value, and the smallest difference of
//! interest. The output is one of five verdicts. A verdict is never given by the point alone, and the p-value is one that is corrected
//! for the number of comparisons.

use serde::{Serialize, Serializer};

use statistics::{Interval, Resampled, items_for_equivalence, items_needed};

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

/// A difference that is to be judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct JudgedArm {
    pub(super) difference: f64,
    /// Its interval and error.
    pub(super) found: Resampled,
    /// The ends of its interval if one more item speaks for either side.
    pub(super) bounds: Interval,
    /// Its p-value, after any correction.
    pub(super) p: f64,
    /// Whether the arm takes more tokens than the whole curve.
    pub(super) is_dearer: bool,
    /// The units over which the interval is, and the items in them.
    pub(super) units: usize,
    pub(super) items: usize,
}

impl EvalVerdict {
    /// Judges a difference by the smallest difference of interest, `effect`, which is above 0 and below 1.
    pub(super) fn new(of: JudgedArm, effect: f64) -> Self {
        let JudgedArm { difference, found: Resampled { interval, .. }, bounds, p, is_dearer, units, items } =
            of;
        let is_sure = p < LEVEL;
        // A difference that no item shows is bounded by the number of items alone.
        let is_bounded = units as f64 >= items_for_equivalence(effect);
        match () {
            () if interval.high < 0.0 && is_sure && difference <= -effect => Self::Hurts,
            () if is_dearer => Self::Dearer,
            () if interval.low > 0.0 && is_sure && difference >= effect => Self::Helps,
            () if bounds.low > -effect && bounds.high < effect && is_bounded => Self::Equivalent,
            () => Self::NotEnough { items: needed(of.found, units, items, effect).max(items as f64 + 1.0) },
        }
    }

    /// Returns the verdict in words.
    pub fn in_words(self) -> String {
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
pub(super) fn needed(found: Resampled, units: usize, items: usize, effect: f64) -> f64 {
    let least = items_for_equivalence(effect);
    let units_needed = items_needed(found.error * found.error * units as f64, effect).max(least);
    (units_needed * items as f64 / units.max(1) as f64).ceil()
}

impl Serialize for EvalVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.in_words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(difference: f64, low: f64, high: f64, units: usize) -> JudgedArm {
        let found = Resampled {
            interval: Interval { low, high },
            error: (high - low) / 3.92,
            below: 0.0,
            above: 0.0,
        };
        let bounds = found.interval;
        JudgedArm { difference, found, bounds, p: 0.01, is_dearer: false, units, items: units }
    }

    fn judged(of: JudgedArm) -> String {
        EvalVerdict::new(of, 0.02).in_words()
    }

    /// The difference must be large enough to matter.
    #[test]
    fn verdict_needs_interval_and_difference() {
        assert_eq!(judged(of(0.05, 0.02, 0.08, 300)), "helps");
        assert_eq!(judged(of(-0.05, -0.08, -0.02, 300)), "hurts");
        assert_eq!(judged(of(0.0, -0.01, 0.01, 300)), "equivalent");
        assert_eq!(judged(of(0.015, 0.011, 0.019, 9000)), "equivalent", "sure, and too small to matter");
        // The variance of an item is 100 times the square of the error.
        assert_eq!(judged(of(0.05, -0.0092, 0.1092, 100)), "not enough data: 1791 items needed");
        assert_eq!(judged(of(0.0, 0.0, 0.0, 182)), "not enough data: 183 items needed");
        assert_eq!(judged(of(0.0, 0.0, 0.0, 183)), "equivalent");
        assert_eq!(
            judged(of(0.0, -0.01, 0.01, 10)),
            "not enough data: 183 items needed",
            "so few bound nothing"
        );
    }

    #[test]
    fn verdict_respects_corrected_p_and_cost() {
        // One of many comparisons, whose own interval does not hold zero.
        let corrected = judged(JudgedArm { p: 0.08, ..of(0.05, 0.01, 0.09, 300) });
        assert!(corrected.starts_with("not enough data"), "{corrected}");
        let dear = |of: JudgedArm| judged(JudgedArm { is_dearer: true, ..of });
        assert_eq!(dear(of(0.05, 0.02, 0.08, 300)), "dearer than all samples");
        assert_eq!(dear(of(-0.05, -0.08, -0.02, 300)), "hurts", "even for more tokens");
        // Fifteen clusters of ten items need their clusters and not their items.
        let clustered = judged(JudgedArm { units: 15, items: 150, ..of(0.05, -0.05, 0.15, 15) });
        assert_eq!(clustered, "not enough data: 7670 items needed");
    }
}
