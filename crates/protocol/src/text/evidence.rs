//! Forms of answers that keep their evidence: sentences of a document, and answers with the facts behind them.
//!
//! A small model that is asked to copy what helps writes the answer it would have given instead. A grammar that knows
//! the sentences leaves it only the choice among them. A model that is asked for each thing in turn, first for its
//! facts and then for what they say, sees what is missing.

mod split_answer;

pub use split_answer::{Claim, SplitAnswer};

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

use super::shape::{CHOICES_MAX, closed};

/// The shortest sentence that says something by itself, in bytes. A shorter one is joined to its neighbour.
const ALONE_BYTES_MIN: usize = 16;

/// The longest sentence, in bytes. A longer one is cut between words.
pub const SENTENCE_BYTES_MAX: usize = 800;

/// The shortest line of a text with hard line breaks, in bytes. Text does not run on after a shorter line.
const WRAPPED_BYTES_MIN: usize = 40;

/// The most white space inside parts that are joined, in bytes.
const GAP_BYTES_MAX: usize = 64;

/// The most sentences that one reader names.
pub const QUOTES_MAX: usize = 20;

/// The most things that one answer distinguishes.
const PARTS_MAX: usize = 12;

/// The longest name of a thing that is asked for, and the longest sentence about it, in characters.
const ASKED_CHARS_MAX: usize = 120;
const SAYS_CHARS_MAX: usize = 300;

/// The usual length of one thing with its signs, in characters. An answer may have as many things as fit at this
/// length.
const PART_CHARS: usize = 150;

/// The most facts behind one sentence.
const FACTS_MAX: usize = 8;

/// An answer that is a list of sentences of a document, word for word.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quotes {
    /// The sentences to choose from.
    sentences: Vec<String>,
    /// The most sentences that the answer may have.
    count_max: usize,
}

/// An answer that is a list of the things that are asked for, each with the facts behind it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answers {
    /// The numbers of the facts.
    facts: Vec<usize>,
    /// The most things that the answer may have.
    count_max: usize,
}

/// One thing that is asked for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AnswerPart {
    /// The thing that is asked for.
    pub asked: String,
    /// The numbers of the facts that say so; empty if no fact does.
    pub facts: Vec<usize>,
    /// The statement that the facts make.
    pub says: String,
}

impl Quotes {
    /// An example of such an answer.
    pub(super) const EXAMPLE: &str = "[\"…\"]";

    /// Creates the form for a choice of these sentences: as many as fit into `chars_max` characters of JSON, and no
    /// more than `count_max`.
    pub fn new(sentences: impl IntoIterator<Item = String>, chars_max: usize, count_max: usize) -> Self {
        let mut known = BTreeSet::new();
        let sentences: Vec<String> =
            sentences.into_iter().filter(|sentence| known.insert(sentence.clone())).collect();
        let longest = sentences.iter().map(|sentence| sentence.chars().count() + 4).max().unwrap_or(1);
        Self { count_max: (chars_max / longest).min(count_max).clamp(1, QUOTES_MAX), sentences }
    }

    /// Reads canonical JSON in this form.
    pub fn read(text: &str) -> Option<Vec<String>> {
        serde_json::from_str(text).ok()
    }

    /// Returns true if the text is such a list. Whether its sentences are in the document is another matter, because a
    /// model may copy a part of one.
    pub(super) fn holds(&self, text: &str) -> bool {
        Self::read(text).is_some_and(|quotes| quotes.len() <= self.count_max)
    }

    pub(super) fn schema(&self) -> Value {
        let item = if self.sentences.is_empty() || self.sentences.len() > CHOICES_MAX {
            json!({"type": "string", "minLength": 1, "maxLength": 2 * SENTENCE_BYTES_MAX})
        } else {
            json!({"type": "string", "enum": self.sentences})
        };
        json!({"type": "array", "items": item, "maxItems": self.count_max})
    }
}

impl Answers {
    /// An example of such an answer.
    pub(super) const EXAMPLE: &str = "[{\"asked\":\"…\",\"facts\":[…],\"says\":\"…\"}]";

    /// Creates the form for an answer from the facts with these numbers, in `chars_max` characters of JSON.
    pub fn new(facts: Vec<usize>, chars_max: usize) -> Self {
        Self { facts, count_max: (chars_max / PART_CHARS).clamp(1, PARTS_MAX) }
    }

    /// Reads canonical JSON in this form.
    pub fn read(text: &str) -> Option<Vec<AnswerPart>> {
        serde_json::from_str(text).ok()
    }

