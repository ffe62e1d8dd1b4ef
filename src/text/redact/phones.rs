//! Phone numbers.
//!
//! The input is a folded text, and the regions whose national numbers count. The output is places in the text. A form
//! of our own finds numbers that are hardly ever anything else, even if no network has given them out. The tables of
//! Google's libphonenumber decide on the others, on each separate stretch of digits and separators that is long enough.
//! A stretch is passed once and its length is bounded, so the time is linear in the text, whatever its content.

use std::ops::Range;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;
use rlibphonenumber::phonenumber_matcher::{Leniency, PHONE_MATCHER_FACTORY};
use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberType, Region};
use serde::{Deserialize, Serialize};

use super::folded::GAP;
use super::forms::regex;
use super::places::{each, may_begin, stands_alone};

/// The regions whose national phone numbers are searched for, as ISO 3166-1 writes them: `NL`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Regions(Vec<Region>);

/// A code that is not a region with phone numbers of its own.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no region with phone numbers; write two letters as ISO 3166-1 does, such as NL or US")]
pub struct UnknownRegion(String);

/// The regions that are searched for unless others are chosen: large countries of the Americas, of Asia and of Europe.
/// More regions find more numbers, and mistake ordinary numbers for phone numbers more often.
const DEFAULT_REGIONS: [Region; 12] = [
    Region::BR,
    Region::CN,
    Region::DE,
    Region::ES,
    Region::FR,
    Region::GB,
    Region::IN,
    Region::IT,
    Region::JP,
    Region::NL,
    Region::PL,
    Region::US,
];

impl Regions {
    /// Returns the codes of the regions.
    #[must_use]
    pub fn codes(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

impl Default for Regions {
    fn default() -> Self {
        Self(DEFAULT_REGIONS.into())
    }
}

impl TryFrom<Vec<String>> for Regions {
    type Error = UnknownRegion;

    fn try_from(codes: Vec<String>) -> Result<Self, UnknownRegion> {
        let is_known = |region: &Region| PHONE_NUMBER_UTIL.get_country_code_for_region(*region).is_some();
        let region = |code: String| Region::from_str(&code).ok().filter(is_known).ok_or(UnknownRegion(code));
        codes.into_iter().map(region).collect::<Result<_, _>>().map(Self)
    }
}

impl From<Regions> for Vec<String> {
    fn from(regions: Regions) -> Self {
        regions.codes()
    }
}

/// The fewest and the most digits of a phone number. ITU-T E.164 allows 15; below 8 there are too many other numbers.
const PHONE_DIGITS: [usize; 2] = [8, 15];

/// The fewest digits of a national number. Numbers of small countries, such as Iceland, are shorter than others.
const NATIONAL_DIGITS_MIN: usize = 7;

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

/// The lengths of a number without any separator, in digits.
const BARE_DIGITS: std::ops::RangeInclusive<usize> = 9..=12;

/// The most beginnings of a stretch that are tried.
const TRIES_MAX: u64 = 16;

/// Returns the places of phone numbers, and of the rest of a number whose beginning the number before it has swallowed.
pub(super) fn find(text: &str, regions: &Regions) -> Vec<Range<usize>> {
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
    let known = national(text, regions, &found);
    [found, swallowed, known].concat()
}

/// Returns the places of the national numbers of these regions, except for those that have been found.
fn national(text: &str, regions: &Regions, found: &[Range<usize>]) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_first = |byte: &u8| byte.is_ascii_digit() || *byte == b'(';
    let mut known = Vec::new();
    let (mut at, mut found) = (0, found.iter().peekable());
    while let Some(step) = bytes[at..].iter().position(is_first) {
        let start = at + step;
        let Stretch { end, digits } = Stretch::at(bytes, start);
        at = end;
        while found.next_if(|place| place.end <= start).is_some() {}
        let is_found = found.peek().is_some_and(|place| place.start < end);
        if is_found || !may_begin(text, start) {
            continue;
        }
        if (NATIONAL_DIGITS_MIN..=PHONE_DIGITS[1]).contains(&digits) {
            known.extend(of_regions(text, start..end, regions));
        } else if digits > PHONE_DIGITS[1] {
            // There are several numbers in a row here, or there is no number. Only one without separators can be
            // recognised.
            let mut from = start;
            for part in text[start..end].split(' ') {
                let place = from..from + part.len();
                from = place.end + 1;
                if BARE_DIGITS.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()) {
                    known.extend(of_regions(text, place, regions));
                }
            }
        }
    }
    known
}

