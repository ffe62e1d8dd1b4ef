//! Constraints of a task that a program can check.
//!
//! The small models that were tried never obeyed "exactly three sentences", and both agents agreed all the same. A
//! check costs nothing, and settles what a second opinion does not.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use super::answer_schema::AnswerSchema;
use super::evidence::{Answers, Quotes, SplitAnswer};
use super::measure::{self, LetterCase, TextLanguage};
use super::{escape, shape};

/// One rule about the final text.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Constraint {
    /// The number of sentences (boundaries of Unicode UAX #29, without the points of shortened words).
    Sentences(Bounds),
    /// The number of words (UAX #29).
    Words(Bounds),
    /// The number of characters (Unicode scalar values).
    Characters(Bounds),
    /// The number of lines that are not blank.
    Lines(Bounds),
    /// The number of paragraphs: what blank lines separate, or lines such as `***` where there are any.
    Paragraphs(Bounds),
    /// The number of lines that begin with `*`, `-`, `+` or `•` and a blank.
    Bullets(Bounds),
    /// How often these words must be in the text, as words of their own. The case does not count.
    Mentions {
        /// The words.
        text: String,
        /// The least number allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<usize>,
        /// The greatest number allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<usize>,
    },
    /// All letters of the text must be small, or capital.
    Letters {
        /// The case of the letters.
        case: LetterCase,
    },
    /// The whole text must be in quotation marks.
    Quoted,
    /// The text must be JSON. A block may mark it as code.
    Json,
    /// The text must not be in another language beyond doubt.
    Language {
        /// The language, by its code of ISO 639-3.
        code: TextLanguage,
    },
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

impl Constraint {
    /// Returns the text that a person reads in place of the answer, where this rule gives the answer a form that only
    /// programs read.
    pub(crate) fn final_text(&self, text: &str) -> Option<String> {
        if !matches!(self, Self::Answers(_)) {
            return None;
        }
        Some(SplitAnswer::read(text).text())
    }

    /// Returns the schema of the form of JSON that this rule asks for, if any. It is sent to the server.
    pub(crate) fn schema(&self) -> Option<Value> {
        match self {
            Self::Quotes(quotes) => Some(quotes.schema()),
            Self::Answers(answers) => Some(answers.schema()),
            Self::Keys { keys } => Some(shape::with_keys(keys)),
            Self::Schema { schema } => Some(schema.form()),
            Self::Sentences(_)
            | Self::Words(_)
            | Self::Characters(_)
            | Self::Lines(_)
            | Self::Paragraphs(_)
            | Self::Bullets(_)
            | Self::Mentions { .. }
            | Self::Letters { .. }
            | Self::Quoted
            | Self::Json
            | Self::Language { .. }
            | Self::Contains { .. }
            | Self::Excludes { .. }
            | Self::StartsWith { .. }
            | Self::EndsWith { .. }
            | Self::Integer => None,
        }
    }

