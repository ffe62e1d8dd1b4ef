//! Exact decimal numbers, with just enough arithmetic to see that `4`, `4.0`, `+4` and `4e0` are one number.
//!
//! The input is a text, the sign before its decimals, and the groups of thousands that are read. The output is the
//! number, or the reason why the text is not a number and how its author may write it. Nothing is rounded. A text that
//! could mean two numbers is not read.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::escape;

/// The largest exponent, and the largest number of digits, that are expanded into plain notation.
const DIGITS_MAX: i64 = 1000;

/// The signs, besides the other decimal sign, that separate groups of digits in some places and are not read here.
const SEPARATORS: [char; 8] = [' ', '\u{a0}', '\u{2007}', '\u{2009}', '\u{202f}', '\'', '’', '_'];

/// The sign before the decimals of a number. The other sign may separate groups of thousands.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum DecimalSign {
    /// A point, as in `1,234.5`.
    #[serde(rename = ".")]
    Point,
    /// A comma, as in `1.234,5`.
    #[serde(rename = ",")]
    Comma,
}

/// The reason why a text is not one decimal number as it is wanted.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum NotANumber {
    /// The text is not a number in digits.
    #[error("it must be one decimal number in digits and nothing else: no words, no unit, no calculation")]
    NoNumber,
    /// The text could mean two numbers, because no rule names the decimal sign.
    #[error("`{written}` can be read in two ways; write `{whole}`, or `{decimal}` if decimals begin there")]
    Ambiguous {
        /// The text as written.
        written: String,
        /// The number without groups.
        whole: String,
        /// The number with decimals.
        decimal: String,
    },
    /// The text is a number only if its signs are read the other way round.
    #[error(
        "`{written}` is not read: decimals come after a {}, and thousands need no sign; write `{better}` if that is the number",
        .sign.word()
    )]
    OtherSign {
        /// The text as written.
        written: String,
        /// The sign before the decimals.
        sign: DecimalSign,
        /// The number that may be meant, in the form to write.
        better: String,
    },
    /// The digits of the text are in groups that are not read.
    #[error(
        "`{written}` is not read: no sign may stand between its digits so; write `{better}` if that is the number"
    )]
    Grouped {
        /// The text as written.
        written: String,
        /// The number that may be meant, in the form to write.
        better: String,
    },
}

/// A finite decimal number: a sign, digits without leading or trailing zeros, and an exponent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Decimal {
    negative: bool,
    /// The digits, without leading or trailing zeros; empty for zero.
    digits: String,
    /// The exponent: the number is `digits × 10^exponent`.
    exponent: i64,
}

/// The parts of a number as it is written, with its groups of thousands still in place.
struct NumberParts<'a> {
    negative: bool,
    whole: &'a str,
    /// The digits of the fraction, which may be empty.
    fraction: &'a str,
    exponent: i64,
}

impl DecimalSign {
    /// Returns the sign as a character.
    fn as_char(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }

    /// Returns the sign that may separate groups of thousands.
    fn other(self) -> Self {
        match self {
            Self::Point => Self::Comma,
            Self::Comma => Self::Point,
        }
    }

    /// Returns the name of the sign.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Comma => "comma",
        }
    }
}

impl<'a> NumberParts<'a> {
    /// Splits a text into the parts of a number, if that is possible.
    fn from_text(text: &'a str, sign: DecimalSign) -> Option<Self> {
        // U+2212 is the minus sign of typeset text.
        let (negative, unsigned) = match text.strip_prefix(['-', '−']) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once(sign.as_char()).unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() || !all_digits(fraction) {
            return None;
        }
        Some(Self { negative, whole, fraction, exponent })
    }
}

impl Decimal {
    /// Reads one number: an optional sign, digits, an optional fraction and an optional exponent. The digits may be in
    /// groups of thousands: one to three digits that do not begin with 0, then groups of three. Without a `decimal` sign, decimals
    /// follow a point, and a row with a single group, as in `1,234`, is refused, because its sign may be a decimal one.
    ///
    /// # Errors
    ///
    /// [`NotANumber`] for anything else, and for a number of more than 1000 digits.
    pub(crate) fn parse(text: &str, decimal: Option<DecimalSign>) -> Result<Self, NotANumber> {
        Self::read(text, decimal).ok_or_else(|| why_not(text, decimal.unwrap_or(DecimalSign::Point)))
    }

    fn read(text: &str, decimal: Option<DecimalSign>) -> Option<Self> {
        let sign = decimal.unwrap_or(DecimalSign::Point);
        let NumberParts { negative, whole, fraction, exponent } = NumberParts::from_text(text, sign)?;
        let between = sign.other().as_char();
        if decimal.is_none() && fraction.is_empty() && whole.matches(between).count() == 1 {
            return None;
        }
        let whole = join_groups(whole, between)?;
        let digits = format!("{whole}{fraction}");
        let exponent = exponent - i64::try_from(fraction.len()).ok()?;
        Self { negative, digits, exponent }.normalise()
    }

