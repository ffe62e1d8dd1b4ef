//! One line of a file of tasks.
//!
//! The input is a line of JSON. The output is a task, or the reason why the line is not one. No file is read here: documents are
//! named, or are in the line.

use std::collections::BTreeMap;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::error::Category;
use serde_json::value::{RawValue, to_raw_value};

use super::grader::Grader;
use super::public_row::task_line;
use super::task_form::{
    DocumentLine, Fields, TaskForm, WrittenRule, WrittenTask, label, list_fields, raw, text_of,
};
use crate::engine::{ANSWER, require_plain_id};
use protocol::text::{CanonicalKind, CanonicalRule};

/// The longest line that is read, in bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// The longest id, in characters.
const ID_CHARS_MAX: usize = 200;

/// A task, as read from a line.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskLine {
    /// The id, unique among the tasks of the batch.
    pub id: String,
    /// The question or order.
    pub prompt: String,
    /// The documents of the task.
    pub documents: Vec<DocumentLine>,
    /// The only roleset that this task is for.
    pub roleset: Option<String>,
    /// The right answer, if it is known; no model sees it.
    pub answer: Option<String>,
    /// Whether the answer is written as a JSON number, which has a decimal point whatever the roleset says.
    pub answer_is_number: bool,
    /// The rule for which differences between texts do not count, if it is not that of the roleset.
    pub canonical: Option<CanonicalRule>,
    /// The grader of the answer.
    pub grader: Grader,
    /// The labels of the task, by name.
    pub meta: BTreeMap<String, String>,
}

impl TaskLine {
    /// Parses the line with this number, from 1, in a file of this form.
    ///
    /// Returns the reason why the line is not a task.
    pub fn parse(line: &str, number: u64, form: &TaskForm) -> Result<Self, String> {
        let written = if form.names.is_empty() {
            match read_written(line) {
                Ok(written) => written,
                Err(why) => read_written(&task_line(line, number)?.ok_or(why)?)?,
            }
        } else {
            let fields = serde_json::from_str(line).map_err(|why| describe_fault(line, &why))?;
            let line = serde_json::to_string(&form.rename(fields, number)?);
            read_written(&line.map_err(|why| describe_json_fault(&why))?)?
        };
        let is_text_or_number =
            written.id.get().starts_with(['"', '-']) || written.id.get().starts_with(char::is_numeric);
        if !is_text_or_number {
            return Err("its `id` is neither a text nor a number".to_owned());
        }
        if is_broken(&written.id) {
            return Err("its `id` has half of a surrogate pair in it".to_owned());
        }
        let id = text_of(&written.id);
        if id.is_empty() || id.chars().count() > ID_CHARS_MAX || id.chars().any(char::is_control) {
            return Err(format!(
                "its `id` is empty, longer than {ID_CHARS_MAX} characters, or has a control character in it"
            ));
        }
        if written.prompt.trim().is_empty() {
            return Err("its `prompt` is empty".to_owned());
        }
        let canonical = written.canonical.map(WrittenRule::into_rule);
        if let Some(rule) = &canonical {
            if rule.kind == CanonicalKind::Choice && rule.choices.is_empty() {
                return Err("a `canonical` of kind `choice` needs `choices`".to_owned());
            }
            if rule.decimal.is_some() && rule.kind != CanonicalKind::Number {
                return Err("`decimal` goes with a `canonical` of kind `number` only".to_owned());
            }
        }
        let (answer, answer_is_number) = known_answer(written.answer.as_deref(), form)?;
        let grader = written.grader.unwrap_or(form.grader);
        if grader == Grader::Command {
            require_gradable(form.grader_command.as_deref(), &id, answer.as_deref())?;
        }
        if let Some(answer) = &answer {
            grader
                .require_possible(answer)
                .map_err(|why| format!("its `answer` can never be the answer: {why}"))?;
        }
        Ok(Self {
            id,
            prompt: written.prompt.trim().to_owned(),
            documents: written.documents.unwrap_or_default(),
            roleset: written.roleset,
            answer_is_number,
            answer,
            canonical,
            grader,
            meta: read_labels(written.meta.unwrap_or_default())?,
        })
    }
}

