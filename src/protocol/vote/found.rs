//! The answer at the end of a free text, found by rule.
//!
//! The input is what a voter wrote, and the kind of answer. The output is the text of its answer, or `None` if the rule finds none; then
//! the voter is asked for it in a form. Nothing here decides whether the answer is valid.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::quantity::{number, pattern};
use crate::text::{CanonicalKind, Canonicalizer};

/// A line that announces the answer, with the marks of Markdown around the word.
static ANNOUNCED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^[\s*_#>`{-]*(?:the\s+)?(?:final\s+|correct\s+)?answer(?:\s+is)?\s*[*_`]*\s*[:=]\s*[*_`]*\s*(.*)$",
    )
});

/// A line that holds the answer after four marks, as the solutions of GSM8K end.
static MARKED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*####\s*([^#].*)$"));

/// A sentence that says the answer and nothing else.
static SAID: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^[\s*_#>`-]*(?:conclusion:\s*|based\s+on\s+[^,]*,\s*)?(?:(?:and|so|thus|hence|then|therefore)[,\s]+)*(?:the\s+)?(?:(?:final|correct|right|best|chosen)\s+)?answer\s+is\s*:?\s*(.+)$",
    )
});

/// Words after an answer that may take it back.
static TAKES_BACK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:wait|however|but|not|no|\w+n['’]t|wrong|incorrect|mistakes?|errors?|actually|instead|sorry|correction|rather|re-?check|must\s+be|should\s+be)\b",
    )
});

/// The beginning of a box.
const BOX: &str = "\\boxed{";

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

/// Returns the text of the answer in what a voter wrote, and the rule that found it. `choice` reads a letter or an option, for a question
/// with options.
///
/// The order of the rules is that of the reference that agrees with 5,276 solutions of GSM8K. Its last resort, the last number of a text,
/// is left out, and each rule takes an answer only if nothing else is said with it. A vote for a number that was not meant as the answer is
/// worse than a further question, because all samples of one model err alike.
pub(super) fn answer(
    said: &str,
    canonicalizer: &Canonicalizer,
    choice: impl Fn(&str) -> Option<String>,
) -> Option<(String, FoundBy)> {
    let said = after_thoughts(said)?;
    let kind = canonicalizer.kind();
    let is_short = matches!(kind, CanonicalKind::Number | CanonicalKind::Choice);
    let last = said.lines().rfind(|line| !line.trim().is_empty())?;
    let in_last = |pattern: &Regex| Some(pattern.captures(last)?.get(1)?.as_str().to_owned());
    let short = |found: Option<String>| found.filter(|_| is_short);
    let rules: [(FoundBy, &dyn Fn() -> Option<String>); 5] = [
        (FoundBy::Line, &|| announced(said, kind, is_short)),
        (FoundBy::Marks, &|| short(in_last(&MARKED))),
        (FoundBy::Box, &|| if is_short { boxed_at_the_end(said) } else { boxed(said) }.map(str::to_owned)),
        (FoundBy::Sentence, &|| short(in_last(&SAID))),
        (FoundBy::Whole, &|| short(Some(said.trim().to_owned()).filter(|text| text.lines().count() == 1))),
    ];
    rules.iter().find_map(|(by, find)| {
        let found = find()?;
        let text = without_marks(&found, kind);
        let read = match kind {
            CanonicalKind::Number if *by == FoundBy::Whole => {
                canonicalizer.canonicalize(text).is_ok().then(|| text.to_owned())
            }
            CanonicalKind::Number => number(text, canonicalizer),
            CanonicalKind::Choice => choice(text),
            CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => {
                canonicalizer
                    .canonicalize(text)
                    .is_ok_and(|read| !read.text.is_empty())
                    .then(|| text.to_owned())
            }
        };
        Some((read?, *by))
    })
}

/// Returns what a voter wrote after its thoughts, where a server leaves these in the reply. Thoughts without an end hold no answer.
fn after_thoughts(said: &str) -> Option<&str> {
    match said.rfind("</think>") {
        Some(end) => Some(&said[end + "</think>".len()..]),
        None => (!said.trim_start().starts_with("<think>")).then_some(said),
    }
}

