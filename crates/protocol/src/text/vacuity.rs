//! Texts that say nothing: empty ones, placeholders, and echoes of the prompt.
//!
//! Two agents agree most easily on a template. A published log of an earlier controller shows two
//! "agreements" on the literal `<NUMBER>`. Such a text is refused before it can be compared.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::echo::{find_talk, fold, has_words, may_be_repeated, repeats};
use super::memo::Memo;
use super::{CanonicalKind, redact};

/// The shortest text that is searched for in the instructions as a whole, in characters. A short right answer ("4",
/// "yes") is not refused because a prompt happens to contain it.
const ECHO_CHARS_MIN: usize = 24;

/// Phrases that stand for an answer instead of being one, after folding; see [`PromptEcho::check`]. Single everyday
/// words are not among them, because "string" may be the right answer.
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

/// The placeholders that are answers if the user has written them: `Answer N/A if there is none.`
const ABBREVIATIONS: [&str; 5] = ["lorem ipsum", "n/a", "tba", "tbd", "todo"];

/// The word before the answer at the end of private thoughts, in lower case.
const LABEL: &str = "answer:";

/// The reason why a text counts as vacuous.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Vacuity {
    /// Nothing is left after canonicalisation, or only invisible characters.
    #[error("it is empty")]
    Empty,
    /// The text is the placeholder of a template.
    #[error("`{0}` is a placeholder; write the answer itself")]
    Placeholder(String),
    /// The text repeats the task or a part of the instructions.
    #[error("it repeats {0} instead of answering")]
    Echo(&'static str),
    /// The text talks about the protocol, in the words given here.
    #[error("it speaks of `{0}`, which the user knows nothing about; write only what the user should read")]
    Talk(String),
    /// The text begins with the word that agents write before the answer at the end of their thoughts.
    #[error("it begins with `Answer:`, which is no part of it; write only `{0}`")]
    Label(String),
}

/// The words of an agent's prompt, ready to be recognised when they come back.
#[derive(Clone, Debug)]
pub struct PromptEcho {
    task: String,
    /// Whether the task contains the label.
    has_label: bool,
    /// Whether the answer may be the task's own text.
    may_be_repeated: bool,
    /// All words of the user, folded.
    user_words: Arc<str>,
    /// The names of the agents.
    names: Vec<String>,
    /// The instructions, folded. They are the same for all runs of a batch, and are kept once for them.
    instructions: Vec<Arc<str>>,
}

/// Returns the user's words in the form in which they are compared: those of the task, of its documents and of rules.
/// Documents may be long, so all agents share them.
pub fn fold_user_words<'a>(texts: impl Iterator<Item = &'a str>) -> Arc<str> {
    texts.map(fold).collect::<Vec<_>>().join("\n").into()
}

impl PromptEcho {
    /// Keeps the words of an agent's prompt.
    ///
    /// `user_words` are all words of the user, as [`fold_user_words`] returns them, and `instructions` are the program's own words: packs,
    /// rules, prompts, examples. `names` are those of the agents.
    pub fn new(
        memo: &Memo<Arc<str>>,
        task: &str,
        user_words: &Arc<str>,
        instructions: &[&str],
        names: Vec<String>,
    ) -> Self {
        Self {
            task: fold(task),
            has_label: task.to_lowercase().contains(LABEL),
            may_be_repeated: may_be_repeated(task),
            user_words: Arc::clone(user_words),
            names,
            instructions: instructions.iter().map(|text| memo.get(text, || fold(text).into())).collect(),
        }
    }