    /// Returns an example of that form, with placeholders that no answer would contain.
    pub(crate) fn example(&self) -> Option<&'static str> {
        if let Self::Quotes(_) = self {
            return Some(Quotes::EXAMPLE);
        }
        if let Self::Answers(_) = self {
            return Some(Answers::EXAMPLE);
        }
        if self.schema().is_some() { Some("…") } else { None }
    }

    /// Returns the texts that a user wrote into this rule.
    pub fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Mentions { text, .. }
            | Self::Contains { text }
            | Self::Excludes { text }
            | Self::StartsWith { text }
            | Self::EndsWith { text } => vec![text],
            Self::Keys { keys } => keys.iter_mut().collect(),
            Self::Sentences(_)
            | Self::Words(_)
            | Self::Characters(_)
            | Self::Lines(_)
            | Self::Paragraphs(_)
            | Self::Bullets(_)
            | Self::Letters { .. }
            | Self::Quoted
            | Self::Json
            | Self::Language { .. }
            | Self::Integer
            | Self::Schema { .. }
            | Self::Quotes(_)
            | Self::Answers(_) => Vec::new(),
        }
    }

    /// Parses the short form of the command line: `sentences=3`, `words=..40`, `words=10..40`, `mentions=WORD:2..`, `contains=TEXT`,
    /// `integer`, `keys=a,b`.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong and lists the kinds.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once('=').unwrap_or((text, ""));
        Ok(match kind {
            "sentences" => Self::Sentences(require_bounds(kind, value)?),
            "words" => Self::Words(require_bounds(kind, value)?),
            "characters" => Self::Characters(require_bounds(kind, value)?),
            "lines" => Self::Lines(require_bounds(kind, value)?),
            "paragraphs" => Self::Paragraphs(require_bounds(kind, value)?),
            "bullets" => Self::Bullets(require_bounds(kind, value)?),
            "mentions" => parse_mentions(&require_text(kind, value)?)?,
            "letters" if value == "lower" => Self::Letters { case: LetterCase::Lower },
            "letters" if value == "upper" => Self::Letters { case: LetterCase::Upper },
            "letters" => return Err(describe_need(kind, "`lower` or `upper`")),
            "language" => Self::Language { code: value.to_owned().try_into()? },
            "quoted" if value.is_empty() => Self::Quoted,
            "json" if value.is_empty() => Self::Json,
            "contains" => Self::Contains { text: require_text(kind, value)? },
            "excludes" => Self::Excludes { text: require_text(kind, value)? },
            "starts_with" => Self::StartsWith { text: require_text(kind, value)? },
            "ends_with" => Self::EndsWith { text: require_text(kind, value)? },
            "keys" => {
                let keys = require_text(kind, value)?;
                Self::Keys { keys: keys.split(',').map(|key| key.trim().to_owned()).collect() }
            }
            "schema" => {
                let value = serde_json::from_str::<Value>(&require_text(kind, value)?)
                    .map_err(|why| format!("the schema is not JSON: {why}"))?;
                Self::Schema { schema: value.try_into()? }
            }
            "integer" if value.is_empty() => Self::Integer,
            _ => {
                return Err(format!(
                    "`{}` is no constraint; write one of sentences=N, words=MIN..MAX, characters=..MAX, lines=N, paragraphs=N, bullets=N, mentions=WORD:MIN..MAX, letters=lower|upper, quoted, json, language=CODE, contains=TEXT, excludes=TEXT, starts_with=TEXT, ends_with=TEXT, keys=A,B, schema=JSON, integer",
                    escape::excerpt(text)
                ));
            }
        })
    }

    /// Returns true for a rule about the lines of a text as its author has laid it out, which its canonical form may have lost.
    pub(crate) fn is_of_layout(&self) -> bool {
        matches!(self, Self::Paragraphs(_) | Self::Bullets(_) | Self::Json)
    }

    /// Checks `text`: the text as its author has laid it out for a rule about its layout, such as its paragraphs, else its canonical form.
    ///
    /// # Errors
    ///
    /// A sentence that states the rule and the value that was found.
    pub fn check(&self, text: &str) -> Result<(), String> {
        match self {
            Self::Sentences(bounds) => bounds.check(self, measure::count_sentences(text)),
            Self::Words(bounds) => bounds.check(self, text.unicode_words().count()),
            Self::Characters(bounds) => bounds.check(self, text.chars().count()),
            Self::Lines(bounds) => {
                bounds.check(self, text.lines().filter(|line| !line.trim().is_empty()).count())
            }
            Self::Paragraphs(bounds) => bounds.check(self, measure::count_paragraphs(text)),
            Self::Bullets(bounds) => bounds.check(self, measure::count_bullets(text)),
            Self::Mentions { text: words, min, max } => {
                let found = measure::count_mentions(text, words);
                let holds = Bounds { min: *min, max: *max }.hold(found);
                if holds { Ok(()) } else { Err(format!("{self}; found: {found}")) }
            }
            Self::Letters { case } => self.holds_if(case.holds(text)),
            Self::Quoted => self.holds_if(measure::is_quoted(text)),
            Self::Json => match measure::json_fault(text) {
                Some(why) => Err(format!("{self}: {why}")),
                None => Ok(()),
            },
            Self::Language { code } => match code.other_in(text) {
                Some(other) => Err(format!("{self}, and it seems to be {other}")),
                None => Ok(()),
            },
            Self::Contains { text: part } => self.holds_if(text.contains(part)),
            Self::Excludes { text: part } => self.holds_if(!text.contains(part)),
            Self::StartsWith { text: part } => self.holds_if(text.starts_with(part)),
            Self::EndsWith { text: part } => self.holds_if(text.ends_with(part)),
            Self::Integer => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                self.holds_if(!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
            }
            Self::Keys { keys } => self.check_keys(keys, text),
            Self::Schema { schema } => match schema.fault(text) {
                Some(why) => Err(format!("the schema of the answer does not accept it: {why}")),
                None => Ok(()),
            },
            Self::Quotes(quotes) => self.holds_if(quotes.holds(text)),
            Self::Answers(answers) => match answers.fault(text) {
                Some(why) => Err(why),
                None => Ok(()),
            },
        }
    }

    /// Returns true if no text can satisfy this rule.
    pub fn is_impossible(&self) -> bool {
        let (Self::Sentences(Bounds { min, max })
        | Self::Words(Bounds { min, max })
        | Self::Characters(Bounds { min, max })
        | Self::Lines(Bounds { min, max })
        | Self::Paragraphs(Bounds { min, max })
        | Self::Bullets(Bounds { min, max })
        | Self::Mentions { min, max, .. }) = self
        else {
            return false;
        };
        min.zip(*max).is_some_and(|(min, max)| min > max)
    }

    fn holds_if(&self, holds: bool) -> Result<(), String> {
        if holds { Ok(()) } else { Err(self.to_string()) }
    }

    fn check_keys(&self, keys: &[String], text: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let missing: Vec<&str> =
            keys.iter().filter(|k| value.get(k.as_str()).is_none()).map(String::as_str).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!("{self}; missing: {}", missing.join(", ")))
    }
}

