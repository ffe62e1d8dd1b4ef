//! Numbers that must not leave the machine: cards, and addresses of machines.
//!
//! The input is a folded text. The output is places in it. Each trial examines a stretch of bounded length, so the time
//! is linear in the text, whatever its content. If the form says too little, a check decides, such as a check digit.

use core::net::IpAddr;
use std::ops::Range;

use super::folded::GAP_BYTE;
use super::places::{each, stands_alone};

/// The lengths of the shortest and the longest card number, in digits (ISO/IEC 7812-1).
const CARD_DIGITS: [usize; 2] = [13, 19];

/// Returns the places of card numbers.
pub(super) fn cards(text: &str) -> Vec<Range<usize>> {
    each(
        text,
        |byte| matches!(byte, b'2'..=b'6'),
        |start| {
            let length = card(&text[start..])?;
            stands_alone(text, start..start + length, false)
        },
    )
}

/// Returns the places of addresses of machines.
pub(super) fn addresses(text: &str) -> Vec<Range<usize>> {
    each(
        text,
        |byte| byte.is_ascii_hexdigit() || byte == b':',
        |start| {
            let length = address(&text[start..])?;
            stands_alone(text, start..start + length, true)
        },
    )
}

/// Returns the length of the longest number at the beginning of a text whose last digit is its check digit.
pub(super) fn card(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut mixer = luhn3::Mixer::default();
    let (mut count, mut at, mut whole) = (0, 0, None);
    while count < CARD_DIGITS[1] {
        // Every scheme prints its first four digits together.
        let is_apart = count > 3
            && match bytes.get(at) {
                Some(b' ' | b'.' | b'_' | b'-' | &GAP_BYTE) => true,
                // These signs are between numbers of other kinds as well, but seldom after every four digits.
                Some(b'/' | b',') => is_after_fourth(bytes, at),
                _ => false,
            };
        let next = at + usize::from(is_apart);
        let Some(digit) = bytes.get(next).filter(|byte| byte.is_ascii_digit()) else { break };
        mixer.push(digit - b'0');
        count += 1;
        at = next + 1;
        let is_end = !bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        if count >= CARD_DIGITS[0] && is_end && mixer.valid() {
            whole = Some(at);
        }
    }
    whole
}

/// Returns true if four digits are right before this place, and four right behind it.
fn is_after_fourth(bytes: &[u8], at: usize) -> bool {
    let (Some(start), Some(after)) = (at.checked_sub(4), bytes.get(at + 1..at + 5)) else { return false };
    bytes[start..at].iter().chain(after).all(u8::is_ascii_digit)
}

/// Returns the length of the address at the beginning of a text. An IPv6 address needs a decimal digit, and at least
/// three groups or one of three digits, because `a::b` and `[::2]` are more often parts of programs.
fn address(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let end = with_dots(bytes).or_else(|| with_colons(bytes))?;
    let text = text[..end].trim_end_matches('.');
    let is_one = match text.parse::<IpAddr>().ok()? {
        IpAddr::V4(_) => true,
        IpAddr::V6(_) => {
            let mut groups = text.split(':').filter(|group| !group.is_empty());
            text.bytes().any(|byte| byte.is_ascii_digit())
                && (groups.clone().count() >= 3 || groups.any(|group| group.len() >= 3))
        }
    };
    if is_one { Some(text.len()) } else { None }
}

/// Returns the end of four groups of up to three digits.
fn with_dots(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for group in 0..4 {
        if group > 0 {
            bytes.get(at).filter(|byte| **byte == b'.')?;
            at += 1;
        }
        let digits = bytes[at..].iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        at += digits;
    }
    Some(at)
}

/// Returns the end of three to eight groups of up to four hexadecimal digits.
fn with_colons(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut groups) = (0, 0);
    while groups < 7 {
        let digits = bytes[at..].iter().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count();
        if bytes.get(at + digits) != Some(&b':') {
            break;
        }
        at += digits + 1;
        groups += 1;
    }
    if groups < 2 {
        return None;
    }
    let last = bytes[at..].iter().take(15);
    Some(at + last.take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'.').count())
}