    /// Returns what is wrong with an answer, if anything.
    pub(super) fn fault(&self, text: &str) -> Option<String> {
        let Some(parts) = Self::read(text) else { return Some(self.to_string()) };
        if parts.is_empty() || parts.len() > self.count_max {
            return Some(format!(
                "the list must have 1 to {} items, and has {}",
                self.count_max,
                parts.len()
            ));
        }
        for AnswerPart { asked, facts, says } in &parts {
            if asked.trim().is_empty() {
                return Some("`asked` must say what is asked for, and one is empty".to_owned());
            }
            if let Some(number) = facts.iter().find(|number| !self.facts.contains(number)) {
                return Some(format!("there is no fact with the number {number}"));
            }
            if !facts.is_empty() && says.trim().is_empty() {
                return Some("`says` must say what the facts say, and one is empty".to_owned());
            }
        }
        None
    }

    /// Returns the schema. The facts come before the statement, because it follows from them.
    pub(super) fn schema(&self) -> Value {
        let number = if self.facts.is_empty() || self.facts.len() > CHOICES_MAX {
            json!({"type": "integer", "minimum": 1})
        } else {
            json!({"type": "integer", "enum": self.facts})
        };
        let part = closed(&json!({
            "asked": {"type": "string", "minLength": 1, "maxLength": ASKED_CHARS_MAX},
            "facts": {"type": "array", "items": number, "maxItems": FACTS_MAX},
            "says": {"type": "string", "maxLength": SAYS_CHARS_MAX},
        }));
        json!({"type": "array", "items": part, "minItems": 1, "maxItems": self.count_max})
    }
}

impl fmt::Display for Quotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count_max;
        write!(
            f,
            "a list of at most {count} sentences of the document, each copied word for word; [] if there is none"
        )
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a list with one item for each thing that is asked for: [{\"asked\": one of the things that are asked for, \
             \"facts\": the numbers of the facts that say so, or [], \"says\": what they say about it, as a sentence}]",
        )
    }
}

/// Returns the ranges of the sentences in a text. Together they cover everything but white space.
///
/// Boundaries are those of Unicode (UAX #29), with three differences. A line end is a space if a long line continues in
/// the next one. A part that is too short to say something is joined to its neighbour, such as a heading, a date or an
/// abbreviation that UAX #29 takes for an end. A very long sentence is cut between words.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let flat = unwrap_lines(text);
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, part) in flat.split_sentence_bound_indices() {
        let start = at + part.len() - part.trim_start().len();
        let end = at + part.trim_end().len();
        if start >= end {
            continue;
        }
        match found.last_mut() {
            Some(last) if is_joined(&flat, last, &(start..end)) => last.end = end,
            Some(_) | None => cut(&flat, start..end, &mut found),
        }
    }
    found
}

/// Returns true if a part belongs to the sentence before it, because one of the two is too short to say something.
fn is_joined(text: &str, last: &Range<usize>, part: &Range<usize>) -> bool {
    // A short part alone on its line says something about the text after it, not about the text before it.
    let is_rest = part.len() < ALONE_BYTES_MIN && !text[last.end..part.start].contains('\n');
    let is_short = last.len() < ALONE_BYTES_MIN || is_rest;
    is_short && part.end - last.start <= SENTENCE_BYTES_MAX && part.start - last.end <= GAP_BYTES_MAX
}

/// Adds a sentence, in parts if it is too long.
fn cut(text: &str, mut sentence: Range<usize>, found: &mut Vec<Range<usize>>) {
    while sentence.len() > SENTENCE_BYTES_MAX {
        let limit = text.floor_char_boundary(sentence.start + SENTENCE_BYTES_MAX);
        let room = &text[sentence.start..limit];
        let end = room.rfind(char::is_whitespace).filter(|end| *end > 0).unwrap_or(room.len());
        let part = room[..end].trim_end();
        found.push(sentence.start..sentence.start + part.len());
        let rest = &text[sentence.start + end..sentence.end];
        sentence.start = sentence.end - rest.trim_start().len();
    }
    found.push(sentence);
}

