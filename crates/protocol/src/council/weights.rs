//! The weights of the three agents, and the aggregate of their confidences.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::core::{BasisPoints, TEN_THOUSANDTHS, exactly};

/// The weight of each agent's confidence; the three sum to 1.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// The weight of the confidence that the intent is understood.
    #[serde(deserialize_with = "exactly")]
    pub pathos: BasisPoints,
    /// The weight of the confidence in the answer's quality.
    #[serde(deserialize_with = "exactly")]
    pub logos: BasisPoints,
    /// The weight of the confidence in truth and safety.
    #[serde(deserialize_with = "exactly")]
    pub ethos: BasisPoints,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            pathos: BasisPoints::of_ten_thousand(2_500),
            logos: BasisPoints::of_ten_thousand(4_500),
            ethos: BasisPoints::of_ten_thousand(3_000),
        }
    }
}

impl Weights {
    /// Returns weights close to these numbers for Pathos, Logos and Ethos. Each number is rounded down to a ten-thousandth, and the
    /// remainder goes to the greatest weight. The result is `None` if the numbers do not sum to 1 within a millionth, or if one of them
    /// is not between 0 and 1.
    pub fn nearest(exact: [f64; 3]) -> Option<Self> {
        if (exact.iter().sum::<f64>() - 1.0).abs() > 1e-6 {
            return None;
        }
        let [mut pathos, mut logos, mut ethos] =
            [BasisPoints::new(exact[0])?, BasisPoints::new(exact[1])?, BasisPoints::new(exact[2])?];
        let sum = i32::from(pathos.ten_thousandths())
            + i32::from(logos.ten_thousandths())
            + i32::from(ethos.ten_thousandths());
        let remainder = i16::try_from(i32::from(TEN_THOUSANDTHS) - sum).ok()?;
        let greatest =
            [&mut pathos, &mut logos, &mut ethos].into_iter().max_by_key(|share| share.ten_thousandths())?;
        *greatest = BasisPoints::of_ten_thousand(greatest.ten_thousandths().checked_add_signed(remainder)?);
        Some(Self { pathos, logos, ethos })
    }

    /// Returns the sum of weight × confidence over the three agents.
    pub fn aggregate(&self, confidences: Confidences) -> Aggregate {
        let mut sum = 0;
        for (weight, confidence) in [
            (self.pathos, confidences.pathos),
            (self.logos, confidences.logos),
            (self.ethos, confidences.ethos),
        ] {
            sum += u32::from(weight.ten_thousandths()) * u32::from(confidence.ten_thousandths());
        }
        Aggregate(sum)
    }

    /// Returns whether the three sum to 1.
    pub fn is_whole(&self) -> bool {
        u32::from(self.pathos.ten_thousandths())
            + u32::from(self.logos.ten_thousandths())
            + u32::from(self.ethos.ten_thousandths())
            == u32::from(TEN_THOUSANDTHS)
    }
}

/// The three agents' confidences in one round.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Confidences {
    /// The confidence of Pathos that it knows the intent.
    pub pathos: BasisPoints,
    /// The confidence of Logos that the answer is good.
    pub logos: BasisPoints,
    /// The confidence of Ethos that the answer is true and breaks no rule.
    pub ethos: BasisPoints,
}

/// The exact sum of weight × confidence.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Aggregate(u32);

impl Aggregate {
    /// Returns whether the aggregate is at least the threshold.
    pub fn reaches(self, threshold: BasisPoints) -> bool {
        self.0 >= u32::from(threshold.ten_thousandths()) * u32::from(TEN_THOUSANDTHS)
    }

    /// Returns the aggregate as a number between 0 and 1.
    pub fn value(self) -> f64 {
        f64::from(self.0) / (f64::from(TEN_THOUSANDTHS) * f64::from(TEN_THOUSANDTHS))
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is rounded down, so that the display never reaches a threshold that the aggregate misses.
        write!(f, "{:.2}", (self.value() * 100.0 + 1e-9).floor() / 100.0)
    }
}

impl Serialize for Aggregate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(value: f64) -> BasisPoints {
        BasisPoints::new(value).unwrap()
    }

    fn all(value: f64) -> Confidences {
        Confidences { pathos: share(value), logos: share(value), ethos: share(value) }
    }

    #[test]
    fn the_threshold_is_reached_at_equality() {
        let weights = Weights::default();
        assert!(weights.aggregate(all(0.85)).reaches(share(0.85)));
        assert!(!weights.aggregate(all(0.8499)).reaches(share(0.85)));
        assert!(weights.aggregate(all(1.0)).reaches(share(1.0)));
        let mixed = Confidences { pathos: share(0.92), logos: share(0.88), ethos: share(0.90) };
        // The aggregate is 0.896, and its display is rounded down.
        assert_eq!(weights.aggregate(mixed).to_string(), "0.89");
    }

    #[test]
    fn number_that_is_no_share_is_refused() {
        for bad in [f64::NAN, f64::INFINITY, -1.0, -0.001, 1.000_1, 1e308] {
            assert_eq!(BasisPoints::new(bad), None, "{bad}");
        }
        for bad in ["\"high\"", "1e309", "-1", "NaN", "null", "2"] {
            assert!(serde_json::from_str::<BasisPoints>(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        /// The aggregate lies between the least and the greatest confidence.
        #[test]
        fn aggregate_lies_between_confidences(
            pathos in 0_u16..=10_000, logos in 0_u16..=10_000, a in 0.0..=1.0_f64, b in 0.0..=1.0_f64, c in 0.0..=1.0_f64,
        ) {
            let (low, high) = (pathos.min(logos), pathos.max(logos));
            let weights = Weights { pathos: BasisPoints::of_ten_thousand(low), logos: BasisPoints::of_ten_thousand(high - low), ethos: BasisPoints::of_ten_thousand(TEN_THOUSANDTHS - high) };
            prop_assert!(weights.is_whole());
            let given = Confidences { pathos: share(a), logos: share(b), ethos: share(c) };
            let mut sorted = [given.pathos, given.logos, given.ethos];
            sorted.sort();
            let aggregate = weights.aggregate(given);
            prop_assert!(aggregate.reaches(sorted[0]));
            prop_assert!(aggregate.value() <= sorted[2].value() + 1e-12);
        }

        #[test]
        fn more_confidence_never_lowers_the_aggregate(a in 0_u16..10_000, b in 0_u16..=10_000) {
            let weights = Weights::default();
            let before = Confidences { pathos: BasisPoints::of_ten_thousand(a), logos: BasisPoints::of_ten_thousand(b), ethos: BasisPoints::of_ten_thousand(a) };
            let after = Confidences { ethos: BasisPoints::of_ten_thousand(a + 1), ..before };
            prop_assert!(weights.aggregate(after) > weights.aggregate(before));
        }
    }
}
