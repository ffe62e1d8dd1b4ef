//! Phone numbers in their international form, as ITU-T E.123 writes them: behind `+`, or behind `00`.
//!
//! The input is a folded text. The output is places in it. Each trial examines a stretch of bounded length, so the time is linear in the
//! text, whatever its content.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::folded::GAP;
use super::forms::regex;
use super::places::{each, stands_alone};

/// The fewest and the most digits of a phone number. ITU-T E.164 allows 15; below 8 there are too many other numbers.
const PHONE_DIGITS: [usize; 2] = [8, 15];

/// A phone number behind the sign or the digits with which international calls begin.
const PHONE: &str = r"(?x) \A (?:
    \+[1-9][0-9]{0,2}(?:[\ ./-]{0,2}\(?[0-9]{1,8}\)?){1,7}
    | 00\ ?[1-9][0-9]{0,2}[\ ./-]?\(?[1-9][0-9]{0,8}\)?(?:[\ ./-]?[0-9]{1,8}){0,6} )";

/// Returns the places of phone numbers, and of the rest of a number whose beginning the number before it has swallowed.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(PHONE));
    let is_first = |byte: u8| matches!(byte, b'+' | b'0');
    let found = each(text, is_first, |start| {
        let rest = &text[start..];
        let form = may_be_phone(rest.as_bytes()).then(|| FORM.find(rest)).flatten()?;
        let length = phone(form.as_str())?;
        stands_alone(text, start..start + length, false)
    });
    let mut run = Run::default();
    let swallowed: Vec<_> = found.iter().filter_map(|place| run.swallowed(text, place.end)).collect();
    [found, swallowed].concat()
}

/// Returns true if the first bytes of a text are those of a form of phone numbers.
fn may_be_phone(bytes: &[u8]) -> bool {
    match bytes.first() {
        Some(b'+') => matches!(bytes.get(1), Some(b'1'..=b'9')),
        Some(b'0') => bytes.get(1) == Some(&b'0'),
        Some(_) | None => false,
    }
}

/// Returns the length of the longest beginning that has the digits of a phone number and does not end inside a group.
fn phone(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut digits, mut whole) = (0, None);
    for (at, byte) in bytes.iter().enumerate() {
        if byte.is_ascii_digit() {
            digits += 1;
        } else if *byte != b')' {
            continue;
        }
        let is_end = !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if is_end && (PHONE_DIGITS[0]..=PHONE_DIGITS[1]).contains(&digits) {
            whole = Some(at + 1);
        }
    }
    whole
}

/// Returns the length of a phone number, if so few of its digits are before the gap that they are hardly all of them.
pub(super) fn torn_phone(text: &str) -> Option<usize> {
    let (before, _) = text.split_once(GAP)?;
    let digits = before.bytes().filter(u8::is_ascii_digit).count();
    (digits <= PHONE_DIGITS[0]).then(|| phone(text)).flatten()
}

/// A run of digits and the signs between them, measured once for all numbers in it.
#[derive(Default)]
struct Run {
    end: usize,
    /// The end of its last number that is not part of a word.
    last: usize,
}

impl Run {
    /// Returns the place of the rest of a second phone number, whose beginning the number that ends here has swallowed.
    fn swallowed(&mut self, text: &str, end: usize) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        let start = end + usize::from(matches!(bytes.get(end), Some(b' ' | b'.' | b'/' | b'-')));
        bytes.get(start).filter(|byte| byte.is_ascii_digit())?;
        if start >= self.end {
            self.measure(text, start);
        }
        let place = start..self.last.max(start);
        // Nearly all runs are short. No more of a long run is examined than the decision needs.
        let digits = bytes[place.clone()].iter().filter(|byte| byte.is_ascii_digit());
        let count = digits.take(PHONE_DIGITS[1] + 1).count();
        (5..=PHONE_DIGITS[1]).contains(&count).then_some(place)
    }

    fn measure(&mut self, text: &str, start: usize) {
        let is_inside = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'.' | b'/' | b'-');
        let rest = &text.as_bytes()[start..];
        let length = rest.iter().position(|byte| !is_inside(byte)).unwrap_or(rest.len());
        self.end = start + length;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let goes_on = text[self.end..].chars().next().is_some_and(is_word);
        let run = &text[start..self.end];
        let run = if goes_on { run.trim_end_matches(|c: char| c.is_ascii_digit()) } else { run };
        self.last = start + run.trim_end_matches(|c: char| !c.is_ascii_digit()).len();
    }
}
