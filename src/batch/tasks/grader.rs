//! The graders: ways to decide whether an agreed text is the right answer.
//!
//! The input is a text and the known answer. The output is whether the text is right. No model sees the answer, and nothing that a
//! run does depends on it, so a batch may be graded again at any time. The user's command as a grader runs elsewhere, in
//! `schedule`.

use std::sync::LazyLock;

use caseless::Caseless as _;
use regex::Regex;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crypto::Digest;
use protocol::text::{CanonicalKind, Canonicalizer};

/// A pattern of numbers, with a sign before their currency, and with their own signs, separators and exponents.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"([-+−]?[$€£¥])?([-+−]?(?:[0-9](?:[0-9.,]*[0-9])?|\.[0-9]+)(?:[eE][-+−]?[0-9]+)?)")
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
#[serde(rename = "Given")]
pub(in crate::batch) struct RunText {
    pub(in crate::batch) text: Option<String>,
    pub(in crate::batch) sha256: Option<Digest>,
}

impl Grader {
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
    /// Returns the reason why no text could be right.
    pub(in crate::batch) fn require_possible(self, answer: &str) -> Result<(), String> {
        match self {
            Self::Number => last_number(answer).map(drop).ok_or_else(|| "it holds no number".to_owned()),
            Self::Regex => {
                Regex::new(answer).map(drop).map_err(|why| format!("it is not a regular expression: {why}"))
            }
            Self::Contains if fold(answer).is_empty() => Err("it is empty".to_owned()),
            Self::Exact | Self::Contains | Self::Command => Ok(()),
        }
    }

    /// Returns whether a text is right by this answer. Callers decide [`Self::Exact`] by digests instead, and
    /// [`Self::Command`] by what the command said: of itself it finds no text right.
    pub(in crate::batch) fn is_right(self, text: &str, answer: &str) -> bool {
        match self {
            Self::Exact => text == answer,
            Self::Command => false,
            Self::Number => last_number(answer).is_some_and(|right| last_number(text) == Some(right)),
            Self::Regex => Regex::new(answer).is_ok_and(|right| right.is_match(text)),
            Self::Contains => contains(&fold(text), &fold(answer)),
        }
    }
}

/// Returns the canonical text of the last number in a text.
fn last_number(text: &str) -> Option<String> {
    NUMBER.captures_iter(text).filter_map(|found| read_number(text, &found)).last()
}

/// Returns the canonical text of a number that was found in a text.
fn read_number(text: &str, found: &regex::Captures<'_>) -> Option<String> {
    let (all, number) = (found.get(0)?, found.get(2)?);
    let before = &text[..all.start()];
    let currency = found.get(1).map_or("", |currency| currency.as_str());
    // Between two numbers the sign is that of a range, and a point behind a word is its end.
    let is_range = before.ends_with(|c: char| c.is_ascii_digit());
    let is_worded = before.ends_with(|c: char| c.is_ascii_alphanumeric());
    let mut written = number.as_str();
    if is_range && currency.is_empty() {
        written = written.trim_start_matches(SIGNS);
    }
    if is_worded {
        written = written.trim_start_matches('.');
    }
    let sign = if currency.starts_with(['-', '−']) && !is_range { "-" } else { "" };
    let begins_with_point = written.trim_start_matches(SIGNS).starts_with('.');
    let whole = format!("{sign}{}", written.replacen('.', "0.", usize::from(begins_with_point)));
    // In a hexadecimal number and in S01E05, an e begins no exponent.
    let word = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
    let word = if whole.starts_with(SIGNS) { "" } else { &before[word..] };
    let is_hex = word.eq_ignore_ascii_case("0x") || word.chars().all(|c| c.is_ascii_hexdigit());
    let is_padded = matches!(whole.trim_start_matches(SIGNS).as_bytes(), [b'0', b'0'..=b'9', ..]);
    let has_exponent = !is_padded && (word.is_empty() || !is_hex);
    if has_exponent && let Some(number) = canonical_number(&whole) {
        return Some(number);
    }
    whole.rsplit(['e', 'E']).next().and_then(canonical_number)
}

fn canonical_number(written: &str) -> Option<String> {
    let canonicalizer = Canonicalizer::new(&CanonicalKind::Number.into());
    let number = canonicalizer.canonicalize_known(&written.replace('−', "-")).ok()?;
    Some(number.text)
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric())
}

fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}

/// Returns a text with case folded and white space collapsed.
fn fold(text: &str) -> String {
    let text: String = text.nfc().default_case_fold().nfc().collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a text contains a part that does not belong to a longer word or number.
fn contains(text: &str, part: &str) -> bool {
    let (first, last) = (part.chars().next(), part.chars().next_back());
    text.match_indices(part).any(|(at, _)| {
        let (mut before, mut after) = (text[..at].chars().rev(), text[at + part.len()..].chars());
        let (left, right) = (before.next(), after.next());
        let (further_left, further_right) = (before.next(), after.next());
        // A separator between digits, and a sign or a point at the beginning, belong to a longer number.
        let is_number_left = match left {
            Some('.') => !is_word(further_left) || is_digit(further_left),
            Some(',') => is_digit(further_left),
            Some('-' | '−') => !is_word(further_left),
            Some(_) | None => false,
        };
        let is_number_right = matches!(right, Some('.' | ',')) && is_digit(further_right);
        let is_longer_left = is_word(first) && is_word(left) || is_digit(first) && is_number_left;
        let is_longer_right = is_word(last) && is_word(right) || is_digit(last) && is_number_right;
        !(is_longer_left || is_longer_right)
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
            (Grader::Number, "It ended with -$20.", "-20", true),
            (Grader::Number, "It ended with −$5", "-5", true),
            (Grader::Number, "-£5.50", "-5.5", true),
            (Grader::Number, "$-20", "-20", true),
            (Grader::Number, "It takes 20-30 minutes", "30", true),
            (Grader::Number, "$20-$30", "30", true),
            (Grader::Number, "It costs $.50", "0.5", true),
            (Grader::Number, "-.5", "-0.5", true),
            (Grader::Number, "No.5", "5", true),
            (Grader::Number, "costs: - $20", "20", true),
            (Grader::Regex, "The capital is Paris.", "(?i)paris|lutetia", true),
            (Grader::Regex, "Rome", "(?i)paris", false),
            (Grader::Contains, "It is  NEW\nYork.", "New York", true),
            (Grader::Contains, "14 of them", "4", false),
            (Grader::Contains, "4,", "4", true),
            (Grader::Contains, "1.5", "5", false),
            (Grader::Contains, "0.25", "25", false),
            (Grader::Contains, "2,005 in all", "2", false),
            (Grader::Contains, "It is -5", "5", false),
            (Grader::Contains, "pages 3-5.", "5", true),
            (Grader::Contains, "No.5, or 5.", "5", true),
            (Grader::Contains, "答えは東京です", "東京", true),
        ] {
            assert_eq!(grader.is_right(text, answer), is_right, "{} {text}", grader.name());
        }
        assert!(Grader::Number.require_possible("four").is_err());
        assert!(Grader::Regex.require_possible("(").unwrap_err().contains("not a regular expression"));
        assert!(Grader::Contains.require_possible(" ").is_err());
    }
}
