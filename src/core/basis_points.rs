//! Shares between 0 and 1 with exact arithmetic: confidences, weights, the threshold.
//!
//! Ten-thousandths, never floats: 0.25 × 0.85 + 0.45 × 0.85 + 0.30 × 0.85 is 0.85, and a threshold of 0.85
//! is reached by it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Ten-thousandths in one.
pub(crate) const TEN_THOUSANDTHS: u16 = 10_000;

/// A share between 0 and 1, in ten-thousandths.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct BasisPoints(u16);

impl BasisPoints {
    /// None of it.
    pub const ZERO: Self = Self(0);

    /// Returns the greatest share that is no more than `value`; none if it is not between 0 and 1.
    ///
    /// Never upwards: what was not reached is not reached by rounding.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        // Between 0 and 10,000, so that nothing is cut off.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        (0.0..=1.0).contains(&value).then(|| Self((value * f64::from(TEN_THOUSANDTHS) + 1e-9).floor() as u16))
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
        Self(if parts > TEN_THOUSANDTHS { TEN_THOUSANDTHS } else { parts })
    }

    /// Returns the share in ten-thousandths, 0 to 10,000.
    #[must_use]
    pub const fn ten_thousandths(self) -> u16 {
        self.0
    }

    /// Returns the share as a number.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(TEN_THOUSANDTHS)
    }
}

impl fmt::Display for BasisPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded down: what is shown never reaches what was not reached.
        write!(f, "{:.2}", (self.value() * 100.0 + 1e-9).floor() / 100.0)
    }
}

impl Serialize for BasisPoints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for BasisPoints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| serde::de::Error::custom(format!("{value} is not between 0 and 1")))
    }
}

/// Reads a share that a person has written; a model may write any number of digits, and none counts upwards.
pub(crate) fn exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BasisPoints, D::Error> {
    BasisPoints::exactly(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}
