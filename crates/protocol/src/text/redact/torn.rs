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
use super::numbers::card;
use super::phones::torn_phone;
use super::places::{may_begin, near_gaps, regex, stands_alone};

/// A card number that a gap may tear. A column of numbers is not a card.
const TORN_CARD: &str = r"(?x) \A (?:
    [2-6][0-9]{3}(?:[\ .\x1F-]?[0-9]{4}){3}(?:[\ .\x1F-]?[0-9]{1,3})?
    | 3[47][0-9]{2}[\ .\x1F-]?[0-9]{6}[\ .\x1F-]?[0-9]{5} )";

/// A phone number that is torn by a gap.
const TORN_PHONE: &str =
    r"\A\+[1-9][0-9]{0,2}(?:[ ./-]?\(?[0-9]{1,4}\)?){0,3}\x1F[0-9]{2,4}(?:[ ./-][0-9]{2,4}){0,4}";

/// Returns the places that gaps tear in a [`super::folded::Folded::unbroken`] text, with the words for their kinds.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let cards = near_gaps(text, 24, |start| match text.as_bytes()[start] {
        b'2'..=b'6' => torn_place(text, start, measure_card),
        _ => None,
    });
    let phones = near_gaps(text, 32, |start| match text.as_bytes()[start] {
        b'+' => torn_place(text, start, measure_phone),
        _ => None,
    });
    let mut found = Vec::new();
    for (word, places) in [("EMAIL", emails::find_torn(text)), ("CARD", cards), ("PHONE", phones)] {
        found.extend(places.into_iter().map(|place| (place, word)));
    }
    found
}

/// Returns the place of a number that begins here and has a gap. `measure` returns the number's length.
fn torn_place(text: &str, start: usize, measure: fn(&str) -> Option<usize>) -> Option<Range<usize>> {
    if !may_begin(text, start) {
        return None;
    }
    let place = start..start + measure(&text[start..])?;
    if !text[place.clone()].contains(GAP) {
        return None;
    }
    stands_alone(text, place, false)
}

fn measure_card(text: &str) -> Option<usize> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(TORN_CARD));
    card(FORM.find(text)?.as_str())
}

fn measure_phone(text: &str) -> Option<usize> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(TORN_PHONE));
    torn_phone(FORM.find(text)?.as_str())
}