    /// Checks a final text against the rule that agreement is never vacuous. Rows of words that are in the instructions count as an echo,
    /// and so does talk about the protocol. A repeated task counts only if it cannot be the answer, and words of the user never count.
    ///
    /// `canonical` is the canonical form of the text.
    ///
    /// # Errors
    ///
    /// [`Vacuity`] says why the text is not an answer.
    pub fn check(&self, kind: CanonicalKind, canonical: &str) -> Result<(), Vacuity> {
        if !canonical.chars().any(is_visible) {
            return Err(Vacuity::Empty);
        }
        // A number is not a placeholder, and a choice has been checked against its list already.
        let text = match kind {
            CanonicalKind::Choice | CanonicalKind::Number => return Ok(()),
            CanonicalKind::Json => match canonical.strip_prefix('"') {
                Some(string) => string.trim_end_matches('"'),
                None => return check_json(canonical),
            },
            CanonicalKind::Text
            | CanonicalKind::Lines
            | CanonicalKind::Verbatim
            | CanonicalKind::Behaviour => canonical.trim(),
        };
        let folded = fold(text);
        if !self.has_label
            && let Some((head, rest)) = text.split_at_checked(LABEL.len())
            && head.eq_ignore_ascii_case(LABEL)
        {
            return Err(Vacuity::Label(super::escape::excerpt(rest.trim())));
        }
        let is_requested = ABBREVIATIONS.contains(&folded.as_str()) && has_words(&self.user_words, &folded);
        if !is_requested && is_placeholder(text, &folded)
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
        self.check_words(text, &folded, is_whole)
    }

    /// Looks in a text for the program's own words, and for talk about its workings.
    fn check_words(&self, text: &str, folded: &str, is_whole: bool) -> Result<(), Vacuity> {
        let is_whole = is_whole && !self.user_words.contains(folded);
        if is_whole || repeats(folded, &self.instructions, &self.user_words) {
            return Err(Vacuity::Echo("the instructions"));
        }
        match find_talk(text, &self.names, &self.user_words) {
            Some(words) => Err(Vacuity::Talk(words)),
            None => Ok(()),
        }
    }

    /// Returns true if the user has written this word, in upper or lower case.
    pub(crate) fn is_user_word(&self, word: &str) -> bool {
        self.user_words.split([' ', '\n']).any(|other| other.eq_ignore_ascii_case(word))
    }
}

fn is_visible(c: char) -> bool {
    // The blank braille pattern and variation selectors show nothing either.
    let is_blank = matches!(c, '\u{2800}' | '\u{FE00}'..='\u{FE0F}');
    !c.is_whitespace() && !super::escape::is_invisible(c) && !is_blank
}

/// Checks a JSON value. It says nothing if it holds only dots, which replace the values in the examples for agents. An
/// empty list may be the answer, and so may a word that is a placeholder elsewhere.
fn check_json(canonical: &str) -> Result<(), Vacuity> {
    let value = serde_json::from_str(canonical).unwrap_or_default();
    let leaves = leaves(&value);
    if leaves.is_empty() || !leaves.iter().all(|leaf| leaf.as_str().is_some_and(is_dots)) {
        return Ok(());
    }
    Err(Vacuity::Placeholder(super::escape::excerpt(canonical)))
}

/// Returns every value inside `value` that contains no other value.
fn leaves(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![value],
    }
}

fn is_placeholder(text: &str, folded: &str) -> bool {
    let mut inside = text;
    // The loop also opens `{{NUMBER}}`, as template languages write `<NUMBER>`.
    for _ in 0..3 {
        let bare = [('<', '>'), ('[', ']'), ('{', '}')]
            .iter()
            .find_map(|&(open, close)| inside.strip_prefix(open)?.strip_suffix(close));
        inside = bare.unwrap_or(inside);
    }
    // A redacted original may be the whole answer.
    let bracketed = inside.len() < text.len() && is_label(inside) && !redact::is_token(text);
    let bare = folded.trim_matches(['*', '_', ' ']);
    bracketed || is_dots(text) || PLACEHOLDERS.contains(&bare)
}

/// Returns true for punctuation alone, repeated: `…`, `...`, `---`, `???`, `… … …`.
fn is_dots(text: &str) -> bool {
    text == "…" || text.chars().count() > 1 && text.chars().all(|c| ".…-_? ".contains(c))
}