/// Returns the answer of a task, if one is known, and whether it is a JSON number.
fn known_answer(answer: Option<&RawValue>, form: &TaskForm) -> Result<(Option<String>, bool), String> {
    let Some(written) = answer else { return Ok((None, false)) };
    if is_broken(written) {
        return Err("its `answer` has half of a surrogate pair in it".to_owned());
    }
    let answer = form.find_answer(text_of(written))?;
    // A part of a number, such as 004, need not be one.
    let is_whole = begins_like_number(&answer) && serde_json::from_str::<&RawValue>(&answer).is_ok();
    let is_number = begins_like_number(written.get()) && is_whole;
    Ok((Some(answer), is_number))
}

fn begins_like_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// Returns whether a text cannot be read, because half of a surrogate pair is in it.
fn is_broken(written: &RawValue) -> bool {
    written.get().starts_with('"') && serde_json::from_str::<String>(written.get()).is_err()
}

/// A task is written as the line that would be read for it.
impl Serialize for TaskLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut answer = None;
        if let Some(text) = &self.answer {
            if self.answer_is_number {
                answer = RawValue::from_string(text.clone()).ok();
            }
            if answer.is_none() {
                answer = raw(text);
            }
        }
        let mut meta = Fields::new();
        for (name, value) in &self.meta {
            meta.insert(name.clone(), to_raw_value(value).map_err(S::Error::custom)?);
        }
        let task = WrittenTask {
            id: to_raw_value(&self.id).map_err(S::Error::custom)?,
            prompt: self.prompt.clone(),
            documents: if self.documents.is_empty() { None } else { Some(self.documents.clone()) },
            roleset: self.roleset.clone(),
            answer,
            canonical: self.canonical.clone().map(WrittenRule::Rule),
            grader: Some(self.grader),
            meta: if meta.is_empty() { None } else { Some(meta) },
        };
        task.serialize(serializer)
    }
}

fn read_written(line: &str) -> Result<WrittenTask, String> {
    serde_json::from_str(line).map_err(|why| describe_fault(line, &why))
}

/// Returns the reason why a line is not a task, with a remedy if it has no prompt.
fn describe_fault(line: &str, why: &serde_json::Error) -> String {
    no_prompt(line).unwrap_or_else(|| describe_json_fault(why))
}

fn describe_json_fault(why: &serde_json::Error) -> String {
    let what = match why.classify() {
        Category::Data => "it is not a task",
        Category::Io | Category::Syntax | Category::Eof => "it is not valid JSON, and so not a task",
    };
    // The parser sees a single line, whatever its number in the file.
    format!("{what}: {}", why.to_string().replace(" at line 1 column ", ", at byte "))
}

/// Refuses a task that the grader's command cannot grade.
fn require_gradable(command: Option<&str>, id: &str, answer: Option<&str>) -> Result<(), String> {
    let command = command.ok_or("its `grader` is a command, and --grader-command gives none")?;
    if command.contains(ANSWER) && answer.is_none() {
        return Err("it has no `answer`, and the command of --grader-command reads one".to_owned());
    }
    require_plain_id(command, id).map_err(|why| why.to_string())
}

/// Returns a hint on how to name the prompt, for a line whose fields have other names; `None` for any other line.
fn no_prompt(line: &str) -> Option<String> {
    if line.trim_start().starts_with('[') {
        return Some("it is a list, and not an object with fields".to_owned());
    }
    let fields: Fields = serde_json::from_str(line).ok()?;
    if fields.contains_key("prompt") {
        return None;
    }
    let fields = list_fields(&fields);
    Some(format!("it has no `prompt`; {fields}, and `--map prompt=NAME` says which one it is"))
}

/// Reads the labels of a task.
fn read_labels(meta: Fields) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for (name, value) in meta {
        let Some(value) = label(&value) else {
            return Err(format!("`{name}` in its `meta` is neither a text, a number, nor true or false"));
        };
        labels.insert(name, value);
    }
    Ok(labels)
}

