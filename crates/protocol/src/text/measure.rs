//! The sizes and the form of a text, as a reader would find them: sentences, paragraphs, bullet points, mentions, letter case.
//!
//! The input is a text, and the output is a number, or yes or no. No rule is known here, and nothing is mended.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// Shortened words whose point ends no sentence, in small letters: English and German ones.
pub(super) const SHORTENED: [&str; 35] = [
    "approx", "bzw", "ca", "capt", "col", "dr", "e.g", "etc", "fig", "gen", "gov", "hon", "i.e", "inkl",
    "jr", "lt", "max", "min", "mr", "mrs", "ms", "mt", "nr", "p.p.s", "p.s", "prof", "rep", "rev", "sen",
    "sgt", "st", "u.a", "usw", "vs", "z.b",
];

/// The signs of quotation marks around a whole text.
const MARKS: [(char, char); 5] = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('»', '«')];

/// The letters that a text may have.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LetterCase {
    /// Only small letters.
    Lower,
    /// Only capital letters.
    Upper,
}

impl LetterCase {
    /// Returns true if a text has letters, and none of the other case.
    pub(super) fn holds(self, text: &str) -> bool {
        let is_other = match self {
            Self::Lower => char::is_uppercase,
            Self::Upper => char::is_lowercase,
        };
        text.chars().any(char::is_alphabetic) && !text.chars().any(is_other)
    }
}

/// A language that code recognises, by its code of ISO 639-3, such as `fin`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct TextLanguage(whatlang::Lang);

impl TextLanguage {
    /// Returns the language with this code; `None` if code does not recognise it.
    pub fn from_code(code: &str) -> Option<Self> {
        whatlang::Lang::from_code(code).map(Self)
    }

    /// Returns the language of a text, if it is another one beyond doubt.
    pub(super) fn other_in(self, text: &str) -> Option<Self> {
        let found = whatlang::detect(text)?;
        (found.is_reliable() && found.lang() != self.0).then(|| Self(found.lang()))
    }
}

impl TryFrom<String> for TextLanguage {
    type Error = String;

    fn try_from(code: String) -> Result<Self, String> {
        Self::from_code(&code).ok_or_else(|| {
            format!(
                "`{code}` is no code of a language that is recognised; write one of ISO 639-3, such as `fin`"
            )
        })
    }
}

impl From<TextLanguage> for String {
    fn from(language: TextLanguage) -> Self {
        language.0.code().to_owned()
    }
}

impl fmt::Display for TextLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.eng_name())
    }
}

/// Counts the sentences that have a letter or digit, by the boundaries of Unicode UAX #29. The point of a shortened word and of an initial
/// is no end.
pub(super) fn count_sentences(text: &str) -> usize {
    let sentences: Vec<&str> = text.unicode_sentences().collect();
    let is_open = |two: &&[&str]| ends_in_shortened_word(two[0]) || ends_in_initial(two[0], two[1]);
    sentences.len() - sentences.windows(2).filter(is_open).count()
}

/// Returns the last word before the point of a sentence, and the one before it, unless its line ends there.
fn last_words(sentence: &str) -> Option<(&str, &str)> {
    let words = sentence.trim_end_matches(' ').strip_suffix('.')?;
    let mut words = words.rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"'));
    Some((words.next()?, words.next().unwrap_or_default()))
}

fn ends_in_shortened_word(sentence: &str) -> bool {
    last_words(sentence).is_some_and(|(last, _)| SHORTENED.contains(&last.to_lowercase().as_str()))
}

/// Returns true for `John F.` and `Moore`, and for `by J.` and `R.`, but not for `Take vitamin C.` and `It`.
fn ends_in_initial(sentence: &str, next: &str) -> bool {
    let is_initial =
        |word: &str| word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    let Some((last, before)) = last_words(sentence) else { return false };
    let follows_name = before.is_empty() || before.starts_with(char::is_uppercase);
    let is_followed = last_words(next).is_some_and(|(next, before)| is_initial(next) && before.is_empty());
    is_initial(last) && (follows_name || is_followed)
}

/// Counts the paragraphs: what lines of three or more equal signs such as `***` separate, else what blank lines separate.
pub(super) fn count_paragraphs(text: &str) -> usize {
    let has_dividers = text.lines().any(is_divider);
    let (mut count, mut is_inside) = (0, false);
    for line in text.lines() {
        let is_boundary = if has_dividers { is_divider(line) } else { line.trim().is_empty() };
        let has_words = !is_boundary && !line.trim().is_empty();
        count += usize::from(has_words && !is_inside);
        is_inside = !is_boundary && (is_inside || has_words);
    }
    count
}

