//! Two ways on the same items: the exact test of whether one is better.
//!
//! The input is the number of items on which the first way is better, and on which it is worse. Items on which both are alike say nothing
//! about which is better, and are in no test. The output is a probability.

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// Returns the probability of so uneven a split, or a more uneven one, if neither way were better. This is the exact two-sided sign test
/// over items, which for one run per item is the exact test of `McNemar` (1947).
#[must_use]
pub fn sign_test(better: u64, worse: u64) -> f64 {
    let tail = Binomial::new(0.5, better + worse).map(|even| even.cdf(better.min(worse)));
    tail.map_or(1.0, |tail| (2.0 * tail).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_test_is_exact() {
        // From R: binom.test(c(b, c))$p.value.
        for (better, worse, p) in
            [(5, 0, 0.0625), (10, 2, 0.038_574), (33, 15, 0.013_283), (38, 36, 0.907_561), (0, 0, 1.0)]
        {
            assert!((sign_test(better, worse) - p).abs() < 1e-6, "{better} {worse}");
            assert!((sign_test(worse, better) - p).abs() < 1e-6, "{worse} {better}");
        }
    }
}
