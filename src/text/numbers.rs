//! Numbers that must not leave the machine: bank accounts, cards, addresses of machines, and phones.
//!
//! In: a folded text. Out: places in it. A number is tried only where one may begin, which is hardly ever inside a word or
//! a longer number, and one trial looks at a stretch of bounded length. The time is therefore linear in the text,
//! whatever it says. Where the form says too little, a check decides, such as a check digit.

use core::net::IpAddr;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::folded::GAP;

/// What stands for a gap, as a byte.
const GAP_BYTE: u8 = 0x1F;

/// The digits of the shortest and the longest card number (ISO/IEC 7812-1).
const CARD_DIGITS: [usize; 2] = [13, 19];

/// The characters of the shortest and the longest bank account number (ISO 13616).
const IBAN_CHARS: [usize; 2] = [15, 34];

/// ITU-T E.164 allows 15 digits; below 8 there are too many other numbers.
const PHONE_DIGITS: [usize; 2] = [8, 15];

/// Phone numbers in international form, and in national forms that are hardly ever anything else.
const PHONE: &str = r"(?x) \A (?:
    \+[1-9][0-9]{0,2}(?:[\ ./-]{0,2}\(?[0-9]{1,8}\)?){1,7}
    | 00\ ?[1-9][0-9]{0,2}[\ ./-]?\(?[1-9][0-9]{0,8}\)?(?:[\ ./-]?[0-9]{1,8}){0,6}
    | \(0?[0-9]{2,4}\)[\ -]?[0-9]{3,4}[\ -]?[0-9]{3,5}
    | 0[1-9][0-9]{7,9}
    | 0[1-9][0-9]{0,3}[\ /-][0-9]{2,4}(?:[\ -]?[0-9]{2,4}){1,3}
    | 0[1-9](?:\.[0-9]{2}){4}
    | 8[\ -]?\([0-9]{3}\)[\ -]?[0-9]{3}[\ -]?[0-9]{2}[\ -]?[0-9]{2}
    | (?:1[\ .-])?[2-9][0-9]{2}[\ .-][0-9]{3}[\ .-][0-9]{4} )";

/// A card number that a gap may tear: a column of numbers is no card.
const TORN_CARD: &str = r"(?x) \A (?:
    [2-6][0-9]{3}(?:[\ .\x1F-]?[0-9]{4}){3}(?:[\ .\x1F-]?[0-9]{1,3})?
    | 3[47][0-9]{2}[\ .\x1F-]?[0-9]{6}[\ .\x1F-]?[0-9]{5} )";

/// A phone number that a gap tears.
const TORN_PHONE: &str =
    r"\A\+[1-9][0-9]{0,2}(?:[ ./-]?\(?[0-9]{1,4}\)?){0,3}\x1F[0-9]{2,4}(?:[ ./-][0-9]{2,4}){0,4}";

fn regex(form: &str) -> Regex {
    Regex::new(form).expect("the forms are constants, and a test uses each")
}

/// Returns bank account numbers (IBAN).
pub(super) fn ibans(text: &str) -> Vec<Range<usize>> {
    each(
        text,
        |byte| byte.is_ascii_alphabetic(),
        |start| {
            let length = iban(&text[start..], |byte| matches!(byte, b' ' | b'.' | b'-'), 1)?;
            stands_alone(text, start..start + length, false)
        },
    )
}

/// Returns card numbers.
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

/// Returns addresses of machines.
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

/// Returns phone numbers, and what is left of one that the number before it has swallowed.
pub(super) fn phones(text: &str) -> Vec<Range<usize>> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(PHONE));
    let is_first = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'(');
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

/// A kind of number that a gap may tear: its word, how far before the gap it may begin, with which bytes, and what returns
/// its length.
type Torn<'a> = (&'static str, usize, fn(u8) -> bool, &'a dyn Fn(&str) -> Option<usize>);