    /// Returns the number in plain notation, with this sign before its decimals.
    pub(crate) fn to_text(&self, sign: DecimalSign) -> String {
        let text = self.to_string();
        match sign {
            DecimalSign::Point => text,
            DecimalSign::Comma => text.replace('.', ","),
        }
    }

    /// Returns the number with at most this many significant digits, a half rounded away from zero.
    pub(crate) fn round(self, digits: usize) -> Self {
        let Some(dropped) = self.digits.len().checked_sub(digits).filter(|dropped| *dropped > 0) else {
            return self;
        };
        let (first, rest) = self.digits.split_at(digits);
        let is_up = rest.as_bytes()[0] >= b'5';
        let exponent = self.exponent + i64::try_from(dropped).unwrap_or(i64::MAX);
        let digits = if is_up { plus_one(first) } else { first.to_owned() };
        // Fewer digits are in range if more were.
        Self { negative: self.negative, digits, exponent }.normalise().unwrap_or(self)
    }

    fn normalise(mut self) -> Option<Self> {
        let digits = self.digits.trim_end_matches('0');
        self.exponent += i64::try_from(self.digits.len() - digits.len()).ok()?;
        let digits = digits.trim_start_matches('0').to_owned();
        self.digits = digits;
        if self.digits.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        let length = i64::try_from(self.digits.len()).ok()?;
        if self.exponent.abs() <= DIGITS_MAX && length <= DIGITS_MAX { Some(self) } else { None }
    }
}

/// Writes plain notation: no exponent, no `+`, no needless zeros.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.digits.is_empty() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        if self.exponent >= 0 {
            let zeros = "0".repeat(usize::try_from(self.exponent).unwrap_or(0));
            return write!(f, "{}{zeros}", self.digits);
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