/// The rule in words, as agents and people read it.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sentences(bounds) => bounds.write_with(f, "sentence"),
            Self::Words(bounds) => bounds.write_with(f, "word"),
            Self::Characters(bounds) => bounds.write_with(f, "character"),
            Self::Lines(bounds) => bounds.write_with(f, "line"),
            Self::Paragraphs(bounds) => bounds.write_with(f, "paragraph"),
            Self::Bullets(bounds) => bounds.write_with(f, "bullet point"),
            Self::Mentions { text, max: Some(0), .. } => write!(f, "it must not mention {text:?}"),
            Self::Mentions { text, min: Some(1), max: None } => write!(f, "it must mention {text:?}"),
            Self::Mentions { text, min, max } => {
                write!(f, "it must mention {text:?} ")?;
                Bounds { min: *min, max: *max }.write_with(f, "time")
            }
            Self::Letters { case: LetterCase::Lower } => f.write_str("it must have small letters only"),
            Self::Letters { case: LetterCase::Upper } => f.write_str("it must have capital letters only"),
            Self::Quoted => f.write_str("the whole of it must be in quotation marks"),
            Self::Json => f.write_str("it must be JSON"),
            Self::Language { code } => write!(f, "it must be {code}"),
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
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let min: Option<usize> = if min.is_empty() { None } else { Some(min.parse().ok()?) };
        let max: Option<usize> = if max.is_empty() { None } else { Some(max.parse().ok()?) };
        let is_empty = min.is_none() && max.is_none();
        if is_empty || min.zip(max).is_some_and(|(min, max)| min > max) {
            return None;
        }
        Some(Self { min, max })
    }

    fn hold(self, found: usize) -> bool {
        self.min.is_none_or(|min| found >= min) && self.max.is_none_or(|max| found <= max)
    }

    fn check(self, rule: &Constraint, found: usize) -> Result<(), String> {
        if self.hold(found) { Ok(()) } else { Err(format!("{rule} wanted, {found} found")) }
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

impl Bounds {
    /// Writes the bounds with the word for what is counted.
    fn write_with(self, f: &mut fmt::Formatter<'_>, unit: &str) -> fmt::Result {
        let plural = if self.max.or(self.min) == Some(1) { "" } else { "s" };
        write!(f, "{self} {unit}{plural}")
    }
}

fn require_bounds(kind: &str, value: &str) -> Result<Bounds, String> {
    Bounds::parse(value).ok_or_else(|| describe_need(kind, "a number or a range"))
}

/// Reads `WORD`, or `WORD:2..4`. Digits and points behind a colon are bounds, and no part of the words.
fn parse_mentions(value: &str) -> Result<Constraint, String> {
    let (text, bounds) = match value.rsplit_once(':') {
        Some((text, bounds)) if bounds.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.') => {
            (text, require_bounds("mentions", bounds)?)
        }
        Some(_) | None => (value, Bounds { min: Some(1), max: None }),
    };
    Ok(Constraint::Mentions { text: require_text("mentions", text)?, min: bounds.min, max: bounds.max })
}