/// Returns the numbers that gaps tear, of a [`super::folded::Folded::unbroken`] text, with the words for their kinds.
pub(super) fn torn(text: &str) -> Vec<(Range<usize>, &'static str)> {
    static FORMS: LazyLock<[Regex; 2]> = LazyLock::new(|| [TORN_CARD, TORN_PHONE].map(regex));
    let [card_form, phone_form] = &*FORMS;
    let torn_iban = |rest: &str| iban(rest, |byte| matches!(byte, b' ' | GAP_BYTE), 2);
    let torn_card = |rest: &str| card_form.find(rest).and_then(|place| card(place.as_str()));
    let torn_phone = |rest: &str| phone_form.find(rest).and_then(|place| torn_phone(place.as_str()));
    let kinds: [Torn<'_>; 3] = [
        ("IBAN", 64, |byte| byte.is_ascii_alphabetic(), &torn_iban),
        ("CARD", 24, |byte| matches!(byte, b'2'..=b'6'), &torn_card),
        ("PHONE", 32, |byte| byte == b'+', &torn_phone),
    ];
    let mut found = Vec::new();
    for (word, reach, is_first, measure) in kinds {
        let places = near_gaps(text, reach, |start| {
            if !is_first(text.as_bytes()[start]) || !may_begin(text, start) {
                return None;
            }
            let length =
                measure(&text[start..]).filter(|&length| text[start..start + length].contains(GAP))?;
            stands_alone(text, start..start + length, false)
        });
        found.extend(places.into_iter().map(|place| (place, word)));
    }
    found
}

/// Tries each byte with which a kind may begin, and that no word goes on with, in order and without overlaps.
fn each(
    text: &str,
    is_first: impl Fn(u8) -> bool,
    find_at: impl Fn(usize) -> Option<Range<usize>>,
) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = bytes[at..].iter().position(|byte| is_first(*byte)) {
        let start = at + step;
        let place = if may_begin(text, start) { find_at(start) } else { None };
        at = place.as_ref().map_or(start + 1, |place| place.end);
        found.extend(place);
    }
    found
}

/// Tries each byte that stands at most so far before a gap, in order and without overlaps.
fn near_gaps(text: &str, reach: usize, find_at: impl Fn(usize) -> Option<Range<usize>>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = text.as_bytes()[at..].iter().position(|byte| *byte == GAP_BYTE) {
        let gap = at + step;
        let mut start = at.max(gap.saturating_sub(reach));
        while start < gap {
            let place = find_at(start);
            start = place.as_ref().map_or(start + 1, |place| place.end);
            found.extend(place);
        }
        at = start.max(gap + 1);
    }
    found
}

/// Whether a number may begin here as far as the character before it says. `12+34` is a sum, and so `+34` is no phone
/// number there.
fn may_begin(text: &str, start: usize) -> bool {
    let bytes = text.as_bytes();
    let Some(&before) = start.checked_sub(1).and_then(|last| bytes.get(last)) else { return true };
    match bytes[start] {
        b'+' | b'(' => !before.is_ascii_digit(),
        _ if before.is_ascii() => !before.is_ascii_alphanumeric(),
        _ => !text[..start].chars().next_back().is_some_and(char::is_alphanumeric),
    }
}

/// Returns the place of a number, unless it is a part of a longer word or number.
fn stands_alone(text: &str, place: Range<usize>, may_be_range: bool) -> Option<Range<usize>> {
    let mut before = text.as_bytes()[..place.start].iter().rev();
    let mut after = text[place.end..].chars();
    let (last, next) = (before.next(), after.next());
    if next.is_some_and(char::is_alphanumeric) {
        return None;
    }
    // Of a date, a decimal number or a range this is only a part.
    let is_part = match last {
        Some(b'-') if may_be_range => false,
        Some(b'.' | b',' | b'-' | b'/' | b':') if before.next().is_some_and(u8::is_ascii_digit) => true,
        _ => matches!(next, Some('.' | ',')) && after.next().is_some_and(|c| c.is_ascii_digit()),
    };
    (!is_part).then_some(place)
}

/// Returns the length of the IBAN at the beginning of a text, if there is one. Between its groups, each of which has at
/// least so many characters, may stand one separator.
fn iban(text: &str, is_separator: impl Fn(u8) -> bool, group_min: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_sign = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let is_head = |(at, byte): (usize, &u8)| {
        if at < 2 { byte.is_ascii_alphabetic() } else { byte.is_ascii_digit() }
    };
    let head = bytes.get(..4).filter(|head| head.iter().enumerate().all(is_head))?;
    let first = head.iter().fold(0, |number, byte| appended(number, *byte));
    let mut signs = [0; IBAN_CHARS[1]];
    signs[..4].copy_from_slice(head);
    let (mut count, mut at, mut number, mut whole) = (4, 4, 0, None);
    while count < signs.len() {
        let is_apart = bytes.get(at).is_some_and(|byte| is_separator(*byte));
        let next = at + usize::from(is_apart);
        let is_group = !(is_apart || at == 4) || (next..next + group_min).all(is_sign);
        let Some(&byte) = bytes.get(next).filter(|_| is_group && is_sign(next)) else { break };
        signs[count] = byte;
        number = appended(number, byte);
        count += 1;
        at = next + 1;
        // The first four characters count as the last six digits.
        let is_checked = (number * 1_000_000 + first) % 97 == 1;
        if count >= IBAN_CHARS[0] && is_checked && !is_sign(at) && is_known(&signs[..count]) {
            whole = Some(at);
        }
    }
    whole
}