/// Returns what follows the last line that announces an answer: the rest of that line or, if that is empty, the last line of the text if it
/// is the only one that follows. Where the answer may have several lines, the further ones belong to it; prose ends at a blank line.
fn announced(said: &str, kind: CanonicalKind, is_short: bool) -> Option<String> {
    let lines: Vec<&str> = said.lines().collect();
    let (at, rest) = lines.iter().enumerate().rev().find_map(|(at, line)| {
        let rest = ANNOUNCED.captures(line)?.get(1)?.as_str().trim();
        Some((at, rest))
    })?;
    let further = &lines[at + 1..];
    if is_short && !rest.is_empty() && further.iter().any(|line| TAKES_BACK.is_match(line)) {
        return None;
    }
    match kind {
        CanonicalKind::Number | CanonicalKind::Choice => {
            let mut whole = further.iter().filter(|line| !line.trim().is_empty());
            match (rest.is_empty(), whole.next(), whole.next()) {
                (false, ..) => Some(rest.to_owned()),
                (true, Some(only), None) => Some((*only).to_owned()),
                (true, _, _) => None,
            }
        }
        CanonicalKind::Text => {
            let begins =
                if rest.is_empty() { further.iter().position(|line| !line.trim().is_empty())? } else { 0 };
            let prose = further[begins..].iter().take_while(|line| !line.trim().is_empty());
            Some(std::iter::once(rest).chain(prose.copied()).collect::<Vec<_>>().join("\n").trim().to_owned())
        }
        CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => {
            let text =
                if rest.is_empty() { further.join("\n") } else { [&[rest], further].concat().join("\n") };
            // The indentation of the first line belongs to the answer.
            Some(unfenced(text.trim_start_matches('\n').trim_end()).to_owned())
        }
    }
}

/// Returns a text without the one fence around it.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let inside = inside.and_then(|text| text.split_once('\n')).map(|(_, code)| code.trim_end());
    inside.filter(|code| !code.contains("```")).unwrap_or(text)
}

/// Returns the content of the last box, if its line has no other.
fn boxed(said: &str) -> Option<&str> {
    let line = said.lines().rfind(|line| line.contains(BOX))?;
    let (before, rest) = line.rsplit_once(BOX)?;
    let mut depth = 1_i32;
    let end = rest.find(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    })?;
    (!before.contains(BOX)).then(|| &rest[..end])
}

/// Returns the content of the last box, if nothing after it takes it back or goes on to calculate.
fn boxed_at_the_end(said: &str) -> Option<&str> {
    let found = boxed(said)?;
    let (_, from_box) = said.rsplit_once(BOX)?;
    let after = &from_box[found.len()..];
    (!TAKES_BACK.is_match(after) && !after.contains(|c: char| c.is_ascii_digit())).then_some(found)
}