fn require_text(kind: &str, value: &str) -> Result<String, String> {
    if value.is_empty() { Err(describe_need(kind, "a text")) } else { Ok(value.to_owned()) }
}

fn describe_need(kind: &str, what: &str) -> String {
    let value = match kind {
        "sentences" | "lines" | "paragraphs" | "bullets" => "3",
        "mentions" => "peace:2..",
        "letters" => "lower",
        "words" | "characters" => "10..40",
        "keys" => "name,year",
        "schema" => r#"{"type":"object"}"#,
        _ => "Dear",
    };
    format!("constraint `{kind}` needs {what}, such as `{kind}={value}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn broken(rule: &str, text: &str) -> Option<String> {
        Constraint::parse(rule).unwrap().check(text).err()
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
    fn forms_of_the_whole_text() {
        assert_eq!(broken("paragraphs=2", "One.\n\nTwo."), None);
        assert_eq!(broken("bullets=2..", "- one").unwrap(), "at least 2 bullet points wanted, 1 found");
        assert_eq!(broken("mentions=war", "The War."), None);
        assert_eq!(broken("mentions=war:0", "A war.").unwrap(), "it must not mention \"war\"; found: 1");
        assert_eq!(broken("mentions=new york:2..3", "New York, New York"), None);
        assert_eq!(broken("mentions=a: b", "a: b"), None);
        assert_eq!(broken("letters=lower", "all of it"), None);
        assert!(broken("letters=upper", "NOT all").is_some());
        assert_eq!(broken("quoted", "“All of it.”"), None);
        assert!(broken("json", "{").unwrap().starts_with("it must be JSON: "));
        assert_eq!(broken("language=deu", "Das ist ein deutscher Satz, und noch einer dazu."), None);
        let other = broken("language=deu", "This is an English sentence, and here is another one of them.");
        assert_eq!(other.unwrap(), "it must be German, and it seems to be English");
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, part) in [
            ("sentence=3", "is no constraint"),
            ("words=many", "needs a number or a range, such as `words=10..40`"),
            ("words=9..3", "needs a number"),
            ("contains=", "needs a text"),
            ("mentions=war:9..3", "needs a number or a range, such as `mentions=peace:2..`"),
            ("mentions=:2", "needs a text"),
            ("letters=small", "needs `lower` or `upper`"),
            ("quoted=yes", "is no constraint"),
            ("language=english", "write one of ISO 639-3, such as `fin`"),
        ] {
            let message = Constraint::parse(text).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
