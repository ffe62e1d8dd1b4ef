//! Tokens, as they are written, and as a model may have bent them.
//!
//! In: texts. Out: the tokens in them, and what looks like one and is none. What a token stands for is in a table elsewhere.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::kinds;

/// The word in the tokens of what the user's own patterns find.
pub(super) const OWN: &str = "PRIVATE";

/// A token, as it is written.
pub(super) static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(kinds::TOKEN).expect("the form is a constant, and tests use it"));

/// A token as a model may have bent it: in other letters or with other signs inside its brackets, or without them.
static BENT: LazyLock<Regex> = LazyLock::new(|| {
    let word = words().collect::<Vec<_>>().join("|");
    let form =
        format!(r"(?i:\[ *(?:{word})(?:\\_|[ _-])*\d+ *\])|\b(?:{word})\\?_\d+\b|\[[A-Z]+(?:-[A-Z]+)*_\d+\]");
    Regex::new(&form).expect("it is made of constants")
});

pub(super) fn words() -> impl Iterator<Item = &'static str> {
    kinds::WORDS.into_iter().chain([OWN])
}

/// Whether a text is one token and nothing else.
#[must_use]
pub fn is_token(text: &str) -> bool {
    parts(text).is_some_and(|(word, _)| words().any(|known| known == word))
}

/// Returns the word and the number of a token.
pub(super) fn parts(token: &str) -> Option<(&str, u64)> {
    let (word, number) = token.strip_prefix('[')?.strip_suffix(']')?.rsplit_once('_')?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((word, number.parse().ok().filter(|_| is_number)?))
}

/// Returns every token in a text.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    TOKEN.find_iter(text).map(|place| place.as_str())
}

/// Returns what looks like a token that a model has bent, or made up: it cannot be put back.
///
/// `known` is the tokens that there are.
#[must_use]
pub fn bent_tokens(known: &BTreeSet<String>, text: &str) -> Vec<String> {
    let found = BENT.find_iter(text).map(|place| place.as_str());
    found.filter(|token| !known.contains(*token)).map(str::to_owned).collect()
}
