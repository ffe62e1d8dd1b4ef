//! Texts that say nothing: empty ones, placeholders, and echoes of what the agents were told.
//!
//! Two agents agree most easily on a template. A published log of an earlier controller shows two
//! "agreements" on the literal `<NUMBER>`. Such a text is refused before it can be compared.

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use thiserror::Error;

use super::echo::{fold, has_words, may_be_repeated, repeats, talk};
use super::memo::Memo;
use super::{CanonicalKind, redact};

/// Shorter texts than this many characters are compared with instructions only as whole lines, so
/// that a short right answer ("4", "yes") is not refused because a prompt happens to contain it.
const ECHO_CHARS_MIN: usize = 24;

/// Phrases that stand for an answer instead of being one, after folding; see [`PromptEcho::check`]. Single
/// everyday words are not among them: "string" may be the right answer.
const PLACEHOLDERS: [&str; 24] = [
    "answer here",
    "answer text",
    "canonical text",
    "canonical_text",
    "complete solution text",
    "final answer",
    "final solution",
    "final text",
    "final_solution",
    "insert answer",
    "insert answer here",
    "lorem ipsum",
    "n/a",
    "placeholder",
    "proposed answer",
    "tba",
    "tbd",
    "the answer",
    "the complete final text",
    "the final text",
    "todo",
    "your answer",
    "your answer here",
    "your final answer",
];

/// Those of them that are answers where the user has said them: "Answer N/A if there is none."
const ABBREVIATIONS: [&str; 5] = ["lorem ipsum", "n/a", "tba", "tbd", "todo"];

/// What private thoughts are asked to end with, in lower case.
const LABEL: &str = "answer:";

/// Why a text counts as vacuous.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Vacuity {
    /// Nothing is left after canonicalisation, or only invisible characters.
    #[error("it is empty")]
    Empty,
    /// A template's placeholder.
    #[error("`{0}` is a placeholder; write the answer itself")]
    Placeholder(String),
    /// The task, or a part of the instructions, said back.
    #[error("it repeats {0} instead of answering")]
    Echo(&'static str),
    /// Talk about the protocol, with the words that give it away.
    #[error("it speaks of `{0}`, which the user knows nothing about; write only what the user should read")]
    Talk(String),
    /// The word that agents end their thoughts with, before the answer.
    #[error("it begins with `Answer:`, which is no part of it; write only `{0}`")]
    Label(String),
}

/// How a text is recognised as something that its author was told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EchoRule {
    /// By the whole text alone, with the task as with the instructions.
    Whole,
    /// By rows of words that the instructions have too, and by talk about the protocol. The task said back counts only where it cannot be
    /// the answer, and words of the user never count.
    Words,
}

/// What an agent was told, ready to be recognised when it comes back.
#[derive(Clone, Debug)]
pub struct PromptEcho {
    rule: EchoRule,
    task: String,
    /// Whether the task has the label in it.
    has_label: bool,
    /// Whether the answer may be the task's own text.
    may_be_repeated: bool,
    /// Everything that the user has said, folded; empty under [`EchoRule::Whole`].
    said: Arc<str>,
    /// The agents' names.
    names: Vec<String>,
    /// The same for all runs of a batch, and kept once for them.
    instructions: Vec<Arc<str>>,
}

/// What an agent is told, by whose words they are.
#[derive(Clone, Debug, Default)]
pub struct PromptWords<'a> {
    /// The user's question or order.
    pub task: &'a str,
    /// All words of the user's, as [`heard`] returns them.
    pub heard: Arc<str>,
    /// The program's own words: packs, rules, prompts, examples.
    pub instructions: Vec<&'a str>,
    /// The agents' names.
    pub names: Vec<&'a str>,
}

/// Returns the words of the user's as they are compared: the task's, its documents' and those of rules. Documents may be long, so that
/// all agents share them.
#[must_use]
pub fn heard<'a>(rule: EchoRule, texts: impl Iterator<Item = &'a str>) -> Arc<str> {
    match rule {
        EchoRule::Whole => Arc::default(),
        EchoRule::Words => texts.map(fold).collect::<Vec<_>>().join("\n").into(),
    }
}

/// Instructions as they are compared, by their text.
static FOLDED: LazyLock<Memo<Arc<str>>> = LazyLock::new(|| Memo::new(256));

impl PromptEcho {
    /// Remembers what an agent is told.
    #[must_use]
    pub fn new(rule: EchoRule, said: &PromptWords<'_>) -> Self {
        let PromptWords { task, heard, instructions, names } = said;
        Self {
            rule,
            task: fold(task),
            has_label: task.to_lowercase().contains(LABEL),
            may_be_repeated: rule == EchoRule::Words && may_be_repeated(task),
            said: Arc::clone(heard),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            instructions: instructions.iter().map(|text| FOLDED.get(text, || fold(text).into())).collect(),
        }
    }

