//! Exact decimal numbers: enough arithmetic to say that `4`, `4.0`, `+4` and `4e0` are one number.

use std::fmt;

/// The largest exponent, and the largest number of digits, that is expanded into plain notation.
const DIGITS_MAX: i64 = 1000;

/// A finite decimal number as sign, digits and exponent, without leading or trailing zeros.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Decimal {
    negative: bool,
    /// Digits without leading or trailing zeros; empty for zero.
    digits: String,
    /// The number is `digits × 10^exponent`.
    exponent: i64,
}

impl Decimal {
    /// Reads one number: optional sign, digits with optional `,` between groups of three, optional
    /// fraction and exponent. Returns nothing for anything else, or beyond 1000 digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // U+2212 is the minus sign that typeset text uses.
        let (negative, unsigned) = match text.strip_prefix(['-', '−']) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = join_groups(whole)?;
        if whole.is_empty() && fraction.is_empty() || !all_digits(fraction) {
            return None;
        }
        let digits = format!("{whole}{fraction}");
        let exponent = exponent - i64::try_from(fraction.len()).ok()?;
        Self { negative, digits, exponent }.normalised()
    }

    fn normalised(mut self) -> Option<Self> {
        let kept = self.digits.trim_end_matches('0');
        self.exponent += i64::try_from(self.digits.len() - kept.len()).ok()?;
        let kept = kept.trim_start_matches('0').to_owned();
        self.digits = kept;
        if self.digits.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        let length = i64::try_from(self.digits.len()).ok()?;
        let in_range = self.exponent.abs() <= DIGITS_MAX && length <= DIGITS_MAX;
        in_range.then_some(self)
    }
}

/// Plain notation: no exponent, no `+`, no needless zeros.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.digits.is_empty() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or(0));
        if self.exponent >= 0 {
            return write!(f, "{}{}", self.digits, zeros(self.exponent));
        }
        let fraction = usize::try_from(-self.exponent).unwrap_or(0);
        match self.digits.len().checked_sub(fraction) {
            Some(at) if at > 0 => write!(f, "{}.{}", &self.digits[..at], &self.digits[at..]),
            Some(_) | None => {
                let missing = fraction - self.digits.len();
                write!(f, "0.{}{}", "0".repeat(missing), self.digits)
            }
        }
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn parse_exponent(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sane = !unsigned.is_empty() && unsigned.len() <= 6 && all_digits(unsigned);
    if !sane {
        return None;
    }
    text.parse().ok()
}

/// Joins `1,234,567`; a comma anywhere but between groups of three makes it no number.
fn join_groups(whole: &str) -> Option<String> {
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let grouped = whole.contains(',');
    let first_fits = all_digits(first) && (!grouped || (1..=3).contains(&first.len()));
    let rest_fits = groups.clone().all(|group| group.len() == 3 && all_digits(group));
    (first_fits && rest_fits).then(|| whole.replace(',', ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> Option<String> {
        Decimal::parse(text).map(|d| d.to_string())
    }

    #[test]
    fn equal_numbers_have_one_form() {
        for (texts, form) in [
            (&["4", "4.0", "+4", "4e0", "0004", "40e-1", "4."][..], "4"),
            (&["1000", "1,000", "1e3", "1000.000"][..], "1000"),
            (&["-0.05", "−.05", "-5e-2"][..], "-0.05"),
            (&["0", "-0", "0.000", "0e9"][..], "0"),
            (&["1234567.5", "1,234,567.50"][..], "1234567.5"),
        ] {
            for text in texts {
                assert_eq!(canonical(text).as_deref(), Some(form), "{text}");
            }
        }
    }

    #[test]
    fn anything_else_is_no_number() {
        for text in [
            "",
            "-",
            ".",
            "e5",
            "4 apples",
            "1,00",
            "10,00,000",
            ",100",
            "1,000,",
            "NaN",
            "inf",
            "1/3",
            "0x10",
            "1.2.3",
            "1e",
            "1e9999",
            "1e99999999999999999999",
            "٤",
            "--4",
            "4%",
            "1_000",
        ] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn canonical_form_is_a_fixed_point_and_keeps_the_value(n in any::<i64>(), scale in 0_u32..12) {
            let text = format!("{n}e-{scale}");
            let form = canonical(&text).unwrap();
            prop_assert_eq!(canonical(&form), Some(form.clone()));
            let shifted = canonical(&format!("{form}e{scale}")).unwrap();
            prop_assert_eq!(shifted, n.to_string());
        }
    }
}