/// Returns a text of the same length whose lines end only where something ends.
fn unwrap_lines(text: &str) -> String {
    let mut flat = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let body = line.trim_end();
        let continues = lines.peek().is_some_and(|next| {
            let first = next.chars().find(|c| !matches!(c, ' ' | '\t'));
            body.len() >= WRAPPED_BYTES_MIN
                && first.is_some_and(|c| c.is_alphanumeric() || "\"'(\u{201C}\u{2018}\u{AB}".contains(c))
        });
        flat.push_str(body);
        // Each byte of white space at the end becomes one of these two bytes, so the length stays the same.
        let ends = line[body.len()..].bytes();
        flat.extend(ends.map(|byte| if byte == b'\n' && !continues { '\n' } else { ' ' }));
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Constraint, find_verbatim, one_line};
    use proptest::prelude::*;

    fn of(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn sentences_are_those_that_a_reader_would_name() {
        assert_eq!(
            of(
                "# The harbour\n\nDay 3. The Ida came in from the north with a load of\nsalt. Dr. Brandt, who had been a sailmaker, kept it! Yes."
            ),
            [
                "# The harbour\n\nDay 3.",
                "The Ida came in from the north with a load of\nsalt. Dr.",
                "Brandt, who had been a sailmaker, kept it! Yes.",
            ]
        );
    }

    #[test]
    fn heading_or_date_joins_next_sentence() {
        let text = "The officer counted every barrel.\n\nDay 23. The Amalia came in with cork, and more.\n\nDay 24.\n";
        let parts = of(text);
        assert_eq!(
            parts,
            [
                "The officer counted every barrel.",
                "Day 23. The Amalia came in with cork, and more.",
                "Day 24."
            ]
        );
    }

    #[test]
    fn rows_and_list_items_stand_alone() {
        let table = "| Amalia | 47 loads of wool |\n| Concordia | 12 loads of salt |\n- a first item of a list\n- another";
        assert_eq!(of(table).len(), 4, "{:?}", of(table));
    }

    #[test]
    fn long_text_is_cut_between_words() {
        let long = "word ".repeat(200);
        assert!(of(&long).iter().all(|part| part.len() <= 800 && part.ends_with("word")));
        assert_eq!(of(&"x".repeat(1900)).len(), 3);
        assert!(of(" \n\n ").is_empty());
    }

    proptest! {
        #[test]
        fn sentences_lose_nothing_and_are_found(text in "(?s)[a-dA-D .!?\n\r\t\u{E9}\u{3042}#|-]{0,200}") {
            let places = sentences(&text);
            let kept: String = places.iter().map(|place| &text[place.clone()]).collect();
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&kept), letters(&text));
            for place in &places {
                let words = one_line(&text[place.clone()]);
                prop_assert!(find_verbatim(&text, &words).is_some_and(|found| found.start <= place.start));
            }
        }
    }

    #[test]
    fn form_is_stated_and_checked() {
        let quotes = Quotes::new(["One of them.", "Another one.", "One of them."].map(str::to_owned), 40, 9);
        assert_eq!(quotes.schema()["items"]["enum"], json!(["One of them.", "Another one."]));
        assert_eq!(quotes.schema()["maxItems"], 2, "as many as there is room for");
        let many = Quotes::new((0..300).map(|n| format!("Sentence number {n}.")), 9000, 20);
        assert!(many.schema()["items"]["enum"].is_null(), "no grammar has room for so many");
        let rule = Constraint::Quotes(quotes);
        assert!(rule.check("[\"Anything at all\"]").is_ok() && rule.check("[]").is_ok());
        assert!(rule.check("[\"a\",\"b\",\"c\"]").is_err(), "more than two");
        assert!(rule.check("[1]").unwrap_err().contains("at most 2 sentences"));
        let rule = Constraint::Answers(Answers::new(vec![2, 5], 1000));
        assert!(rule.check("[{\"asked\":\"a\",\"facts\":[2],\"says\":\"b\"}]").is_ok());
        assert!(rule.check("[{\"asked\":\"a\",\"facts\":[],\"says\":\"\"}]").is_ok(), "not found");
        for (wrong, why) in [
            ("[{\"asked\":\"a\",\"facts\":2,\"says\":\"b\"}]", "a list with one item for each"),
            ("[{\"asked\":\"a\",\"facts\":[3],\"says\":\"b\"}]", "no fact with the number 3"),
            ("[{\"asked\":\" \",\"facts\":[2],\"says\":\"b\"}]", "`asked` must say"),
            ("[{\"asked\":\"a\",\"facts\":[2],\"says\":\"\"}]", "`says` must say"),
            ("[]", "1 to 6 items, and has 0"),
        ] {
            let fault = rule.check(wrong).unwrap_err();
            assert!(fault.contains(why), "{fault}");
        }
    }
}
