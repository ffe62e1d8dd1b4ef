//! Phone numbers in their international form, as ITU-T E.123 writes them: behind `+`, or behind `00`.
//!
//! The input is a folded text. The output is places in it. Each trial examines a stretch of bounded length, so the time is linear in the
//! text, whatever its content.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::folded::GAP;
use super::places::{each, regex, stands_alone};

/// The fewest and the most digits of a phone number. ITU-T E.164 allows 15; below 8 there are too many other numbers.
const PHONE_DIGITS: [usize; 2] = [8, 15];

/// A phone number behind the sign or the digits with which international calls begin.
const PHONE: &str = r"(?x) \A (?:
    \+[1-9][0-9]{0,2}(?:[\ ./-]{0,2}\(?[0-9]{1,8}\)?){1,7}
    | 00\ ?[1-9][0-9]{0,2}[\ ./-]?\(?[1-9][0-9]{0,8}\)?(?:[\ ./-]?[0-9]{1,8}){0,6} )";

/// Returns the places of phone numbers, and of the rest of a number whose beginning the number before it has swallowed.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(PHONE));
    let mut found = each(
        text,
        |byte| matches!(byte, b'+' | b'0'),
        |start| {
            let rest = &text[start..];
            if !may_be_phone(rest.as_bytes()) {
                return None;
            }
            let length = phone(FORM.find(rest)?.as_str())?;
            stands_alone(text, start..start + length, false)
        },
    );
    let swallowed = find_swallowed(text, &found);
    found.extend(swallowed);
    found
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
    if digits <= PHONE_DIGITS[0] { phone(text) } else { None }
}

/// Returns the places of the rest of second phone numbers, whose beginning the number before them has swallowed.
fn find_swallowed(text: &str, found: &[Range<usize>]) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut swallowed = Vec::new();
    // A run of digits and the signs between them is measured once for all numbers in it.
    let (mut run_end, mut last) = (0, 0);
    for place in found {
        let is_apart = matches!(bytes.get(place.end), Some(b' ' | b'.' | b'/' | b'-'));
        let start = place.end + usize::from(is_apart);
        if !bytes.get(start).is_some_and(u8::is_ascii_digit) {
            continue;
        }
        if start >= run_end {
            (run_end, last) = measure_run(text, start);
        }
        let rest = start..last.max(start);
        // Nearly all runs are short. No more of a long run is examined than the decision needs.
        let digits = bytes[rest.clone()].iter().filter(|byte| byte.is_ascii_digit());
        let count = digits.take(PHONE_DIGITS[1] + 1).count();
        if (5..=PHONE_DIGITS[1]).contains(&count) {
            swallowed.push(rest);
        }
    }
    swallowed
}

/// Returns the end of a run, and the end of its last number that is not part of a word.
fn measure_run(text: &str, start: usize) -> (usize, usize) {
    let bytes = &text.as_bytes()[start..];
    let signs =
        bytes.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b' ' | b'.' | b'/' | b'-'));
    let end = start + signs.count();
    let run = &text[start..end];
    let continues = text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let run = if continues { run.trim_end_matches(|c: char| c.is_ascii_digit()) } else { run };
    (end, start + run.trim_end_matches(|c: char| !c.is_ascii_digit()).len())
}
