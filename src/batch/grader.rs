//! The graders: ways to decide whether an agreed text is the right answer.
//!
//! The input is a text and the known answer. The output is whether the text is right. No model sees the answer, and nothing that a
//! run does depends on it, so a batch may be graded again at any time. The user's command as a grader runs elsewhere, in
//! [`grading`](super::grading).

use std::sync::LazyLock;

use caseless::Caseless as _;
use regex::Regex;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::text::{CanonicalKind, Canonicalizer};
use crypto::Digest;

/// A pattern of numbers, with their signs, separators and exponents.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[-+−]?[0-9](?:[0-9.,]*[0-9])?(?:[eE][-+−]?[0-9]+)?")
        .unwrap_or_else(|_| unreachable!("it is tested"))
});

/// The signs before a number.
const SIGNS: [char; 3] = ['-', '+', '−'];

/// The way an answer is graded.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grader {
    /// The canonical text equals that of the answer, as when two agents agree on it.
    #[default]
    Exact,
    /// The last number in the text equals the number in the answer.
    Number,
    /// The answer is a regular expression that matches within the text.
    Regex,
    /// The text contains the answer, ignoring case and white space, and not as a part of a longer word or number.
    Contains,
    /// The user's command exits with 0 for the text.
    Command,
}

/// A text that a run came to, and its digest.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Given {
    pub(super) text: Option<String>,
    pub(super) sha256: Option<Digest>,
}

impl Grader {
    /// All graders.
    pub const ALL: [Self; 5] = [Self::Exact, Self::Number, Self::Regex, Self::Contains, Self::Command];

    /// Returns the name of the grader.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Number => "number",
            Self::Regex => "regex",
            Self::Contains => "contains",
            Self::Command => "command",
        }
    }

    /// Checks that some text could be right by this answer.
    ///
    /// # Errors
    ///
    /// Returns the reason why no text could be right.
    pub(super) fn check(self, answer: &str) -> Result<(), String> {
        match self {
            Self::Number => last_number(answer).map(drop).ok_or_else(|| "it holds no number".to_owned()),
            Self::Regex => {
                Regex::new(answer).map(drop).map_err(|why| format!("it is not a regular expression: {why}"))
            }
            Self::Contains if folded(answer).is_empty() => Err("it is empty".to_owned()),
            Self::Exact | Self::Contains | Self::Command => Ok(()),
        }
    }

    /// Returns whether a text is right by this answer. Callers decide [`Self::Exact`] by digests instead, and
    /// [`Self::Command`] by what the command said: of itself it finds no text right.
    pub(super) fn is_right(self, text: &str, answer: &str) -> bool {
        match self {
            Self::Exact => text == answer,
            Self::Command => false,
            Self::Number => last_number(answer).is_some_and(|right| last_number(text) == Some(right)),
            Self::Regex => Regex::new(answer).is_ok_and(|right| right.is_match(text)),
            Self::Contains => contains(&folded(text), &folded(answer)),
        }
    }
}

/// Returns the canonical text of the last number in a text.
fn last_number(text: &str) -> Option<String> {
    let canonicalizer = Canonicalizer::new(&CanonicalKind::Number.into());
    let read = |found: &str| {
        canonicalizer.canonicalize_known(&found.replace('−', "-")).ok().map(|number| number.text)
    };
    let number = |found: regex::Match<'_>| {
        let (whole, before) = (found.as_str(), &text[..found.start()]);
        let last = || whole.rsplit(['e', 'E']).next().and_then(read);
        // In a hexadecimal number and in S01E05, an e begins no exponent.
        let word = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
        let word = if whole.starts_with(SIGNS) { "" } else { &before[word..] };
        let is_hex = word.eq_ignore_ascii_case("0x") || word.chars().all(|c| c.is_ascii_hexdigit());
        let is_padded = matches!(whole.trim_start_matches(SIGNS).as_bytes(), [b'0', b'0'..=b'9', ..]);
        if !word.is_empty() && is_hex || is_padded { last() } else { read(whole).or_else(last) }
    };
    NUMBER.find_iter(text).filter_map(number).last()
}

/// Returns a text with case folded and white space collapsed.
fn folded(text: &str) -> String {
    let text: String = text.nfc().default_case_fold().nfc().collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a text contains a part that does not belong to a longer word or number.
fn contains(text: &str, part: &str) -> bool {
    let is_word = |side: Option<char>| side.is_some_and(|c| c.is_ascii_alphanumeric());
    let (first, last) = (part.chars().next(), part.chars().next_back());
    text.match_indices(part).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + part.len()..].chars().next());
        !(is_word(first) && is_word(before) || is_word(last) && is_word(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_grader_says_what_it_is_called() {
        for (grader, text, answer, is_right) in [
            (Grader::Number, "The answer is 4.", "4", true),
            (Grader::Number, "2 + 2 = 4, so 4.0 apples", "4", true),
            (Grader::Number, "It costs $1,080.", "1080", true),
            (Grader::Number, "−3", "-3", true),
            (Grader::Number, "4 of 5", "4", false),
            (Grader::Number, "It is 1000.", "1e3", true),
            (Grader::Number, "It is 1e-05 m, 3E2 times.", "300", true),
            (Grader::Number, "3", "1e3", false),
            (Grader::Number, "room 4east", "4", true),
            (Grader::Number, "It weighs 1e3kg.", "1000", true),
            (Grader::Number, "1.5e−5", "0.000015", true),
            (Grader::Number, "1e00003", "1000", true),
            (Grader::Number, "at 0x1e5", "5", true),
            (Grader::Number, "commit a3e-7", "-7", true),
            (Grader::Number, "答案是-1.5e3", "-1500", true),
            (Grader::Number, "USD1e6, or 2x1e5", "100000", true),
            (Grader::Number, "in S01E05", "5", true),
            (Grader::Number, "commit 7e1234567", "1234567", true),
            (Grader::Number, "four", "4", false),
            (Grader::Regex, "The capital is Paris.", "(?i)paris|lutetia", true),
            (Grader::Regex, "Rome", "(?i)paris", false),
            (Grader::Contains, "It is  NEW\nYork.", "New York", true),
            (Grader::Contains, "14 of them", "4", false),
            (Grader::Contains, "4,", "4", true),
            (Grader::Contains, "答えは東京です", "東京", true),
        ] {
            assert_eq!(grader.is_right(text, answer), is_right, "{} {text}", grader.name());
        }
        assert!(Grader::Number.check("four").is_err());
        assert!(Grader::Regex.check("(").unwrap_err().contains("not a regular expression"));
        assert!(Grader::Contains.check(" ").is_err());
    }
}