fn is_divider(line: &str) -> bool {
    let line = line.trim();
    let Some(first) = line.chars().next() else { return false };
    matches!(first, '*' | '-' | '_' | '=') && line.len() >= 3 && line.chars().all(|sign| sign == first)
}

/// Counts the lines that begin with a sign of a list.
pub(super) fn count_bullets(text: &str) -> usize {
    let is_bullet = |line: &&str| {
        line.trim_start().starts_with(['*', '-', '+', '•']) && line.trim_start().chars().nth(1) == Some(' ')
    };
    text.lines().filter(is_bullet).count()
}

/// Counts how often words are in a text, as words of their own. The case does not count.
pub(super) fn count_mentions(text: &str, words: &str) -> usize {
    let (text, words) = (text.to_lowercase(), words.to_lowercase());
    let is_word = |c: char| c.is_alphanumeric();
    if words.is_empty() {
        return 0;
    }
    text.match_indices(&words)
        .filter(|(at, found)| {
            let (before, behind) = (&text[..*at], &text[at + found.len()..]);
            let begins = !before.ends_with(is_word) || !words.starts_with(is_word);
            begins && (!behind.starts_with(is_word) || !words.ends_with(is_word))
        })
        .count()
}

/// Returns true if a text begins and ends with the marks of a pair.
pub(super) fn is_quoted(text: &str) -> bool {
    let mut signs = text.trim().chars();
    let (first, last) = (signs.next(), signs.next_back());
    first.zip(last).is_some_and(|ends| MARKS.contains(&ends))
}

/// Returns the fault of a text that is not JSON. A fence around it may mark it as code.
pub(super) fn json_fault(text: &str) -> Option<String> {
    let json = strip_fence(text.trim());
    serde_json::from_str::<serde::de::IgnoredAny>(json).err().map(|why| why.to_string())
}

/// Returns a text without the one fence around it.
pub(crate) fn strip_fence(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let inside = inside.and_then(|text| text.split_once('\n')).map(|(_, code)| code.trim_end());
    inside.filter(|code| !code.contains("```")).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_word_ends_no_sentence() {
        assert_eq!(count_sentences("Dr. Smith met J. R. Moore, e.g. at 5 p.m. in Rome. They left."), 2);
        assert_eq!(count_sentences("Take vitamin C. It helps. So do I. Really?"), 4);
        assert_eq!(count_sentences("Dr.\nAnother line."), 2);
        assert_eq!(count_sentences("..."), 0);
    }

    #[test]
    fn paragraphs_and_bullets_are_those_of_a_reader() {
        assert_eq!(count_paragraphs("One\ntwo\n\n\nthree\n"), 2);
        assert_eq!(count_paragraphs("One\n\ntwo\n***\nthree\n\nfour"), 2);
        assert_eq!(count_paragraphs("\n***\nOne"), 1);
        assert_eq!(count_bullets("* One\n  - two\n*bold*\n---\n1. three"), 2);
    }

    #[test]
    fn mentions_are_whole_words() {
        assert_eq!(count_mentions("War, wars and war-like WAR", "war"), 3);
        assert_eq!(count_mentions("C++ and c++.", "C++"), 2);
        assert_eq!(count_mentions("the new york times", "New York"), 1);
        assert_eq!(count_mentions("text", ""), 0);
    }

    #[test]
    fn quotes_json_letters_and_languages() {
        assert!(
            is_quoted("\"All of it.\"") && is_quoted("“It.”") && !is_quoted("\"A\" b") && !is_quoted("\"")
        );
        assert_eq!(json_fault("```json\n{\"a\":1}\n```"), None);
        assert!(json_fault("{a}").is_some());
        assert!(
            LetterCase::Lower.holds("été 5")
                && !LetterCase::Lower.holds("Été")
                && !LetterCase::Upper.holds("5")
        );
        let finnish = TextLanguage::from_code("fin").unwrap();
        assert_eq!(
            finnish.other_in("Hyvää päivää, mitä sinulle kuuluu tänään? Minulle kuuluu hyvää, kiitos."),
            None
        );
        let other =
            finnish.other_in("This text is written in English, as every reader of it can see at once.");
        assert_eq!(other.unwrap().to_string(), "English");
        assert_eq!(finnish.other_in("42"), None);
    }
}
