//! The answer at the end of a free text, found by rule.
//!
//! The input is what a voter wrote, and the kind of answer. The output is the text of its answer, or `None` if the rule finds none; then
//! the voter is asked for it in a form. Nothing here decides whether the answer is valid.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use crate::text::{CanonicalKind, Canonicalizer};

/// A line that announces the answer, with the marks of Markdown around the word.
static ANNOUNCED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^[\s*_#>`{-]*(?:the\s+)?(?:final\s+|correct\s+)?answer(?:\s+is)?\s*[*_`]*\s*[:=]\s*[*_`]*\s*(.*)$",
    )
});

/// A line that holds the answer after four marks, as the solutions of GSM8K end.
static MARKED: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\s*####\s*(.+)$"));

/// A value in a box, as models that were trained on mathematics end.
static BOXED: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\boxed\{([^{}]+)\}"));

/// A sentence that says the answer.
static SAID: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?im)\banswer\s+is\s*:?\s*(.+)$"));

/// A number with its sign, separators and decimals.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"[-+−]?[0-9](?:[0-9.,]*[0-9])?"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|_| unreachable!("the tests of this module use every pattern"))
}

/// The rule by which an answer was found in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// It follows a line such as `Answer: 48`.
    Line,
    /// It follows `####`.
    Marks,
    /// It is in a `\boxed{}`.
    Box,
    /// A sentence says that the answer is this.
    Sentence,
    /// It is the whole text.
    Whole,
    /// No rule found it, so the voter was asked for it in a form.
    Form,
    /// A program printed it.
    Program,
}

/// Returns the text of the answer in what a voter wrote, and the rule that found it. `choice` reads a letter or an option, for a
/// question with options.
///
/// The order of the rules is that of the reference that agrees with 5,276 solutions of GSM8K, and of several matches of one rule the last
/// one counts. Its last resort, the last number of a text, is left out: a vote for a number that was not meant as the answer is worse than
/// a further question.
pub(super) fn answer(
    said: &str,
    canonicalizer: &Canonicalizer,
    choice: impl Fn(&str) -> Option<String>,
) -> Option<(String, FoundBy)> {
    let kind = canonicalizer.kind();
    let last = |pattern: &Regex| Some(pattern.captures_iter(said).last()?.get(1)?.as_str().to_owned());
    let is_short = matches!(kind, CanonicalKind::Number | CanonicalKind::Choice);
    let whole = || Some(said.trim()).filter(|text| is_short && text.lines().count() == 1).map(str::to_owned);
    let rules: [(FoundBy, &dyn Fn() -> Option<String>); 5] = [
        (FoundBy::Line, &|| announced(said, kind)),
        (FoundBy::Marks, &|| last(&MARKED)),
        (FoundBy::Box, &|| last(&BOXED)),
        (FoundBy::Sentence, &|| last(&SAID)),
        (FoundBy::Whole, &whole),
    ];
    rules.iter().find_map(|(rule, find)| {
        let found = find()?;
        let text = without_marks(&found, kind);
        let read = match kind {
            CanonicalKind::Number if *rule == FoundBy::Whole => {
                canonicalizer.canonicalize(text).is_ok().then(|| text.to_owned())
            }
            CanonicalKind::Number => number(text, canonicalizer),
            CanonicalKind::Choice => choice(text),
            CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => {
                // A sentence with the answer in it is not the answer.
                (!text.is_empty() && *rule != FoundBy::Sentence).then(|| text.to_owned())
            }
        };
        Some((read?, *rule))
    })
}

