//! Originals that are torn apart by the end of a line, or by columns.
//!
//! The input is a [`super::folded::Folded::unbroken`] text. The output is places in it, with the words for their kinds.
//! The forms are stricter than those for a single line, because a column of numbers is not a card. The time is linear
//! in the text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::emails;
use super::folded::GAP;
use super::forms::regex;
use super::numbers::card;
use super::phones::torn_phone;
use super::places::{may_begin, near_gaps, stands_alone};

/// A card number that a gap may tear. A column of numbers is not a card.
const TORN_CARD: &str = r"(?x) \A (?:
    [2-6][0-9]{3}(?:[\ .\x1F-]?[0-9]{4}){3}(?:[\ .\x1F-]?[0-9]{1,3})?
    | 3[47][0-9]{2}[\ .\x1F-]?[0-9]{6}[\ .\x1F-]?[0-9]{5} )";

/// A phone number that is torn by a gap.
const TORN_PHONE: &str =
    r"\A\+[1-9][0-9]{0,2}(?:[ ./-]?\(?[0-9]{1,4}\)?){0,3}\x1F[0-9]{2,4}(?:[ ./-][0-9]{2,4}){0,4}";

/// A kind of number that a gap may tear: its word, how far before the gap it may begin, the test of its first byte, and
/// the function that returns its length.
type Torn<'a> = (&'static str, usize, fn(u8) -> bool, &'a dyn Fn(&str) -> Option<usize>);

/// Returns the places that gaps tear in a [`super::folded::Folded::unbroken`] text, with the words for their kinds.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, &'static str)> {
    static FORMS: LazyLock<[Regex; 2]> = LazyLock::new(|| [TORN_CARD, TORN_PHONE].map(regex));
    let [card_form, phone_form] = &*FORMS;
    let torn_card = |rest: &str| card_form.find(rest).and_then(|place| card(place.as_str()));
    let torn_phone = |rest: &str| phone_form.find(rest).and_then(|place| torn_phone(place.as_str()));
    let kinds: [Torn<'_>; 2] = [
        ("CARD", 24, |byte| matches!(byte, b'2'..=b'6'), &torn_card),
        ("PHONE", 32, |byte| byte == b'+', &torn_phone),
    ];
    let mut found: Vec<_> = emails::torn(text).into_iter().map(|place| (place, "EMAIL")).collect();
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