/// Returns the places of the numbers of these regions in a stretch.
fn of_regions(text: &str, stretch: Range<usize>, regions: &Regions) -> Vec<Range<usize>> {
    // A stretch ends with a digit.
    let digits = text[stretch.clone()].trim_start_matches(|c: char| !c.is_ascii_digit());
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let place = stretch.end - digits.len()..stretch.end;
        return bare(text, place, regions).into_iter().collect();
    }
    let matcher = PHONE_MATCHER_FACTORY.matcher_builder(&text[stretch.clone()]);
    let matcher =
        matcher.regions(regions.0.iter().copied()).leniency(Leniency::StrictGrouping).max_tries(TRIES_MAX);
    let numbers = matcher.build().filter_map(|number| {
        let place = stretch.start + number.start..stretch.start + number.end();
        let has_gap = text[place.clone()].trim_matches(['(', ')']).bytes().any(|byte| !byte.is_ascii_digit());
        if has_gap { stands_alone(text, place, false) } else { None }
    });
    numbers.collect()
}

/// Returns the place of digits without any separator if they are a phone number: a mobile number, or a number of a
/// region that does not distinguish mobiles from others. Part of a sum, or the limit of a number type, is not a phone
/// number.
fn bare(text: &str, place: Range<usize>, regions: &Regions) -> Option<Range<usize>> {
    let digits = &text[place.clone()];
    if !BARE_DIGITS.contains(&digits.len()) {
        return None;
    }
    let place = stands_alone(text, place, false)?;
    let is_limit = digits.parse().is_ok_and(|n: u64| n.is_power_of_two() || (n + 1).is_power_of_two());
    let before = text[..place.start].trim_end_matches(' ').chars().next_back();
    let behind = text[place.end..].trim_start_matches(' ').chars().next();
    let is_operator = |c: char| matches!(c, '+' | '*' | '/' | '%' | '^' | '<' | '>' | '×' | '÷' | '·' | '−');
    let is_in_sum = before.is_some_and(is_operator)
        || behind.is_some_and(|c| is_operator(c) || c == '=')
        || text[place.end..].starts_with(" - ")
        || text[..place.start].ends_with(" - ");
    let is_mobile = |region: &Region| {
        let number = PHONE_NUMBER_UTIL.parse(digits, Some(*region)).ok();
        let kind = number.map(|number| PHONE_NUMBER_UTIL.get_number_type(&number));
        matches!(kind, Some(PhoneNumberType::Mobile | PhoneNumberType::FixedLineOrMobile))
            && is_written_whole(digits, *region)
    };
    (!is_limit && !is_in_sum && regions.0.iter().any(is_mobile)).then_some(place)
}

/// Returns true if digits are a valid number of a region, with the prefix that people write there.
fn is_written_whole(digits: &str, region: Region) -> bool {
    let matcher = PHONE_MATCHER_FACTORY.matcher_builder(digits).preferred_region(region);
    let mut numbers = matcher.leniency(Leniency::Valid).max_tries(1).build();
    numbers.next().is_some_and(|number| number.start == 0 && number.end() == digits.len())
}

/// A stretch of digits and separators, with at most two separators in a row.
struct Stretch {
    end: usize,
    digits: usize,
}

impl Stretch {
    fn at(bytes: &[u8], start: usize) -> Self {
        let (mut at, mut end, mut digits) = (start, start + 1, 0);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    digits += 1;
                    end = at + 1;
                }
                b' ' | b'.' | b'-' | b'/' | b'(' | b')' if at < end + 2 => {}
                _ => break,
            }
            at += 1;
        }
        Self { end, digits }
    }
}

/// Returns true if the first bytes of a text are those of a form of phone numbers.
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

/// Returns the length of the longest beginning that has the digits of a phone number and does not end inside a group. A
/// date is not a phone number.
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
