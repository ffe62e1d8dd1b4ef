//! The lead of the first answer over the second, and the exact probability that it is the more frequent one.
//!
//! The input is two counts of votes. The output is a fraction, and whether it reaches a threshold. There is no float, so that `verify`
//! derives every stop again.

use std::cmp::Ordering;

use serde::{Serialize, Serializer};

use crate::core::BasisPoints;

/// The most votes for which the fraction fits: its numerator times 10,000 is below 2^128.
pub const VOTES_MAX: u32 = 100;

/// The number of votes for the answer with the most, and for the one after it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Lead {
    /// The votes for the leading answer.
    pub leader: u32,
    /// The votes for the answer after it; 0 without one.
    pub runner_up: u32,
}

/// A fraction whose denominator is a power of two, between 0 and 1. It is written such as `15/16`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fraction {
    numerator: u128,
    /// The exponent of the denominator.
    twos: u32,
}

impl Lead {
    /// Returns the probability that the leading answer is the more frequent of the two, after these votes and with a uniform prior.
    ///
    /// For a and b votes it is P(Bin(a + b + 1, ½) ≥ b + 1). The source is the stop by a beta distribution in Aggarwal et al., "Let's
    /// Sample Step by Step" (arXiv 2305.11860).
    ///
    /// The two counts are at most [`VOTES_MAX`] together.
    pub fn certainty(self) -> Fraction {
        let (a, b) = (u128::from(self.leader), u128::from(self.runner_up));
        let n = a + b + 1;
        let (mut numerator, mut binomial) = (0, 1);
        // The binomial coefficients of n, from 0 to n.
        for k in 0..=n {
            if k > b {
                numerator += binomial;
            }
            binomial = binomial * (n - k) / (k + 1);
        }
        Fraction { numerator, twos: self.leader + self.runner_up + 1 }.reduce()
    }

    /// Returns the fewest further votes for the leading answer with which the lead is at least this certain, or `left` if these do not
    /// suffice.
    pub(crate) fn fewest_until(self, share: BasisPoints, left: usize) -> usize {
        for further in 1..left {
            let leader = self.leader.saturating_add(u32::try_from(further).unwrap_or(u32::MAX));
            if (Self { leader, ..self }).certainty().reaches(share) {
                return further;
            }
        }
        left
    }
}

impl Fraction {
    /// Returns true if the fraction is at least this share.
    pub fn reaches(self, share: BasisPoints) -> bool {
        self.numerator * 10_000 >= u128::from(share.ten_thousandths()) << self.twos
    }

    /// Returns the fraction as a number, for people.
    #[expect(clippy::cast_precision_loss, reason = "the number is for people")]
    pub fn value(self) -> f64 {
        self.numerator as f64 / (1_u128 << self.twos) as f64
    }

    /// Returns the numerator over a denominator of two to the power of `twos`, which must be at least its own.
    fn numerator_over(self, twos: u32) -> u128 {
        self.numerator << (twos - self.twos)
    }

    fn reduce(self) -> Self {
        let shared = self.numerator.trailing_zeros().min(self.twos);
        Self { numerator: self.numerator >> shared, twos: self.twos - shared }
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        let twos = self.twos.max(other.twos);
        self.numerator_over(twos).cmp(&other.numerator_over(twos))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}/{}", self.numerator, 1_u128 << self.twos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn certainty(leader: u32, runner_up: u32) -> Fraction {
        Lead { leader, runner_up }.certainty()
    }

    /// The same probability by another way: a row of Pascal's triangle, in natural numbers of any size. Returns the numerator and the
    /// exponent of the denominator.
    fn by_pascal(leader: u32, runner_up: u32) -> (Vec<u8>, u32) {
        let n = (leader + runner_up + 1) as usize;
        let mut row = vec![vec![1_u8]];
        for _ in 0..n {
            let mut next = vec![vec![1]];
            next.extend(row.windows(2).map(|two| sum(&two[0], &two[1])));
            next.push(vec![1]);
            row = next;
        }
        let above = row[runner_up as usize + 1..].iter().fold(vec![0], |total, term| sum(&total, term));
        (above, leader + runner_up + 1)
    }

    /// Adds two numbers in decimal digits, the last digit first.
    fn sum(one: &[u8], other: &[u8]) -> Vec<u8> {
        let digit = |of: &[u8], at: usize| of.get(at).copied().unwrap_or_default();
        let (mut digits, mut carry) = (Vec::new(), 0);
        for at in 0..one.len().max(other.len()) {
            let all = digit(one, at) + digit(other, at) + carry;
            digits.push(all % 10);
            carry = all / 10;
        }
        if carry > 0 {
            digits.push(carry);
        }
        digits
    }

    fn written(digits: &[u8]) -> String {
        digits.iter().rev().map(u8::to_string).collect()
    }

    proptest! {
        /// The fraction equals a sum in numbers of any size.
        #[test]
        fn certainty_fraction_equals_exact_sum(leader in 0..=60_u32, runner_up in 0..=40_u32) {
            prop_assume!(leader >= runner_up);
            let Fraction { numerator, twos } = certainty(leader, runner_up);
            let (above, exponent) = by_pascal(leader, runner_up);
            // The fraction is reduced; the sum is not.
            prop_assert_eq!((numerator << (exponent - twos)).to_string(), written(&above));
        }

        /// A vote for the other answer lowers the certainty.
        #[test]
        fn votes_for_leader_raise_certainty(leader in 1..60_u32, runner_up in 0..39_u32) {
            prop_assume!(leader > runner_up);
            prop_assert!(certainty(leader + 1, runner_up) > certainty(leader, runner_up));
            prop_assert!(certainty(leader, runner_up + 1) < certainty(leader, runner_up));
        }
    }

    #[test]
    fn the_figures_of_the_table_are_met() {
        for (leader, runner_up, text) in [
            (0, 0, "1/2"),
            (1, 0, "3/4"),
            (1, 1, "1/2"),
            (2, 0, "7/8"),
            (3, 0, "15/16"),
            (4, 1, "57/64"),
            (8, 2, "1981/2048"),
        ] {
            assert_eq!(serde_json::to_value(certainty(leader, runner_up)).unwrap(), text);
        }
    }

    /// The votes are the fewest with which a leader reaches a threshold.
    #[test]
    fn least_votes_match_the_table() {
        let least = |threshold: u16, runner_up: u32| {
            let share = BasisPoints::of_ten_thousand(threshold);
            (runner_up..=VOTES_MAX - runner_up).find(|leader| certainty(*leader, runner_up).reaches(share))
        };
        let of = |threshold| [0, 1, 2, 3, 4].map(|runner_up| least(threshold, runner_up).unwrap());
        assert_eq!((of(9_500), of(9_000)), ([4, 6, 8, 9, 11], [3, 5, 6, 8, 9]));
        // The largest counts do not overflow.
        assert!(certainty(VOTES_MAX, 0).reaches(BasisPoints::of_ten_thousand(9_999)));
        assert!(!certainty(VOTES_MAX / 2, VOTES_MAX / 2).reaches(BasisPoints::of_ten_thousand(5_001)));
    }
}
