//! Texts that say nothing: empty ones, placeholders, and echoes of what the agents were told.
//!
//! Two agents agree most easily on a template. A published log of an earlier controller shows two
//! "agreements" on the literal `<NUMBER>`. Such a text is refused before it can be compared.

use thiserror::Error;

use super::CanonicalKind;

/// Shorter texts than this many characters are compared with instructions only as whole lines, so
/// that a short right answer ("4", "yes") is not refused because a prompt happens to contain it.
const ECHO_CHARS_MIN: usize = 24;

/// Words that stand for an answer instead of being one, after folding; see [`Told::check`].
const PLACEHOLDERS: [&str; 29] = [
    "answer",
    "answer here",
    "answer text",
    "accepts",
    "canonical text",
    "canonical_text",
    "complete solution text",
    "final answer",
    "final solution",
    "final text",
    "final_solution",
    "handle",
    "insert answer",
    "insert answer here",
    "lorem ipsum",
    "n/a",
    "placeholder",
    "proposed answer",
    "solution",
    "solved",
    "string",
    "tba",
    "tbd",
    "the answer",
    "the complete final text",
    "the final text",
    "todo",
    "your answer",
    "your answer here",
];

/// Why a text counts as vacuous.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Vacuity {
    /// Nothing is left after canonicalisation, or only invisible characters and punctuation.
    #[error("it is empty")]
    Empty,
    /// A template's placeholder.
    #[error("`{0}` is a placeholder; write the answer itself")]
    Placeholder(String),
    /// The task, or a part of the instructions, said back.
    #[error("it repeats {0} instead of answering")]
    Echo(&'static str),
}

/// What an agent was told, ready to be recognised when it comes back.
#[derive(Clone, Debug)]
pub struct Told {
    task: String,
    instructions: Vec<String>,
}

impl Told {
    /// Remembers the user's prompt and the texts that the agent was given (protocol rules, pack).
    #[must_use]
    pub fn new(task: &str, instructions: &[&str]) -> Self {
        Self { task: fold(task), instructions: instructions.iter().map(|text| fold(text)).collect() }
    }

    /// Checks a final text against the rule that agreement is never vacuous.
    ///
    /// `canonical` is the canonical form of the text. A number is no placeholder, and a choice is
    /// checked against its list already and may well be one of the words above.
    ///
    /// # Errors
    ///
    /// [`Vacuity`] says what the text is instead of an answer.
    pub fn check(&self, kind: CanonicalKind, canonical: &str) -> Result<(), Vacuity> {
        let visible = |c: char| !c.is_whitespace() && !super::quote::is_invisible(c);
        if !canonical.chars().any(visible) {
            return Err(Vacuity::Empty);
        }
        if matches!(kind, CanonicalKind::Choice | CanonicalKind::Number) {
            return Ok(());
        }
        let folded = fold(canonical);
        if is_placeholder(canonical.trim(), &folded) {
            return Err(Vacuity::Placeholder(super::quote::excerpt(canonical)));
        }
        if folded == self.task {
            return Err(Vacuity::Echo("the task"));
        }
        let is_long = folded.chars().count() >= ECHO_CHARS_MIN;
        if is_long && self.instructions.iter().any(|text| text.contains(&folded)) {
            return Err(Vacuity::Echo("the instructions"));
        }
        Ok(())
    }
}

/// Lower case, letters and digits with single spaces: how two texts are compared here.
fn fold(text: &str) -> String {
    let spaced: String =
        text.chars().map(|c| if c.is_alphanumeric() || "_/+-*=<>".contains(c) { c } else { ' ' }).collect();
    spaced.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_placeholder(text: &str, folded: &str) -> bool {
    let bracketed = [('<', '>'), ('[', ']'), ('{', '}')].iter().any(|&(open, close)| {
        let inside = text.strip_prefix(open).and_then(|t| t.strip_suffix(close));
        inside.is_some_and(|t| is_label(t) && !t.contains([open, close]))
    });
    // `…`, `...`, `---`, `???`: punctuation alone, repeated.
    let dots = text.chars().count() > 1 && text.chars().all(|c| ".…-_?*#".contains(c));
    bracketed || dots || text == "…" || PLACEHOLDERS.contains(&folded.trim_matches('*'))
}

/// A label such as `NUMBER` or `your answer`: words only, so `[1, 2]` and `<b>x</b>` are not.
fn is_label(text: &str) -> bool {
    let has_letter = text.chars().any(char::is_alphabetic);
    let words_only = text.chars().all(|c| c.is_alphabetic() || " _-|.'".contains(c));
    text.trim().is_empty() || has_letter && words_only
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{CanonicalRule, Canonicalizer};

    #[track_caller]
    fn verdict(text: &str) -> Result<(), Vacuity> {
        let canonicalizer = Canonicalizer::new(&CanonicalRule::default());
        let canonical = canonicalizer.canonicalize(text).unwrap();
        let rules = "Write the complete final text here, exactly as the user should read it.";
        Told::new("What is the capital of Australia?", &[rules]).check(CanonicalKind::Text, &canonical.text)
    }

    #[test]
    fn placeholders_are_refused() {
        for text in [
            "<NUMBER>",
            "<your answer>",
            "[answer]",
            "{answer}",
            "{}",
            "[]",
            "...",
            "…",
            "---",
            "???",
            "TBD",
            "N/A",
            "string",
            "canonical_text",
            "Your answer here.",
            "[SOLVED]",
            "SOLVED",
            "*TODO*",
            "\"final answer\"",
        ] {
            assert!(matches!(verdict(text), Err(Vacuity::Placeholder(_))), "{text}");
        }
    }

    #[test]
    fn invisible_text_is_empty() {
        for text in ["", " \n", "\u{200b}\u{feff}", "\u{202e}"] {
            assert_eq!(verdict(text), Err(Vacuity::Empty), "{text:?}");
        }
    }

    #[test]
    fn echoes_are_refused() {
        assert_eq!(verdict("what is the capital of australia"), Err(Vacuity::Echo("the task")));
        let echo = "the complete final text here, exactly as the user";
        assert_eq!(verdict(echo), Err(Vacuity::Echo("the instructions")));
    }

    #[test]
    fn short_and_odd_answers_are_answers() {
        for text in ["4", "Canberra", "yes", "-", "?", "[1, 2]", "{\"a\":1}", "<b>bold</b>", "x", "No.", "+"]
        {
            assert_eq!(verdict(text), Ok(()), "{text}");
        }
    }
}