/// Returns a text without the marks of Markdown and mathematics around it, where they cannot belong to the answer.
fn without_marks(text: &str, kind: CanonicalKind) -> &str {
    let is_in = |marks: &'static str| move |c: char| c.is_whitespace() || marks.contains(c);
    match kind {
        CanonicalKind::Number | CanonicalKind::Choice => {
            let is_mark = is_in("*_`{}");
            let text = text.trim_matches(is_mark).trim_end_matches('.').trim_end_matches(is_mark);
            let text = if text.ends_with('$') { text.trim_matches('$').trim() } else { text };
            boxed_at_the_end(text).unwrap_or(text)
        }
        CanonicalKind::Text => text.trim_matches(is_in("*_`")),
        CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: CanonicalKind, said: &str) -> Option<String> {
        let canonicalizer = Canonicalizer::new(&kind.into());
        answer(said, &canonicalizer, |text| Some(text.to_owned())).map(|(text, _)| text)
    }

    /// The unit and the marks beside the number are left out.
    #[test]
    fn announced_number_is_found() {
        for said in [
            "4 * 12 = 48\nAnswer: 48",
            "**Answer:** 48",
            "### Final Answer: $48$",
            "Answer:\n\n48 bottles",
            "Answer: 4 × 12 = 48 bottles.",
            "Answer: x = 48",
            "The answer is: **48**.",
            "Answer: 12\nWait, no.\nAnswer: 48",
            "So it is \\boxed{48}.",
            "Answer: \\boxed{48}",
            "Answer: \\(48\\)",
            "answer: $48",
            "She makes 6 * 8 = $48 a day.\n#### 48",
            "{final answer: 48}",
            "answer = 48",
            "So the answer is 48 bottles.",
            "The correct answer is 48.",
            "48",
            "<think>\nAnswer: 12\nhmm, no.\n</think>\n\nAnswer: 48",
        ] {
            assert_eq!(found(CanonicalKind::Number, said).as_deref(), Some("48"), "{said}");
        }
        for (said, number) in [
            ("Answer: -1,080.50 dollars", "-1,080.50"),
            ("Answer: -$5", "-5"),
            ("It is \\boxed{-\\$5}", "-5"),
            ("Answer: 50%", "50"),
        ] {
            assert_eq!(found(CanonicalKind::Number, said).as_deref(), Some(number), "{said}");
        }
    }

    /// A number with anything else said is asked for.
    #[test]
    fn ambiguous_number_is_asked_for() {
        for said in [
            "It is 48.",
            "Answer: four",
            "Answer: 4 of 48",
            "Answer:",
            "",
            "Answer: between 3 and 5",
            "I get 12 first, then 48",
            "48 bottles, I think",
            "#### Step 2: Multiply\n4 * 12 = 48",
            "#### 4. Total\nThe total is 48.",
            "<think>\nAnswer: 12",
            "Answer: –5",
            "Answer: minus 5",
            "Answer: 18 (check: 18 + 18 = 36)",
            "Answer: 5 (so 2x = 10)",
            "Answer: John = 5, Mary = 6",
            "Answer: 2 million",
            "Answer: 3 dozen",
            "Answer: $1.5k",
            "Answer: 3 or 4",
            "Answer:\nFirst, 4 * 12 = 48.\nThen 48 - 3 = 45.\nHe has 45 left.",
            "price = 12\nanswer = price * 3\nprint(answer)",
            "So the answer is not 48.\nWe must subtract 4, which is 44.",
            "The answer is 40.\nWait, I forgot 2. Final: 42",
            "The answer is rounded to 2 decimal places.",
            "The answer is twice 24.",
            "The answer is 24 doubled.",
            "Answer: It cannot be determined, because the 3 pens have no price.",
            "Answer: None of the 12 apples are left.",
            "Answer: seven (out of 12)",
            "First \\boxed{3}, then \\boxed{\\frac{3}{4}}",
            "\\boxed{x = 5} and \\boxed{y = 7}",
        ] {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
    }

    /// A word that changes the number is asked about.
    #[test]
    fn unit_belongs_to_its_number() {
        for unit in [
            " bottles",
            "%",
            " %",
            "kg",
            " kg",
            "cm²",
            " m²",
            "°C",
            " miles per hour",
            " km/h",
            " dollars a day",
            " seconds",
            " times",
            " more apples",
            " of them",
            " in total",
            " full-time workers",
            " points",
        ] {
            let said = format!("Answer: 48{unit}");
            assert_eq!(found(CanonicalKind::Number, &said).as_deref(), Some("48"), "{said}");
        }
        for rest in [
            "π",
            " π",
            " pi",
            "²",
            "³",
            " squared",
            " dozens",
            " millions",
            " Millionen",
            " lakh",
            "bn",
            "m",
            " m",
            "k",
            "x",
            " x",
            "i",
            " quarters",
            " fifths",
            " is incorrect",
            " is wrong",
            " was not",
            " plus two",
            " divided by seven",
            "-dimensional",
            " thousand-fold",
            " πr²",
            " point five",
            "!",
        ] {
            let said = format!("Answer: 48{rest}");
            assert_eq!(found(CanonicalKind::Number, &said), None, "{said}");
        }
    }

    /// An answer that is taken back or is not the author's own is asked for.
    #[test]
    fn retracted_answer_is_asked_for() {
        for said in [
            "The total is 42.\nA common wrong answer is 40.",
            "I doubt the answer is 40",
            "The wrong answer is 40",
            "\\boxed{40} is wrong, since it must be 42.",
            "First \\boxed{12}.\nThen 12 + 30 = 42.",
            "Answer: 40\nWait, that is not right. The total is 42.",
            "Answer: 40\n\nHowever, it may be 42.",
            "Answer: 40\nThat isn't it.",
            "Answer: 40 isn't it.",
            "Answer: 40\nThis doesn’t add up.",
        ] {
            assert_eq!(found(CanonicalKind::Number, said), None, "{said}");
        }
        for said in ["Answer: A\n\nHowever, the right one is B.", "It is so.\nThe wrong answer is A"] {
            assert_eq!(found(CanonicalKind::Choice, said), None, "{said}");
        }
        for said in [
            "So, therefore, the final answer is 48.",
            "**The correct answer is 48**",
            "Hence \\(\\boxed{48}\\).",
            "It is $\\boxed{48}$",
            "Answer: 48\n\n",
        ] {
            assert_eq!(found(CanonicalKind::Number, said).as_deref(), Some("48"), "{said}");
        }
    }

    #[test]
    fn text_spans_lines_but_choice_does_not() {
        assert_eq!(
            found(CanonicalKind::Lines, "so\nAnswer:\na = 1\nb = 2\n").as_deref(),
            Some("a = 1\nb = 2")
        );
        assert_eq!(found(CanonicalKind::Text, "so\nAnswer: to be\nor not").as_deref(), Some("to be\nor not"));
        assert_eq!(found(CanonicalKind::Choice, "Answer: B) Rome\n").as_deref(), Some("B) Rome"));
        assert_eq!(found(CanonicalKind::Text, "no answer here"), None);
        assert_eq!(found(CanonicalKind::Text, "#### Step 2: combine\nSo it is Paris."), None);
        assert_eq!(
            found(CanonicalKind::Text, "Answer: Paris\n\nIt is the capital.").as_deref(),
            Some("Paris")
        );
        assert_eq!(
            found(CanonicalKind::Json, "Answer:\n```json\n{\"a\": 1}\n```").as_deref(),
            Some("{\"a\": 1}")
        );
        assert_eq!(found(CanonicalKind::Json, "Answer: something"), None, "it is asked for in a form");
        assert_eq!(found(CanonicalKind::Lines, "Answer:\n```python\nx = 1\n```").as_deref(), Some("x = 1"));
    }
}
