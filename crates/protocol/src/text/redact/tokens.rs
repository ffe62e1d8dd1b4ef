//! Tokens as they are written, and as a model may have altered them.
//!
//! The input is texts. The output is the tokens in them, and the parts that look like a token but are not one. The
//! originals of tokens are in a table elsewhere.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

/// The form of a token, which stands for an original already.
const FORM: &str = r"\[[A-Z]+_[0-9]+\]";

/// The words in the tokens.
pub(super) const WORDS: [&str; 6] = ["TOKEN", "SECRET", "EMAIL", "CARD", "IP", "PHONE"];

/// The word in the tokens for matches of the user's own patterns.
pub(super) const OWN: &str = "PRIVATE";

/// A token as it is written.
pub(super) static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(FORM).expect("the form is a constant, and tests use it"));

/// A token as a model may have altered it: in other letters, with other signs inside its brackets, or without brackets.
static BENT: LazyLock<Regex> = LazyLock::new(|| {
    let word = words().collect::<Vec<_>>().join("|");
    let form =
        format!(r"(?i:\[ *(?:{word})(?:\\_|[ _-])*\d+ *\])|\b(?:{word})\\?_\d+\b|\[[A-Z]+(?:-[A-Z]+)*_\d+\]");
    Regex::new(&form).expect("it is made of constants")
});

pub(super) fn words() -> impl Iterator<Item = &'static str> {
    WORDS.into_iter().chain([OWN])
}

/// Returns true if a text is one token and nothing else.
pub fn is_token(text: &str) -> bool {
    parts(text).is_some_and(|(word, _)| words().any(|known| known == word))
}

/// Returns the word and the number of a token.
pub(super) fn parts(token: &str) -> Option<(&str, u64)> {
    let (word, number) = token.strip_prefix('[')?.strip_suffix(']')?.rsplit_once('_')?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((word, number.parse().ok()?))
}

/// Returns every token in a text.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    TOKEN.find_iter(text).map(|place| place.as_str())
}

/// Returns the parts of a text that look like tokens which a model has altered or made up. These cannot be put back.
///
/// `known` contains the existing tokens.
pub fn bent_tokens(known: &BTreeSet<String>, text: &str) -> Vec<String> {
    let found = BENT.find_iter(text).map(|place| place.as_str());
    found.filter(|token| !known.contains(*token)).map(str::to_owned).collect()
}