/// Returns what follows the last line that announces an answer: the rest of that line or, if that is empty, the next line that is not.
/// Where the answer may have several lines, all further lines belong to it.
fn announced(said: &str, kind: CanonicalKind) -> Option<String> {
    let lines: Vec<&str> = said.lines().collect();
    let (at, rest) = lines.iter().enumerate().rev().find_map(|(at, line)| {
        let rest = ANNOUNCED.captures(line)?.get(1)?.as_str().trim();
        Some((at, rest))
    })?;
    let mut further = lines[at + 1..].iter().copied();
    let is_one_line = matches!(kind, CanonicalKind::Number | CanonicalKind::Choice);
    if !is_one_line {
        return Some([&[rest], &lines[at + 1..]].concat().join("\n").trim().to_owned());
    }
    if !rest.is_empty() {
        return Some(rest.to_owned());
    }
    further.find(|line| !line.trim().is_empty()).map(str::to_owned)
}

/// Returns a text without the marks of Markdown and mathematics around it, where they cannot belong to the answer.
fn without_marks(text: &str, kind: CanonicalKind) -> &str {
    let marks = match kind {
        CanonicalKind::Number | CanonicalKind::Choice => "*_`${}",
        CanonicalKind::Text => "*_`",
        CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => "",
    };
    let text = text.trim();
    let boxed = BOXED.captures(text).and_then(|found| found.get(1)).filter(|_| text.contains("\\boxed"));
    boxed.map_or(text, |inner| inner.as_str()).trim_matches(|c: char| c.is_whitespace() || marks.contains(c))
}

/// Returns the number of an answer: the whole text, or the one number in it. After an equals sign only the last part counts.
fn number(text: &str, canonicalizer: &Canonicalizer) -> Option<String> {
    let result = text.rsplit_once('=').map_or(text, |(_, result)| result).trim();
    let is_number = |text: &str| canonicalizer.canonicalize(text).is_ok();
    let bare = result.trim_end_matches('.');
    if is_number(bare) {
        return Some(bare.to_owned());
    }
    let mut found = NUMBER.find_iter(result).map(|number| number.as_str());
    let (Some(only), None) = (found.next(), found.next()) else { return None };
    is_number(only).then(|| only.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::text::Reading;

    fn found(kind: CanonicalKind, said: &str) -> Option<String> {
        let canonicalizer = Canonicalizer::new(&kind.into(), Reading::Strict);
        answer(said, &canonicalizer, |text| Some(text.to_owned())).map(|(text, _)| text)
    }

    #[test]
    fn a_number_is_found_where_it_is_announced_with_its_unit_and_marks_left_out() {
        for said in [
            "4 * 12 = 48\nAnswer: 48",
            "**Answer:** 48",
            "### Final Answer: $48$",
            "Answer:\n\n48 bottles",
            "Answer: 4 × 12 = 48 bottles.",
            "The answer is: **48**.",
            "Answer: 12\nWait, no.\nAnswer: 48",
            "So it is \\boxed{48}.",
            "Answer: \\boxed{48}",
            "answer: $48",
            "She makes 6 * 8 = $48 a day.\n#### 48",
            "{final answer: 48}",
            "answer = 48",
            "So the answer is 48 bottles.",
            "The correct answer is 48.",
            "48",
        ] {
            assert_eq!(found(CanonicalKind::Number, said).as_deref(), Some("48"), "{said}");
        }
        for said in ["It is 48.", "Answer: four", "Answer: 4 of 48", "Answer:", "", "Answer: between 3 and 5"]
        {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
        assert_eq!(found(CanonicalKind::Number, "Answer: -1,080.50 dollars").as_deref(), Some("-1,080.50"));
    }

    #[test]
    fn a_text_goes_on_to_the_end_and_a_choice_is_one_line() {
        assert_eq!(
            found(CanonicalKind::Lines, "so\nAnswer:\na = 1\nb = 2\n").as_deref(),
            Some("a = 1\nb = 2")
        );
        assert_eq!(found(CanonicalKind::Text, "so\nAnswer: to be\nor not").as_deref(), Some("to be\nor not"));
        assert_eq!(found(CanonicalKind::Choice, "Answer: B) Rome\nas I said").as_deref(), Some("B) Rome"));
        assert_eq!(found(CanonicalKind::Text, "no answer here"), None);
    }
}
