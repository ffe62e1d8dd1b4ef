//! Constraints of a task that a program can check.
//!
//! The small models that were tried never obeyed "exactly three sentences", and both agents agreed all the same. A
//! check costs nothing, and settles what a second opinion does not.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use unicode_segmentation::UnicodeSegmentation;

use super::answer_schema::AnswerSchema;
use super::evidence::{Answers, Quotes, Said};
use super::{escape, shape};

/// One rule about the final text.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Constraint {
    /// The number of sentences (boundaries of Unicode UAX #29; a sentence counts if it has a letter or digit).
    Sentences(Bounds),
    /// The number of words (UAX #29).
    Words(Bounds),
    /// The number of characters (Unicode scalar values).
    Characters(Bounds),
    /// The number of lines that are not blank.
    Lines(Bounds),
    /// The text must contain this string, letter for letter.
    Contains {
        /// The string that must occur.
        text: String,
    },
    /// The text must not contain this string, letter for letter.
    Excludes {
        /// The string that must not occur.
        text: String,
    },
    /// The text must begin with this string.
    StartsWith {
        /// The beginning.
        text: String,
    },
    /// The text must end with this string.
    EndsWith {
        /// The end.
        text: String,
    },
    /// The text must be a whole number.
    Integer,
    /// The text must be a JSON object with these keys.
    Keys {
        /// The keys that must be present.
        keys: Vec<String>,
    },
    /// The text must be JSON that this schema accepts.
    Schema { schema: AnswerSchema },
    /// The text must be a JSON list of sentences of a document. Rolesets and users cannot ask for this.
    #[serde(skip)]
    Quotes(Quotes),
    /// The text must be a JSON list of answers with the facts behind them. Rolesets and users cannot ask for this.
    #[serde(skip)]
    Answers(Answers),
}

/// Inclusive bounds. A missing bound does not apply.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The least number allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<usize>,
    /// The greatest number allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
}

/// A constraint that a text breaks, with the reason.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("{0}")]
pub struct Broken(String);

/// The form of JSON that a rule asks for.
pub(crate) struct TextForm {
    /// The schema, which is sent to the server.
    pub(crate) schema: Value,
    /// An example of the form, with placeholders that no answer would contain.
    pub(crate) example: &'static str,
}

impl Constraint {
    /// Returns the text that a person reads in place of the answer, where this rule gives the answer a form that only
    /// programs read.
    pub(crate) fn final_text(&self, text: &str) -> Option<String> {
        let is_for_programs = matches!(self, Self::Answers(_));
        is_for_programs.then(|| Said::read(text).shown())
    }

    /// Returns the form of JSON that this rule asks for, if any.
    pub(crate) fn form(&self) -> Option<TextForm> {
        let (schema, example) = match self {
            Self::Quotes(quotes) => (quotes.schema(), Quotes::EXAMPLE),
            Self::Answers(answers) => (answers.schema(), Answers::EXAMPLE),
            Self::Keys { keys } => (shape::with_keys(keys), "…"),
            Self::Schema { schema } => (schema.form(), "…"),
            Self::Sentences(_)
            | Self::Words(_)
            | Self::Characters(_)
            | Self::Lines(_)
            | Self::Contains { .. }
            | Self::Excludes { .. }
            | Self::StartsWith { .. }
            | Self::EndsWith { .. }
            | Self::Integer => return None,
        };
        Some(TextForm { schema, example })
    }

