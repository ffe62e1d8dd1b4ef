//! The kinds of text that must not leave the machine, each of which is recognised by its form.
//!
//! The input is a folded text. The output is places, each with the word for its kind. A form finds a candidate. If the
//! form says too little, a check decides, such as a check digit. After a failed check, the search continues at the next
//! character, so a number that is beside another hides nothing. The time is linear in the text, whatever its content.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{emails, keys, numbers, phones, secrets};

/// The form of a token, which stands for an original already.
pub(super) const TOKEN: &str = r"\[[A-Z]+_[0-9]+\]";

/// The words in the tokens.
pub(super) const WORDS: [&str; 6] = ["TOKEN", "SECRET", "EMAIL", "CARD", "IP", "PHONE"];

/// Returns the places that have one of the forms, with the word for each. The kinds are in the order in which they are
/// preferred if two find the same place.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, &'static str)> {
    static TOKENS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(TOKEN).expect("the form is a constant, and tests use it"));
    let kinds = [
        ("TOKEN", TOKENS.find_iter(text).map(|place| place.range()).collect::<Vec<_>>()),
        ("SECRET", keys::find(text)),
        ("SECRET", secrets::find(text)),
        ("EMAIL", emails::find(text)),
        ("CARD", numbers::cards(text)),
        ("IP", numbers::addresses(text)),
        ("PHONE", phones::find(text)),
    ];
    kinds.into_iter().flat_map(|(word, places)| places.into_iter().map(move |place| (place, word))).collect()
}
