//! Two ways on the same items: exact tests, and the number of items that would decide between them.
//!
//! The input is the number of items on which the first way is better, and on which it is worse. Items on which both are alike say nothing
//! about which is better, and are in no test. The output is probabilities and numbers of items.

use serde::Serialize;
use statrs::distribution::{Binomial, Discrete as _, DiscreteCDF as _};

/// The sum of the normal quantiles of a two-sided test at 5 % and of a power of 80 %.
const QUANTILE_SUM: f64 = 1.959_963_984_540_054 + 0.841_621_233_572_914;

/// The exact two-sided sign test over items, which for one run per item is the exact test of `McNemar` (1947).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairedTest {
    /// The probability of so uneven a split, or a more uneven one, if neither way were better.
    pub p: f64,
    /// The same, with half of the probability of this very split (Lancaster 1961). It is less cautious than the exact one.
    pub mid_p: f64,
}

impl PairedTest {
    /// Tests a split into items on which one way is better and on which it is worse.
    pub fn new(better: u64, worse: u64) -> Self {
        let Ok(even) = Binomial::new(0.5, better + worse) else { return Self { p: 1.0, mid_p: 1.0 } };
        let less = better.min(worse);
        let tail = even.cdf(less);
        let mid = tail - 0.5 * even.pmf(less);
        Self { p: (2.0 * tail).min(1.0), mid_p: (2.0 * mid).min(1.0) }
    }
}

/// Returns the number of items that find a mean difference of `effect` with a power of 80 % at a level of 5 %, where the differences of
/// items have this variance. The number is whole. `effect` is above 0.
///
/// For two ways of which each is right or wrong, the variance is that of Connor (1987): the share of items on which only one is right,
/// less the square of the difference.
pub fn items_needed(variance: f64, effect: f64) -> f64 {
    (QUANTILE_SUM * QUANTILE_SUM * variance / (effect * effect)).ceil()
}

/// Returns the least whole n with (1 − `effect`)ⁿ ≤ 2.5 %. If two ways are alike on so many items, the exact binomial bound on each side of
/// their difference is below `effect`. It is above 0 and below 1.
pub fn items_for_equivalence(effect: f64) -> f64 {
    (0.025_f64.ln() / (1.0 - effect).ln()).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_equal_those_of_r() {
        // From R: binom.test(c(b, c))$p.value, and exact2x2::mcnemar.exact with midp = TRUE.
        for (better, worse, p, mid_p) in [
            (5, 0, 0.0625, 0.031_25),
            (10, 2, 0.038_574, 0.022_461),
            (33, 15, 0.013_283, 0.009_399),
            (38, 36, 0.907_561, 0.817_554),
        ] {
            for test in [PairedTest::new(better, worse), PairedTest::new(worse, better)] {
                assert!(
                    (test.p - p).abs() < 1e-6 && (test.mid_p - mid_p).abs() < 1e-6,
                    "{better} {worse}: {test:?}"
                );
            }
        }
        assert_eq!(PairedTest::new(0, 0), PairedTest { p: 1.0, mid_p: 1.0 });
        assert!(PairedTest::new(4, 4).mid_p <= 1.0);
    }

    #[test]
    fn the_items_needed_follow_connor_1987() {
        for (discordant, effect, items) in
            [(0.1, 0.03, 865.0), (0.1, 0.05, 307.0), (0.2, 0.03, 1737.0), (0.2, 0.05, 621.0)]
        {
            let found = items_needed(discordant - effect * effect, effect);
            assert!((found - items).abs() < 0.5, "{discordant} {effect}: {found}");
        }
    }

    /// So many items on which two ways are alike bound their difference.
    #[test]
    fn equivalence_needs_stated_item_count() {
        for (effect, items) in [(0.01, 368.0), (0.02, 183.0), (0.05, 72.0)] {
            assert!((items_for_equivalence(effect) - items).abs() < 0.5);
        }
    }
}
