//! The shapes of what must not leave the machine: what is found by its form alone.
//!
//! In: a folded text. Out: places, each with the word for its kind. A form finds what may be one; where the form says too
//! little, a check decides, such as a check digit. What fails its check is looked at again from its next character
//! on: a number that stands beside another hides nothing. The time is linear in the text, whatever it says.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{numbers, secrets};

/// The form of a token, which stands for something already.
pub(super) const TOKEN: &str = r"\[[A-Z]+_[0-9]+\]";

/// The words in the tokens.
pub(super) const WORDS: [&str; 7] = ["TOKEN", "SECRET", "EMAIL", "IBAN", "CARD", "IP", "PHONE"];

const EMAIL: &str = r#"(?:[\w.%+'-]+|"[^"\n]{1,64}")(?:@|%40)(?:localhost(?-u:\b)|[\w-]+(?:\.[\w-]+)*\.(?:xn--[\w-]+|\p{L}{2,}))"#;

/// An address that a gap tears.
const TORN_EMAIL: &str = r"[\w.%+'-]+@\x1F[\w-]+(?:\.[\w-]+)*\.\p{L}{2,}";

/// Token, address, torn address.
static FORMS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [TOKEN, EMAIL, TORN_EMAIL]
        .map(|form| Regex::new(form).expect("the forms are constants, and a test uses each"))
});

/// Returns what has one of the shapes, with the word for it, in the order in which kinds are preferred where two find
/// the same place.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let [token, email, _] = &*FORMS;
    let has_email = text.contains('@') || text.contains("%40");
    let emails = has_email.then(|| email.find_iter(text)).into_iter().flatten();
    let kinds = [
        ("TOKEN", token.find_iter(text).map(|place| place.range()).collect::<Vec<_>>()),
        ("SECRET", secrets::keys(text)),
        ("SECRET", secrets::named(text)),
        ("EMAIL", emails.map(|place| place.range()).collect()),
        ("IBAN", numbers::ibans(text)),
        ("CARD", numbers::cards(text)),
        ("IP", numbers::addresses(text)),
        ("PHONE", numbers::phones(text)),
    ];
    kinds.into_iter().flat_map(|(word, places)| places.into_iter().map(move |place| (place, word))).collect()
}

/// Returns what stands torn over the end of a line, or over columns, in a [`super::folded::Folded::unbroken`] text that has such gaps: by
/// stricter forms than what stands in one line.
pub(super) fn find_torn(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let [_, _, email] = &*FORMS;
    let has_email = text.contains("@\u{1F}");
    let emails = has_email.then(|| email.find_iter(text)).into_iter().flatten();
    emails.map(|place| (place.range(), "EMAIL")).chain(numbers::torn(text)).collect()
}