    /// Returns the texts that a user wrote into this rule.
    pub fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Contains { text }
            | Self::Excludes { text }
            | Self::StartsWith { text }
            | Self::EndsWith { text } => vec![text],
            Self::Keys { keys } => keys.iter_mut().collect(),
            Self::Sentences(_)
            | Self::Words(_)
            | Self::Characters(_)
            | Self::Lines(_)
            | Self::Integer
            | Self::Schema { .. }
            | Self::Quotes(_)
            | Self::Answers(_) => Vec::new(),
        }
    }

    /// Parses the short form of the command line: `sentences=3`, `words=..40`, `words=10..40`, `contains=TEXT`,
    /// `integer`, `keys=a,b`.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong and lists the kinds.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once('=').unwrap_or((text, ""));
        let needs =
            |what: &str| format!("constraint `{kind}` needs {what}, such as `{kind}={}`", example(kind));
        let bounds = || Bounds::parse(value).ok_or_else(|| needs("a number or a range"));
        let literal = || if value.is_empty() { Err(needs("a text")) } else { Ok(value.to_owned()) };
        Ok(match kind {
            "sentences" => Self::Sentences(bounds()?),
            "words" => Self::Words(bounds()?),
            "characters" => Self::Characters(bounds()?),
            "lines" => Self::Lines(bounds()?),
            "contains" => Self::Contains { text: literal()? },
            "excludes" => Self::Excludes { text: literal()? },
            "starts_with" => Self::StartsWith { text: literal()? },
            "ends_with" => Self::EndsWith { text: literal()? },
            "keys" => Self::Keys { keys: literal()?.split(',').map(|k| k.trim().to_owned()).collect() },
            "schema" => {
                let value = serde_json::from_str::<Value>(&literal()?)
                    .map_err(|why| format!("the schema is not JSON: {why}"))?;
                Self::Schema { schema: value.try_into()? }
            }
            "integer" if value.is_empty() => Self::Integer,
            _ => {
                return Err(format!(
                    "`{}` is no constraint; write one of sentences=N, words=MIN..MAX, characters=..MAX, lines=N, contains=TEXT, excludes=TEXT, starts_with=TEXT, ends_with=TEXT, keys=A,B, schema=JSON, integer",
                    escape::excerpt(text)
                ));
            }
        })
    }

    /// Checks `text`, the canonical form of a final text.
    ///
    /// # Errors
    ///
    /// [`Broken`] states the rule and the value that was found.
    pub fn check(&self, text: &str) -> Result<(), Broken> {
        match self {
            Self::Sentences(bounds) => bounds.check(self, text.unicode_sentences().count()),
            Self::Words(bounds) => bounds.check(self, text.unicode_words().count()),
            Self::Characters(bounds) => bounds.check(self, text.chars().count()),
            Self::Lines(bounds) => {
                bounds.check(self, text.lines().filter(|line| !line.trim().is_empty()).count())
            }
            Self::Contains { text: part } => self.holds_if(text.contains(part)),
            Self::Excludes { text: part } => self.holds_if(!text.contains(part)),
            Self::StartsWith { text: part } => self.holds_if(text.starts_with(part)),
            Self::EndsWith { text: part } => self.holds_if(text.ends_with(part)),
            Self::Integer => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                self.holds_if(!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
            }
            Self::Keys { keys } => self.check_keys(keys, text),
            Self::Schema { schema } => {
                let fault = schema.fault(text);
                fault.map_or(Ok(()), |why| {
                    Err(Broken(format!("the schema of the answer does not accept it: {why}")))
                })
            }
            Self::Quotes(quotes) => self.holds_if(quotes.holds(text)),
            Self::Answers(answers) => answers.fault(text).map_or(Ok(()), |why| Err(Broken(why))),
        }
    }

    /// Returns true if no text can satisfy this rule.
    pub fn is_impossible(&self) -> bool {
        match self {
            Self::Sentences(b) | Self::Words(b) | Self::Characters(b) | Self::Lines(b) => {
                b.min.zip(b.max).is_some_and(|(min, max)| min > max)
            }
            Self::Contains { .. }
            | Self::Excludes { .. }
            | Self::StartsWith { .. }
            | Self::EndsWith { .. }
            | Self::Integer
            | Self::Keys { .. }
            | Self::Schema { .. }
            | Self::Quotes(_)
            | Self::Answers(_) => false,
        }
    }

    fn holds_if(&self, holds: bool) -> Result<(), Broken> {
        if holds { Ok(()) } else { Err(Broken(self.to_string())) }
    }

    fn check_keys(&self, keys: &[String], text: &str) -> Result<(), Broken> {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let missing: Vec<&str> =
            keys.iter().filter(|k| value.get(k.as_str()).is_none()).map(String::as_str).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Broken(format!("{self}; missing: {}", missing.join(", "))))
    }
}