    /// Checks a final text against the rule that agreement is never vacuous.
    ///
    /// `canonical` is the canonical form of the text.
    ///
    /// # Errors
    ///
    /// [`Vacuity`] says what the text is instead of an answer.
    pub fn check(&self, kind: CanonicalKind, canonical: &str) -> Result<(), Vacuity> {
        // The blank braille pattern and variation selectors show nothing either.
        let blank = |c: char| matches!(c, '\u{2800}' | '\u{FE00}'..='\u{FE0F}');
        let visible = |c: char| !c.is_whitespace() && !super::escape::is_invisible(c) && !blank(c);
        if !canonical.chars().any(visible) {
            return Err(Vacuity::Empty);
        }
        // A number is no placeholder, and a choice is checked against its list already.
        let text = match kind {
            CanonicalKind::Choice | CanonicalKind::Number => return Ok(()),
            CanonicalKind::Json => match canonical.strip_prefix('"') {
                Some(string) => string.trim_end_matches('"'),
                None => return check_json(canonical),
            },
            CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Verbatim => canonical.trim(),
        };
        let folded = fold(text);
        let labelled =
            text.split_at_checked(LABEL.len()).filter(|(head, _)| head.eq_ignore_ascii_case(LABEL));
        if let Some((_, rest)) = labelled.filter(|_| !self.has_label) {
            return Err(Vacuity::Label(super::escape::excerpt(rest.trim())));
        }
        let is_wanted = ABBREVIATIONS.contains(&folded.as_str()) && has_words(&self.said, &folded);
        if !is_wanted && is_placeholder(text, &folded)
            || kind == CanonicalKind::Text && has_blank_to_fill(text)
        {
            return Err(Vacuity::Placeholder(super::escape::excerpt(canonical)));
        }
        let is_task = folded == self.task || folded.strip_prefix("task ") == Some(&self.task);
        if is_task && !self.may_be_repeated {
            return Err(Vacuity::Echo("the task"));
        }
        let is_long = folded.chars().count() >= ECHO_CHARS_MIN;
        let is_whole = is_long && self.instructions.iter().any(|text| text.contains(&folded));
        match self.rule {
            EchoRule::Whole if is_whole => Err(Vacuity::Echo("the instructions")),
            EchoRule::Whole => Ok(()),
            EchoRule::Words => self.check_words(text, &folded, is_whole),
        }
    }

    /// Looks for the program's own words in a text, and for talk about its workings.
    fn check_words(&self, text: &str, folded: &str, is_whole: bool) -> Result<(), Vacuity> {
        let is_whole = is_whole && !self.said.contains(folded);
        if is_whole || repeats(folded, &self.instructions, &self.said) {
            return Err(Vacuity::Echo("the instructions"));
        }
        talk(text, &self.names, &self.said).map_or(Ok(()), |words| Err(Vacuity::Talk(words)))
    }

    /// Returns true if the user has said this word, in whatever case.
    pub(crate) fn has_been_said(&self, word: &str) -> bool {
        self.said.split([' ', '\n']).any(|said| said.eq_ignore_ascii_case(word))
    }
}

/// A JSON value says nothing if all that it holds are dots, as they stand for a value in what agents are
/// shown. An empty list may be the answer, and so may a word that is a placeholder elsewhere.
fn check_json(canonical: &str) -> Result<(), Vacuity> {
    let value = serde_json::from_str(canonical).unwrap_or_default();
    let leaves = leaves(&value);
    if leaves.is_empty() || !leaves.iter().all(|leaf| leaf.as_str().is_some_and(is_dots)) {
        return Ok(());
    }
    Err(Vacuity::Placeholder(super::escape::excerpt(canonical)))
}

/// Returns every value inside `value` that holds no other.
fn leaves(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![value],
    }
}

fn is_placeholder(text: &str, folded: &str) -> bool {
    let mut inside = text;
    // `<NUMBER>`, and `{{NUMBER}}` as template languages write it.
    for _ in 0..3 {
        let bare = [('<', '>'), ('[', ']'), ('{', '}')]
            .iter()
            .find_map(|&(open, close)| inside.strip_prefix(open)?.strip_suffix(close));
        inside = bare.unwrap_or(inside);
    }
    // What was redacted may be the whole answer.
    let bracketed = inside.len() < text.len() && is_label(inside) && !redact::is_token(text);
    let bare = folded.trim_matches(['*', '_', ' ']);
    bracketed || is_dots(text) || PLACEHOLDERS.contains(&bare)
}

/// `…`, `...`, `---`, `???`, `… … …`: punctuation alone, repeated.
fn is_dots(text: &str) -> bool {
    text == "…" || text.chars().count() > 1 && text.chars().all(|c| ".…-_? ".contains(c))
}

/// A label such as `NUMBER` or `answer 1`: at most four words, so `[1, 2]`, `<b>x</b>` and
/// `[x for x in xs]` are none.
fn is_label(text: &str) -> bool {
    let has_letter = text.chars().any(char::is_alphabetic);
    let words_only = text.chars().all(|c| c.is_alphanumeric() || " _-|.'".contains(c));
    text.trim().is_empty() || has_letter && words_only && text.split_whitespace().count() <= 4
}