/// Returns true for a label such as `NUMBER` or `answer 1`. It has at most four words, so `[1, 2]`, `<b>x</b>` and
/// `[x for x in xs]` are not labels.
fn is_label(text: &str) -> bool {
    let has_letter = text.chars().any(char::is_alphabetic);
    let words_only = text.chars().all(|c| c.is_alphanumeric() || " _-|.'".contains(c));
    text.trim().is_empty() || has_letter && words_only && text.split_whitespace().count() <= 4
}

/// Returns true if prose contains a blank to fill in, such as `The answer is <NUMBER>.`
fn has_blank_to_fill(text: &str) -> bool {
    text.split('<').skip(1).filter_map(|rest| rest.split_once('>')).any(|(label, _)| {
        let capitals = label.chars().filter(char::is_ascii_uppercase).count();
        capitals >= 3 && label.chars().all(|c| c.is_ascii_uppercase() || "_ -".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{CanonicalRule, Canonicalizer};

    fn echo(task: &str, instructions: &[&str]) -> PromptEcho {
        PromptEcho::new(
            &Memo::default(),
            task,
            &fold_user_words(std::iter::once(task)),
            instructions,
            Vec::new(),
        )
    }

    #[track_caller]
    fn verdict(text: &str) -> Result<(), Vacuity> {
        let canonicalizer = Canonicalizer::new(&CanonicalRule::default());
        let canonical = canonicalizer.canonicalize(text).unwrap();
        let rules = "Write the complete final text here, exactly as the user should read it.";
        echo("What is the capital of Australia?", &[rules]).check(CanonicalKind::Text, &canonical.text)
    }

    #[test]
    fn redaction_token_is_answer() {
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
        for text in ["", " \n", "\u{200e}\u{034f}", "\u{200d}", "\u{2800}\u{fe0f}"] {
            assert_eq!(verdict(text), Err(Vacuity::Empty), "{text:?}");
        }
    }

    #[test]
    fn echoes_are_refused() {
        assert_eq!(verdict("what is the capital of australia"), Err(Vacuity::Echo("the task")));
        let text = "the complete final text here, exactly as the user";
        assert_eq!(verdict(text), Err(Vacuity::Echo("the instructions")));
    }

    #[test]
    fn requested_abbreviation_is_answer() {
        let check = |task: &str, text| echo(task, &[]).check(CanonicalKind::Text, text);
        assert_eq!(check("What is its colour? Answer N/A if it has none.", "N/A"), Ok(()));
        assert!(check("What is its colour?", "N/A").is_err());
        assert!(check("What is the answer?", "the answer").is_err());
    }

    #[test]
    fn greeting_may_be_repeated() {
        assert_eq!(echo("hi", &[]).check(CanonicalKind::Text, "Hi!"), Ok(()));
    }

    /// The label passes if the task itself has it.
    #[test]
    fn answer_label_is_refused() {
        let label = |task: &str, text| echo(task, &[]).check(CanonicalKind::Text, text);
        assert_eq!(label("Which gas?", "Answer: CO2"), Err(Vacuity::Label("CO2".to_owned())));
        assert_eq!(label("Which gas?", "The answer: CO2"), Ok(()));
        assert_eq!(label("Begin with `Answer:`. Which gas?", "Answer: CO2"), Ok(()));
    }

    #[test]
    fn json_and_code_are_not_templates() {
        let echo = echo("task", &[]);
        for text in ["[]", "{}", "[true]", "\"string\"", "null", "{\"label\":\"todo\"}", "[\"…\",1]"] {
            assert_eq!(echo.check(CanonicalKind::Json, text), Ok(()), "{text}");
        }
        for text in ["\"<NUMBER>\"", "[\"…\"]", "{\"a\":[\"...\"],\"b\":\"…\"}"] {
            assert!(echo.check(CanonicalKind::Json, text).is_err(), "{text}");
        }
        for text in ["[x for x in xs if x]", "Vec<String>", "let a: Vec<T> = b;"] {
            assert_eq!(echo.check(CanonicalKind::Lines, text), Ok(()), "{text}");
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
