//! Shares between 0 and 1 in exact arithmetic, for confidences, weights and thresholds.
//!
//! A share is a whole number of ten-thousandths, never a float: 0.25 × 0.85 + 0.45 × 0.85 + 0.30 × 0.85 is exactly
//! 0.85, so it reaches a threshold of 0.85.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of ten-thousandths in one.
pub(crate) const TEN_THOUSANDTHS: u16 = 10_000;

/// A share between 0 and 1, in ten-thousandths.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct BasisPoints(u16);

impl BasisPoints {
    /// The empty share, 0.
    pub const ZERO: Self = Self(0);

    /// Returns the greatest share that is not above `value`, or `None` if `value` is not between 0 and 1.
    ///
    /// The value is never rounded up, so rounding cannot make it reach a threshold.
    pub fn new(value: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&value) {
            return None;
        }
        // The value is between 0 and 10,000, so the cast loses nothing.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        let parts = (value * f64::from(TEN_THOUSANDTHS) + 1e-9).floor() as u16;
        Some(Self(parts))
    }

    /// Returns the share that is exactly `value`. Values that people write are read with this.
    ///
    /// # Errors
    ///
    /// A message if `value` is not between 0 and 1, or is finer than a ten-thousandth.
    pub fn exactly(value: f64) -> Result<Self, String> {
        let share = Self::new(value).ok_or_else(|| format!("{value} is not between 0 and 1"))?;
        // The double that is nearest to a ten-thousandth is never farther away than this.
        if (share.value() - value).abs() > 1e-12 {
            return Err(format!("{value} has more than four digits after the decimal point"));
        }
        Ok(share)
    }

    /// Returns a share of `parts` ten-thousandths, capped at the whole.
    pub const fn of_ten_thousand(parts: u16) -> Self {
        Self(if parts > TEN_THOUSANDTHS { TEN_THOUSANDTHS } else { parts })
    }

    /// Returns the share in ten-thousandths, 0 to 10,000.
    pub const fn ten_thousandths(self) -> u16 {
        self.0
    }

    /// Returns the share as a number.
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(TEN_THOUSANDTHS)
    }
}

impl fmt::Display for BasisPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded down, so that a displayed share never reaches a threshold that the real one missed.
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

/// Reads a share that a person wrote, and refuses extra digits. A model's share may have any number of digits; they
/// never round it up.
pub(crate) fn exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BasisPoints, D::Error> {
    BasisPoints::exactly(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}