/// Returns the remainder of a number by 97 with another sign at its end.
fn appended(number: u32, sign: u8) -> u32 {
    let value = char::from(sign).to_digit(36).unwrap_or_default();
    (number * if value < 10 { 10 } else { 100 } + value) % 97
}

/// Whether a country has bank account numbers of this form.
fn is_known(signs: &[u8]) -> bool {
    let upper = signs.to_ascii_uppercase();
    str::from_utf8(&upper).is_ok_and(|text| text.parse::<iban::Iban>().is_ok())
}

/// Returns the length of the longest number at the beginning of a text whose last digit is its check digit.
fn card(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut mixer = luhn3::Mixer::default();
    let (mut count, mut at, mut whole) = (0, 0, None);
    while count < CARD_DIGITS[1] {
        let is_apart = count > 0 && matches!(bytes.get(at), Some(b' ' | b'.' | b'_' | b'-' | &GAP_BYTE));
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

/// Returns the length of the address at the beginning of a text: of IPv6 with at least three groups or one of three
/// digits, since `a::b` and `[::2]` are more often parts of programs.
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
    is_one.then_some(text.len())
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
    let is_last = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b'.';
    (groups >= 2).then(|| at + bytes[at..].iter().take(15).take_while(is_last).count())
}

/// Whether the first bytes of a text are those of a form of phone numbers.
fn may_be_phone(bytes: &[u8]) -> bool {
    let is_apart = |at: usize| matches!(bytes.get(at), Some(b' ' | b'.' | b'-'));
    match bytes.first() {
        Some(b'+') => matches!(bytes.get(1), Some(b'1'..=b'9')),
        Some(b'0' | b'(') => bytes.get(1).is_some_and(u8::is_ascii_digit),
        Some(b'1') => is_apart(1) && is_apart(5),
        Some(b'8') => is_apart(3) || matches!(bytes.get(1), Some(b' ' | b'-' | b'(')),
        Some(_) => is_apart(3),
        None => false,
    }
}

/// Returns the length of the longest beginning that has the digits of a phone number and does not end inside of a
/// group. A date is no phone number.
fn phone(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut digits, mut groups, mut lengths, mut whole) = (0, 0, [0; 3], None);
    for (at, byte) in bytes.iter().enumerate() {
        if byte.is_ascii_digit() {
            digits += 1;
            groups += usize::from(!at.checked_sub(1).is_some_and(|last| bytes[last].is_ascii_digit()));
            if let Some(length) = lengths.get_mut(groups - 1) {
                *length += 1;
            }
        } else if *byte != b')' {
            continue;
        }
        let is_end = !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        let is_date =
            groups == 3 && matches!(lengths, [1 | 2, 1 | 2, 4] | [4, 2, 2]) && !text.starts_with('+');
        if is_end && (PHONE_DIGITS[0]..=PHONE_DIGITS[1]).contains(&digits) && !is_date {
            whole = Some(at + 1);
        }
    }
    whole
}

/// A phone number of which so little stands before the gap that it cannot be all of it.
fn torn_phone(text: &str) -> Option<usize> {
    let (before, _) = text.split_once(GAP)?;
    let digits = before.bytes().filter(u8::is_ascii_digit).count();
    (digits <= PHONE_DIGITS[0]).then(|| phone(text)).flatten()
}

/// A run of digits and what may stand between them, measured once for all numbers in it.
#[derive(Default)]
struct Run {
    end: usize,
    /// Where its last number ends that is not part of a word.
    last: usize,
}

impl Run {
    /// Returns where the rest of a second phone number stands, whose beginning the one that ends here has swallowed.
    fn swallowed(&mut self, text: &str, end: usize) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        let start = end + usize::from(matches!(bytes.get(end), Some(b' ' | b'.' | b'/' | b'-')));
        bytes.get(start).filter(|byte| byte.is_ascii_digit())?;
        if start >= self.end {
            self.measure(text, start);
        }
        let place = start..self.last.max(start);
        // Nearly all runs are short; of a long one no more is looked at than decides.
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