/// Returns true if prose holds a blank to fill in, such as `The answer is <NUMBER>.`
fn has_blank_to_fill(text: &str) -> bool {
    text.split('<').skip(1).filter_map(|rest| rest.split_once('>')).any(|(label, _)| {
        let capitals = label.chars().filter(char::is_ascii_uppercase).count();
        capitals >= 3 && label.chars().all(|c| c.is_ascii_uppercase() || "_ -".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{CanonicalRule, Canonicalizer, Reading};

    fn told(rule: EchoRule, task: &str, instructions: &[&str]) -> PromptEcho {
        let heard = heard(rule, std::iter::once(task));
        PromptEcho::new(
            rule,
            &PromptWords { task, heard, instructions: instructions.to_vec(), ..PromptWords::default() },
        )
    }

    #[track_caller]
    fn verdict(text: &str) -> Result<(), Vacuity> {
        let canonicalizer = Canonicalizer::new(&CanonicalRule::default(), Reading::Strict);
        let canonical = canonicalizer.canonicalize(text).unwrap();
        let rules = "Write the complete final text here, exactly as the user should read it.";
        let by = |rule| {
            told(rule, "What is the capital of Australia?", &[rules])
                .check(CanonicalKind::Text, &canonical.text)
        };
        // What the first rule refuses, the second refuses too.
        assert_eq!(by(EchoRule::Whole), by(EchoRule::Words), "{text}");
        by(EchoRule::Words)
    }

    #[test]
    fn what_stands_for_a_redacted_original_is_an_answer() {
        for (text, is_answer) in [("[EMAIL_1]", true), ("[EMAIL]", false), ("[ANSWER_1]", false)] {
            assert_eq!(verdict(text).is_ok(), is_answer, "{text}");
        }
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
            "… … …",
            "TBD",
            "N/A",
            "{{NUMBER}}",
            "<<answer 1>>",
            "The answer is <NUMBER>.",
            "__your answer__",
            "canonical_text",
            "Your answer here.",
            "[SOLVED]",
            "*Todo*",
            "\"final answer\"",
        ] {
            assert!(matches!(verdict(text), Err(Vacuity::Placeholder(_))), "{text}");
        }
    }

    #[test]
    fn invisible_text_is_empty() {
        for text in ["", " \n", "\u{200b}\u{feff}", "\u{202e}", "\u{2800}\u{fe0f}"] {
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
    fn an_abbreviation_that_the_user_asks_for_is_an_answer() {
        let check = |task: &str, text| told(EchoRule::Words, task, &[]).check(CanonicalKind::Text, text);
        assert_eq!(check("What is its colour? Answer N/A if it has none.", "N/A"), Ok(()));
        assert!(check("What is its colour?", "N/A").is_err());
        assert!(check("What is the answer?", "the answer").is_err());
    }

    #[test]
    fn a_greeting_may_be_said_back() {
        let greeting = |rule| told(rule, "hi", &[]).check(CanonicalKind::Text, "Hi!");
        assert_eq!(greeting(EchoRule::Whole), Err(Vacuity::Echo("the task")));
        assert_eq!(greeting(EchoRule::Words), Ok(()));
    }

    #[test]
    fn the_label_of_an_answer_is_none_of_it_unless_the_task_has_it() {
        let label = |task: &str, text| told(EchoRule::Words, task, &[]).check(CanonicalKind::Text, text);
        assert_eq!(label("Which gas?", "Answer: CO2"), Err(Vacuity::Label("CO2".to_owned())));
        assert_eq!(label("Which gas?", "The answer: CO2"), Ok(()));
        assert_eq!(label("Begin with `Answer:`. Which gas?", "Answer: CO2"), Ok(()));
    }

    #[test]
    fn json_and_code_are_not_templates() {
        let told = told(EchoRule::Words, "task", &[]);
        for text in ["[]", "{}", "[true]", "\"string\"", "null", "{\"label\":\"todo\"}", "[\"…\",1]"] {
            assert_eq!(told.check(CanonicalKind::Json, text), Ok(()), "{text}");
        }
        for text in ["\"<NUMBER>\"", "[\"…\"]", "{\"a\":[\"...\"],\"b\":\"…\"}"] {
            assert!(told.check(CanonicalKind::Json, text).is_err(), "{text}");
        }
        for text in ["[x for x in xs if x]", "Vec<String>", "let a: Vec<T> = b;"] {
            assert_eq!(told.check(CanonicalKind::Lines, text), Ok(()), "{text}");
        }
    }

    #[test]
    fn short_and_odd_answers_are_answers() {
        for text in [
            "4",
            "Canberra",
            "yes",
            "string",
            "solution",
            "-",
            "?",
            "[1, 2]",
            "{\"a\":1}",
            "<b>bold</b>",
            "x",
            "No.",
            "+",
        ] {
            assert_eq!(verdict(text), Ok(()), "{text}");
        }
    }
}
