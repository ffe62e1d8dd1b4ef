//! Two ways on the same items: exact tests, and the number of items that would decide between them.
//!
//! The input is the number of items on which the first way is better, and on which it is worse. Items on which both are alike say nothing
//! about which is better, and are in no test. The output is probabilities and numbers of items.

use serde::Serialize;
use statrs::distribution::{Binomial, Discrete as _, DiscreteCDF as _};

/// The normal quantiles of a two-sided test at 5 %, and of a power of 80 %.
const QUANTILES: f64 = 1.959_963_984_540_054 + 0.841_621_233_572_914;

/// The exact two-sided test of `McNemar` (1947), which is the sign test over items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairedTest {
    /// The probability of so uneven a split, or a more uneven one, if neither way were better.
    pub p: f64,
    /// The same, with half of the probability of this very split (Lancaster 1961). It is less cautious than the exact one.
    pub mid_p: f64,
}

impl PairedTest {
    /// Tests a split into items on which one way is better and on which it is worse.
    #[must_use]
    pub fn new(better: u64, worse: u64) -> Self {
        let Ok(even) = Binomial::new(0.5, better + worse) else { return Self { p: 1.0, mid_p: 1.0 } };
        let less = better.min(worse);
        let tail = even.cdf(less);
        let mid = tail - 0.5 * even.pmf(less);
        Self { p: (2.0 * tail).min(1.0), mid_p: (2.0 * mid).min(1.0) }
    }
}

/// Returns the number of items that find a difference of `effect`, from 0 to 1, with a power of 80 % at a level of 5 %. `discordant` is
/// the share of items on which only one of the two ways is right (Connor 1987). Returns `None` if no number of items would: an effect of
/// 0 cannot be found, and one above the discordance cannot be. The number is whole.
#[must_use]
pub fn items_needed(discordant: f64, effect: f64) -> Option<f64> {
    let squared = effect * effect;
    let items = (QUANTILES * QUANTILES * (discordant - squared) / squared).ceil();
    (effect != 0.0 && effect.abs() <= discordant).then_some(items)
}

/// Returns the upper bound, with a risk of 2.5 %, on the share of items on which two ways differ that were alike on all of `items`.
#[must_use]
pub fn discordance_of_none(items: u64) -> f64 {
    super::clopper_pearson_upper(0, items, 0.025)
}

/// Returns the number of items, all of them alike, that bound the difference of two ways by `effect`, which is above 0 and below 1. The
/// number is whole.
#[must_use]
pub fn items_for_equivalence(effect: f64) -> f64 {
    (0.025_f64.ln() / (1.0 - effect).ln()).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_is_exact() {
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
    fn the_items_that_are_needed_are_those_of_the_formula() {
        for (discordant, effect, items) in
            [(0.1, 0.03, 865.0), (0.1, 0.05, 307.0), (0.2, 0.03, 1737.0), (0.2, 0.05, 621.0)]
        {
            assert_eq!(items_needed(discordant, effect), Some(items));
            assert_eq!(items_needed(discordant, -effect), Some(items));
        }
        assert_eq!(items_needed(0.1, 0.0), None);
        assert_eq!(items_needed(0.01, 0.03), None);
    }

    #[test]
    fn so_many_items_that_are_alike_bound_the_difference() {
        for (effect, items) in [(0.01, 368_u32), (0.02, 183), (0.05, 72)] {
            assert!((items_for_equivalence(effect) - f64::from(items)).abs() < 0.5);
            assert!(
                discordance_of_none(items.into()) <= effect
                    && discordance_of_none((items - 1).into()) > effect
            );
        }
    }
}