/// Returns the id in a line that is not otherwise a task.
pub(in crate::batch) fn id_in(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let id = line.get("id")?;
    let id = id.as_str().map(str::to_owned).or_else(|| id.as_number().map(ToString::to_string))?;
    Some(id.chars().take(ID_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    fn parse(line: &str) -> Result<TaskLine, String> {
        TaskLine::parse(line, 1, &TaskForm::default())
    }

    #[test]
    fn line_gives_prompt_documents_and_answer() {
        let line = r#"{"id": 7, "prompt": " How much? ", "documents": ["a.txt", {"name": "b", "text": "c"}], "answer": 42, "canonical": "number"}"#;
        let task = parse(line).unwrap();
        assert_eq!((task.id.as_str(), task.prompt.as_str()), ("7", "How much?"));
        assert_eq!(task.answer.as_deref(), Some("42"));
        assert!(task.answer_is_number);
        // A kind on its own means the same as on the command line, with a decimal point.
        assert_eq!(task.canonical.unwrap(), CanonicalKind::Number.into());
        assert_eq!(task.documents[0], DocumentLine::File("a.txt".into()));
        assert!(matches!(&task.documents[1], DocumentLine::Text(document) if &*document.text == "c"));
    }

    #[test]
    fn a_task_is_written_as_it_was_read() {
        for line in [
            r#"{"id": 7, "prompt": "How much?", "documents": ["a.txt", {"name": "b", "text": "c"}], "answer": 1e3, "canonical": "number"}"#,
            r#"{"id": "a", "prompt": "b", "answer": "(x)", "grader": "regex", "roleset": "r", "meta": {"subject": "sums"}}"#,
            r#"{"id": "a", "prompt": "b", "canonical": {"kind": "choice", "choices": ["A", "B"]}}"#,
        ] {
            let task = parse(line).unwrap();
            let again = parse(&serde_json::to_string(&task).unwrap()).unwrap();
            assert_eq!(again, task, "{line}");
        }
    }

    /// A part of a number is no number if JSON could not write it.
    #[test]
    fn answer_with_leading_zeros_is_no_number() {
        for (regex, answer, is_number) in
            [("(00.)", "004", false), ("10(.+)", "04", false), ("(4)", "4", true)]
        {
            let form = TaskForm { answer: Some(Regex::new(regex).unwrap()), ..TaskForm::default() };
            let task = TaskLine::parse(r#"{"id": 1, "prompt": "x", "answer": 1004}"#, 1, &form).unwrap();
            assert_eq!((task.answer.as_deref(), task.answer_is_number), (Some(answer), is_number));
            assert_eq!(parse(&serde_json::to_string(&task).unwrap()).unwrap(), task);
        }
    }

    #[test]
    fn numbers_keep_their_digits_and_nulls_say_nothing() {
        let line = r#"{"id": 99999999999999999999999, "prompt": "x", "answer": 1e3, "documents": null, "roleset": null, "canonical": null}"#;
        let task = parse(line).unwrap();
        assert_eq!((task.id.as_str(), task.answer.as_deref()), ("99999999999999999999999", Some("1e3")));
        assert!(task.documents.is_empty() && task.roleset.is_none() && task.canonical.is_none());
    }

    #[test]
    fn invalid_task_line_is_refused_with_reason() {
        for (line, part) in [
            ("", "it is not valid JSON, and so not a task"),
            ("not json", "it is not valid JSON, and so not a task"),
            ("[]", "it is a list"),
            (r#"{"id": [1], "prompt": "b"}"#, "its `id` is neither"),
            (r#"{"id": "a"}"#, "it has no `prompt`; its fields are `id`, and `--map prompt=NAME` says"),
            (r#"{"question": "a", "answer": "b"}"#, "its fields are `answer`, `question`, and `--map"),
            ("{}", "it has no fields, and"),
            (r#"{"id": "a", "prompt": "b", "promt": "c"}"#, "unknown field `promt`"),
            (r#"{"id": null, "prompt": "b"}"#, "its `id` is neither"),
            (r#"{"id": "", "prompt": "b"}"#, "its `id` is empty"),
            (r#"{"id": "\ud83d", "prompt": "b"}"#, "half of a surrogate pair"),
            (r#"{"id": "a\nb", "prompt": "b"}"#, "control character"),
            (r#"{"id": "a", "prompt": "  "}"#, "its `prompt` is empty"),
            (r#"{"id": "a", "prompt": "b", "canonical": "choice"}"#, "needs `choices`"),
            (r#"{"id": "a", "prompt": "b", "meta": {"c": [1]}}"#, "`c` in its `meta` is neither"),
            (r#"{"id": "a", "prompt": "b", "answer": "(", "grader": "regex"}"#, "not a regular expression"),
            (
                r#"{"id": "a", "prompt": "b", "canonical": {"kind": "text", "decimal": "."}}"#,
                "`decimal` goes with",
            ),
            (
                r#"{"id": "a", "prompt": "b", "canonical": {"kind": "number", "decimal": "'"}}"#,
                "`canonical` is a kind",
            ),
        ] {
            let why = parse(line).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