/// The rule in words, as agents and people read it.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sentences(bounds) => write!(f, "{bounds} sentences"),
            Self::Words(bounds) => write!(f, "{bounds} words"),
            Self::Characters(bounds) => write!(f, "{bounds} characters"),
            Self::Lines(bounds) => write!(f, "{bounds} lines"),
            Self::Contains { text } => write!(f, "it must contain {text:?}"),
            Self::Excludes { text } => write!(f, "it must not contain {text:?}"),
            Self::StartsWith { text } => write!(f, "it must start with {text:?}"),
            Self::EndsWith { text } => write!(f, "it must end with {text:?}"),
            Self::Integer => f.write_str("it must be a whole number"),
            Self::Keys { keys } => write!(f, "it must be a JSON object with the keys {}", keys.join(", ")),
            Self::Schema { schema } => write!(f, "it must be JSON that this schema accepts: {schema}"),
            Self::Quotes(quotes) => quotes.fmt(f),
            Self::Answers(answers) => answers.fmt(f),
        }
    }
}

impl Bounds {
    fn parse(text: &str) -> Option<Self> {
        let number = |t: &str| if t.is_empty() { Some(None) } else { t.parse().ok().map(Some) };
        let (min, max) = match text.split_once("..") {
            Some((min, max)) => (number(min)?, number(max)?),
            None => (number(text)?, number(text)?),
        };
        let is_range = min.is_some() || max.is_some();
        let ordered = min.zip(max).is_none_or(|(a, b)| a <= b);
        (is_range && ordered).then_some(Self { min, max })
    }

    fn check(self, rule: &Constraint, found: usize) -> Result<(), Broken> {
        let in_bounds = self.min.is_none_or(|min| found >= min) && self.max.is_none_or(|max| found <= max);
        if in_bounds { Ok(()) } else { Err(Broken(format!("{rule} wanted, {found} found"))) }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => write!(f, "exactly {min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => f.write_str("any number of"),
        }
    }
}

fn example(kind: &str) -> &'static str {
    match kind {
        "sentences" | "lines" => "3",
        "words" | "characters" => "10..40",
        "keys" => "name,year",
        "schema" => r#"{"type":"object"}"#,
        _ => "Dear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn broken(rule: &str, text: &str) -> Option<String> {
        Constraint::parse(rule).unwrap().check(text).err().map(|b| b.to_string())
    }

    #[test]
    fn counts_are_those_a_reader_would_make() {
        assert_eq!(broken("sentences=3", "One. Two! Is it 3.5 or four?"), None);
        assert_eq!(broken("sentences=3", "Only one here.").unwrap(), "exactly 3 sentences wanted, 1 found");
        assert_eq!(broken("words=..3", "it's three words"), None);
        assert_eq!(broken("words=2..", "one").unwrap(), "at least 2 words wanted, 1 found");
        assert_eq!(broken("lines=2", "a\n\nb"), None);
        assert_eq!(broken("characters=1..2", "漢字"), None);
    }

    #[test]
    fn texts_keys_and_whole_numbers() {
        assert_eq!(broken("contains=x=1", "let x=1;"), None);
        assert!(broken("excludes=foo", "a foo").is_some());
        assert!(broken("starts_with=Dear", "dear").is_some());
        assert_eq!(broken("ends_with=.", "End."), None);
        assert_eq!(broken("integer", "-12"), None);
        assert!(broken("integer", "1.5").is_some());
        assert_eq!(broken("keys=a, b", "{\"a\":1,\"b\":null}"), None);
        assert!(broken("keys=a,c", "{\"a\":1}").unwrap().ends_with("missing: c"));
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, part) in [
            ("sentence=3", "is no constraint"),
            ("words=many", "needs a number or a range, such as `words=10..40`"),
            ("words=9..3", "needs a number"),
            ("contains=", "needs a text"),
        ] {
            let message = Constraint::parse(text).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
