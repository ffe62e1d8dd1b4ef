//! Shares between 0 and 1 with exact arithmetic: confidences, weights, the threshold.
//!
//! Ten-thousandths, never floats: 0.25 × 0.85 + 0.45 × 0.85 + 0.30 × 0.85 is 0.85, and a threshold of 0.85
//! is reached by it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Ten-thousandths in one.
const ONE: u16 = 10_000;

/// A share between 0 and 1, in ten-thousandths.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Share(u16);

impl Share {
    /// None of it.
    pub const ZERO: Self = Self(0);

    /// Returns the greatest share that is no more than `value`; none if it is not between 0 and 1.
    ///
    /// Never upwards: what was not reached is not reached by rounding.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        // Between 0 and 10,000, so that nothing is cut off.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        (0.0..=1.0).contains(&value).then(|| Self((value * f64::from(ONE) + 1e-9).floor() as u16))
    }

    /// Returns the share that is `value`, for what people write.
    ///
    /// # Errors
    ///
    /// In words, if it is not between 0 and 1, or finer than ten-thousandths.
    pub fn exactly(value: f64) -> Result<Self, String> {
        let share = Self::new(value).ok_or_else(|| format!("{value} is not between 0 and 1"))?;
        // No double near a ten-thousandth is farther away from it.
        if (share.value() - value).abs() > 1e-12 {
            return Err(format!("{value} has more than four digits behind the point"));
        }
        Ok(share)
    }

    /// Returns a share of so many ten-thousandths; more than all of them are all of them.
    #[must_use]
    pub const fn of_ten_thousand(parts: u16) -> Self {
        Self(if parts > ONE { ONE } else { parts })
    }

    /// Returns the share in ten-thousandths, 0 to 10,000.
    #[must_use]
    pub const fn ten_thousandths(self) -> u16 {
        self.0
    }

    /// Returns the share as a number.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded down: what is shown never reaches what was not reached.
        write!(f, "{:.2}", (self.value() * 100.0 + 1e-9).floor() / 100.0)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| serde::de::Error::custom(format!("{value} is not between 0 and 1")))
    }
}

/// Reads a share that a person has written; a model may write any number of digits, and none counts upwards.
pub(crate) fn exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
    Share::exactly(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// What each agent's confidence counts; the three sum to 1.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Understanding what is meant.
    #[serde(deserialize_with = "exactly")]
    pub pathos: Share,
    /// The answer's quality.
    #[serde(deserialize_with = "exactly")]
    pub logos: Share,
    /// Truth and safety.
    #[serde(deserialize_with = "exactly")]
    pub ethos: Share,
}

impl Default for Weights {
    fn default() -> Self {
        Self { pathos: Share(2_500), logos: Share(4_500), ethos: Share(3_000) }
    }
}

impl Weights {
    /// Returns the weights nearest to these, which are of Pathos, Logos and Ethos; none, if they do not sum to 1
    /// within a millionth, or one is not between 0 and 1. What rounding leaves over goes to the greatest.
    #[must_use]
    pub fn nearest(exact: [f64; 3]) -> Option<Self> {
        if (exact.iter().sum::<f64>() - 1.0).abs() > 1e-6 {
            return None;
        }
        let [mut pathos, mut logos, mut ethos] =
            [Share::new(exact[0])?, Share::new(exact[1])?, Share::new(exact[2])?];
        let sum = i32::from(pathos.0) + i32::from(logos.0) + i32::from(ethos.0);
        let left = i16::try_from(i32::from(ONE) - sum).ok()?;
        let greatest = [&mut pathos, &mut logos, &mut ethos].into_iter().max_by_key(|share| share.0)?;
        greatest.0 = greatest.0.checked_add_signed(left)?;
        Some(Self { pathos, logos, ethos })
    }

    /// Returns Σ weight × confidence.
    #[must_use]
    pub fn aggregate(&self, confidences: Confidences) -> Aggregate {
        let product = |weight: Share, confidence: Share| u32::from(weight.0) * u32::from(confidence.0);
        Aggregate(
            product(self.pathos, confidences.pathos)
                + product(self.logos, confidences.logos)
                + product(self.ethos, confidences.ethos),
        )
    }

    /// Returns what the three sum to, in ten-thousandths.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        u32::from(self.pathos.0) + u32::from(self.logos.0) + u32::from(self.ethos.0) == u32::from(ONE)
    }
}

/// The three agents' confidences in one round.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Confidences {
    /// That it knows what is meant.
    pub pathos: Share,
    /// That the answer is good.
    pub logos: Share,
    /// That the answer is true and breaks no rule.
    pub ethos: Share,
}

/// Σ weight × confidence, exact.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Aggregate(u32);

impl Aggregate {
    /// Whether it is the threshold or more.
    #[must_use]
    pub fn reaches(self, threshold: Share) -> bool {
        self.0 >= u32::from(threshold.0) * u32::from(ONE)
    }

    /// Returns it as a number between 0 and 1.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from(self.0) / (f64::from(ONE) * f64::from(ONE))
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded down: what is shown never reaches what was not reached.
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

    fn share(value: f64) -> Share {
        Share::new(value).unwrap()
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
        // 0.896, rounded down.
        assert_eq!(weights.aggregate(mixed).to_string(), "0.89");
    }

    #[test]
    fn what_is_no_share_is_none() {
        for bad in [f64::NAN, f64::INFINITY, -1.0, -0.001, 1.000_1, 1e308] {
            assert_eq!(Share::new(bad), None, "{bad}");
        }
        for bad in ["\"high\"", "1e309", "-1", "NaN", "null", "2"] {
            assert!(serde_json::from_str::<Share>(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn an_aggregate_lies_between_the_least_and_the_greatest_confidence(
            pathos in 0_u16..=10_000, logos in 0_u16..=10_000, a in 0.0..=1.0_f64, b in 0.0..=1.0_f64, c in 0.0..=1.0_f64,
        ) {
            let (low, high) = (pathos.min(logos), pathos.max(logos));
            let weights = Weights { pathos: Share(low), logos: Share(high - low), ethos: Share(ONE - high) };
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
            let before = Confidences { pathos: Share(a), logos: Share(b), ethos: Share(a) };
            let after = Confidences { ethos: Share(a + 1), ..before };
            prop_assert!(weights.aggregate(after) > weights.aggregate(before));
        }
    }
}