/// Returns the next whole number.
fn plus_one(digits: &str) -> String {
    let rest = digits.trim_end_matches('9');
    let nines = digits.len() - rest.len();
    let head = match rest.as_bytes().split_last() {
        Some((last, head)) => format!("{}{}", String::from_utf8_lossy(head), char::from(last + 1)),
        None => "1".to_owned(),
    };
    head + &"0".repeat(nines)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn parse_exponent(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.is_empty() || unsigned.len() > 6 || !all_digits(unsigned) {
        return None;
    }
    text.parse().ok()
}

/// Joins `1,234,567`. Returns nothing if a sign is anywhere but between groups of three.
fn join_groups(whole: &str, between: char) -> Option<String> {
    let mut parts = whole.split(between);
    let first = parts.next()?;
    let grouped = whole.contains(between);
    let first_fits =
        all_digits(first) && (!grouped || (1..=3).contains(&first.len()) && !first.starts_with('0'));
    let rest_fits = parts.all(|group| group.len() == 3 && all_digits(group));
    if first_fits && rest_fits { Some(whole.replace(between, "")) } else { None }
}

/// Returns the reason why a text is not a number, and how to write it if the meaning is clear.
fn why_not(text: &str, sign: DecimalSign) -> NotANumber {
    let other = sign.other();
    // A sign at the end is not before decimals; it may end a sentence.
    let bare = text.strip_suffix(sign.as_char()).unwrap_or(text);
    let written = escape::excerpt(text);
    let whole = escape::excerpt(&bare.replace(other.as_char(), ""));
    let decimal = escape::excerpt(&swap_signs(bare, sign));
    let is_number = Decimal::read(bare, Some(sign)).is_some();
    let is_number_by_other = Decimal::read(bare, Some(other)).is_some();
    match (is_number, is_number_by_other) {
        (true, true) if whole != decimal => NotANumber::Ambiguous { written, whole, decimal },
        (true, _) => NotANumber::Grouped { written, better: whole },
        (false, true) => NotANumber::OtherSign { written, sign, better: decimal },
        (false, false) => {
            let better = without_separators(bare, sign)
                .or_else(|| without_separators(bare, other).map(|text| swap_signs(&text, sign)));
            match better {
                Some(better) => NotANumber::Grouped { written, better: escape::excerpt(&better) },
                None => NotANumber::NoNumber,
            }
        }
    }
}

/// Returns a number in which the other sign is before the decimals, with this sign there.
fn swap_signs(text: &str, sign: DecimalSign) -> String {
    let own = sign.as_char();
    text.replace(own, "").replace(sign.other().as_char(), &own.to_string())
}

/// Returns a number without the signs between its digits, if these signs are all alike and make groups of three. Groups
/// of two before a last group of three, as in India, are accepted too.
fn without_separators(text: &str, sign: DecimalSign) -> Option<String> {
    let other = sign.other().as_char();
    let separator = text.chars().find(|c| *c == other || SEPARATORS.contains(c))?;
    let groups: Vec<&str> = NumberParts::from_text(text, sign)?.whole.split(separator).collect();
    let (last, others) = groups.split_last()?;
    let (first, middle) = others.split_first()?;
    let is_row = [3, 2].iter().any(|digits| {
        (1..=*digits).contains(&first.len()) && middle.iter().all(|group| group.len() == *digits)
    });
    let joined = text.replace(separator, "");
    if !is_row || first.starts_with('0') || last.len() != 3 {
        return None;
    }
    if Decimal::read(&joined, Some(sign)).is_some() { Some(joined) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: [Option<DecimalSign>; 3] = [Some(DecimalSign::Point), Some(DecimalSign::Comma), None];

    fn read(text: &str, decimal: Option<DecimalSign>) -> Result<String, NotANumber> {
        let sign = decimal.unwrap_or(DecimalSign::Point);
        Decimal::parse(text, decimal).map(|number| number.to_text(sign))
    }

    fn canonical(text: &str) -> Option<String> {
        read(text, RULES[0]).ok()
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
            for rule in [RULES[0], RULES[2]] {
                assert!(read(text, rule).is_err(), "{text}: {rule:?}");
            }
        }
    }

    #[test]
    fn refusal_says_how_to_write_number() {
        let [point, comma, none] = RULES;
        for (rule, text, words) in [
            (
                point,
                "0,125",
                "`0,125` is not read: decimals come after a point, and thousands need no sign; write `0.125` if",
            ),
            (point, "-1.234,5e2", "write `-1234.5e2` if"),
            (point, "00,004", "write `00.004` if"),
            (comma, "0.125", "decimals come after a comma, and thousands need no sign; write `0,125` if"),
            (comma, "1,234,567", "write `1234567` if"),
            (
                none,
                "1,234",
                "`1,234` can be read in two ways; write `1234`, or `1.234` if decimals begin there",
            ),
            (none, "1,234.", "write `1234`, or `1.234` if"),
            (none, "0,125.", "write `0.125` if"),
            (point, "1 234", "`1 234` is not read: no sign may stand between its digits so; write `1234` if"),
            (point, "1’234’567.50", "write `1234567.50` if"),
            (comma, "12 345,5", "write `12345,5` if"),
            (none, "1,00,000.5", "write `100000.5` if"),
            (point, "1\u{202f}234,5", "write `1234.5` if"),
            (point, "5e3.", "write `5e3` if"),
            (point, "1 2", "no words"),
            (point, "0 125", "no words"),
            (point, "1 234'567", "no words"),
            (point, "12 34 567 8", "no words"),
        ] {
            let why = read(text, rule).unwrap_err().to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn groups_that_begin_with_zero_are_not_read() {
        for text in ["0,125", "0,004", "012,345", "-0,000.5"] {
            for rule in [RULES[0], RULES[2]] {
                assert!(read(text, rule).is_err(), "{text}: {rule:?}");
            }
        }
    }

    /// Texts that are numbers, or are nearly numbers.
    const NEARLY: &str = "[-+]?[0-9]{0,4}([.,' ]([0-9]{3}|[0-9]{0,4})){0,3}(e[0-9])?";

    proptest! {
        /// The form keeps the value of the number.
        #[test]
        fn canonical_form_is_fixed_point(n in any::<i64>(), scale in 0_u32..12) {
            let text = format!("{n}e-{scale}");
            let form = canonical(&text).unwrap();
            prop_assert_eq!(canonical(&form), Some(form.clone()));
            let shifted = canonical(&format!("{form}e{scale}")).unwrap();
            prop_assert_eq!(shifted, n.to_string());
        }

        #[test]
        fn every_rule_reads_its_own_forms_again(text in NEARLY, rule in prop::sample::select(RULES.to_vec())) {
            if let Ok(form) = read(&text, rule) {
                prop_assert_eq!(read(&form, rule), Ok(form.clone()));
            }
        }

        /// The same rule reads each form that a refusal suggests.
        #[test]
        fn suggested_number_is_read(text in NEARLY, rule in prop::sample::select(RULES.to_vec())) {
            let better = match read(&text, rule) {
                Ok(_) | Err(NotANumber::NoNumber) => vec![],
                Err(NotANumber::Ambiguous { whole, decimal, .. }) => vec![whole, decimal],
                Err(NotANumber::OtherSign { better, .. } | NotANumber::Grouped { better, .. }) => vec![better],
            };
            for text in better {
                prop_assert!(read(&text, rule).is_ok(), "{}", text);
            }
        }

        /// Without a rule, no text is read that a comma rule reads as another number, unless it has a point.
        #[test]
        fn unruled_reading_avoids_ambiguous_commas(text in NEARLY) {
            let [point, comma, none] = RULES;
            if let Ok(form) = read(&text, none) {
                prop_assert_eq!(read(&text, point), Ok(form.clone()));
                // A point is the decimal sign of this program, so only the meaning of commas is in doubt.
                if let Ok(other) = read(&text, comma).map(|form| form.replace(',', ".")) {
                    prop_assert!(other == form || text.contains('.'), "{} and {}", form, other);
                }
            }
        }
    }
}
