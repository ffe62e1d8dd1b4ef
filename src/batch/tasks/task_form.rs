//! The form of a file of tasks that was not made for this program.
//!
//! The input is a line, its number, and the names of its fields. The output is the line as it would be written for this program. A
//! file with other field names is taken as it is: a line without an id gets its number as the id, and unmapped fields become labels.
//! No file is read here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::grader::Grader;
use protocol::Document;
use protocol::text::{CanonicalKind, CanonicalRule, counted, escape};

/// The fields of a task that may have another name in a file.
pub const FIELDS: [&str; 8] =
    ["id", "prompt", "documents", "roleset", "answer", "canonical", "grader", "meta"];

/// The way in which tasks are read from their file.
#[derive(Clone, Debug, Default)]
pub struct TaskForm {
    /// The names of fields in the file, by their names here.
    pub names: BTreeMap<String, String>,
    /// The pattern that finds the answer in its field: the first group, or the whole match without one.
    pub answer: Option<Regex>,
    /// The grader of answers if a line names none.
    pub grader: Grader,
    /// The user's command that grades, if there is one.
    pub grader_command: Option<String>,
    /// Whether the file is a table (CSV), whose first line names the fields.
    pub is_table: bool,
}

/// The fields of a line, as they are written.
pub(super) type Fields = BTreeMap<String, Box<RawValue>>;

/// A document of a task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(untagged, expecting = "a document is a path, or an object with `name` and `text`")]
pub enum DocumentLine {
    /// A text file.
    File(PathBuf),
    /// The text itself.
    Text(Document),
}

/// A task in its written form.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "an object with `id` and `prompt`")]
pub(super) struct WrittenTask {
    pub(super) id: Box<RawValue>,
    pub(super) prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) documents: Option<Vec<DocumentLine>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) roleset: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) canonical: Option<WrittenRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) grader: Option<Grader>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<Fields>,
}

/// The rule of a task, or the kind alone.
#[derive(Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "`canonical` is a kind, such as \"number\", or an object with `kind`, `choices` and `decimal`"
)]
pub(super) enum WrittenRule {
    Kind(CanonicalKind),
    Rule(CanonicalRule),
}

impl WrittenRule {
    pub(super) fn into_rule(self) -> CanonicalRule {
        match self {
            Self::Kind(kind) => kind.into(),
            Self::Rule(rule) => rule,
        }
    }
}

impl TaskForm {
    /// Renames the fields of a line to their names here.
    ///
    /// Returns the missing name, and the names that exist.
    pub(super) fn rename(&self, mut line: Fields, number: u64) -> Result<Fields, String> {
        if self.names.is_empty() {
            return Ok(line);
        }
        if let Some(missing) = self.names.values().find(|theirs| !line.contains_key(*theirs)) {
            return Err(format!(
                "it has no `{}`, which --map names; {}",
                escape::excerpt(missing),
                list_fields(&line)
            ));
        }
        let mut fields = Fields::new();
        for (own, theirs) in &self.names {
            if let Some(value) = line.remove(theirs) {
                fields.insert(own.clone(), value);
            }
        }
        for own in FIELDS {
            if !fields.contains_key(own)
                && let Some(value) = line.remove(own)
            {
                fields.insert(own.to_owned(), value);
            }
        }
        // A question is nothing without its options.
        if let Some(prompt) = fields.get("prompt").and_then(|prompt| with_options(&text_of(prompt), &line)) {
            fields.extend(raw(&prompt).map(|prompt| ("prompt".to_owned(), prompt)));
        }
        // The remaining fields serve as labels, if their value is one word or number.
        line.retain(|_, value| is_label(value));
        if !fields.contains_key("meta") && !line.is_empty() {
            fields.extend(raw(&line).map(|meta| ("meta".to_owned(), meta)));
        }
        if !fields.contains_key("id") {
            fields.extend(raw(&number).map(|id| ("id".to_owned(), id)));
        }
        Ok(fields)
    }

    /// Finds the answer in the answer field of a line.
    ///
    /// Returns the reason why there is no answer.
    pub(super) fn find_answer(&self, text: String) -> Result<String, String> {
        let Some(pattern) = &self.answer else { return Ok(text) };
        // The last match counts, since a derivation comes before its answer.
        let found = pattern.captures_iter(&text).last();
        let found = found.and_then(|found| found.get(1).or(found.get(0)));
        let found = found.ok_or_else(|| format!("its `answer` has no match for `{pattern}`"))?;
        Ok(found.as_str().trim().to_owned())
    }
}

/// Returns the text of a label: a string as it is, and a number, true or false as it is written.
pub(super) fn label(value: &RawValue) -> Option<String> {
    let written = value.get();
    if written.starts_with('"') {
        return serde_json::from_str(written).ok();
    }
    if written.starts_with(['{', '[']) || written == "null" { None } else { Some(written.to_owned()) }
}

/// Returns true for a value that can be a label.
pub(super) fn is_label(value: &RawValue) -> bool {
    label(value).is_some()
}

/// Returns a JSON string as its text, and any other value as it is written: a number keeps all of its digits.
pub(super) fn text_of(value: &RawValue) -> String {
    serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// Lists the fields of a line for a message.
pub(super) fn list_fields(line: &Fields) -> String {
    let names: Vec<String> = line.keys().map(|name| format!("`{}`", escape::excerpt(name))).collect();
    if names.is_empty() {
        "it has no fields".to_owned()
    } else {
        format!("its fields are {}", names.join(", "))
    }
}

/// Returns a value as it is written in JSON.
pub(super) fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

/// Returns options as texts.
pub(super) fn read_texts(choices: &[Box<RawValue>]) -> Result<Vec<String>, String> {
    let texts: Option<Vec<String>> = choices.iter().map(|choice| label(choice)).collect();
    texts.ok_or_else(|| "its `choices` are not all texts or numbers".to_owned())
}

/// Returns the letters of so many options.
pub(super) fn letters_of(count: usize) -> Result<Vec<String>, String> {
    let letters: Vec<String> = ('A'..='Z').take(count).map(String::from).collect();
    if count < 2 || letters.len() < count {
        return Err(format!("it has {}, and a question has 2 to 26", counted(count as u64, "choice")));
    }
    Ok(letters)
}

/// Returns a question with the options of its row, which may be called `options` or `choices`; `None` for a row without.
fn with_options(question: &str, row: &Fields) -> Option<String> {
    let options = ["options", "choices"].iter().find_map(|name| row.get(*name))?;
    let options: Vec<Box<RawValue>> = serde_json::from_str(options.get()).ok()?;
    let (letters, options) = (letters_of(options.len()).ok()?, read_texts(&options).ok()?);
    Some(add_options(question, &options, &letters))
}

/// Returns the question with an option on each line. An option that begins with its letter has no other one.
pub(super) fn add_options(question: &str, choices: &[String], letters: &[String]) -> String {
    let has_letters = letters.iter().zip(choices).all(|(letter, choice)| {
        choice.strip_prefix(letter.as_str()).is_some_and(|rest| rest.starts_with([')', '.', ':']))
    });
    let mut text = question.trim().to_owned();
    for (letter, choice) in letters.iter().zip(choices) {
        text.push('\n');
        if !has_letters {
            text.push_str(letter);
            text.push_str(") ");
        }
        text.push_str(choice);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_row_are_in_its_question() {
        let form = TaskForm {
            names: BTreeMap::from([("prompt".to_owned(), "question".to_owned())]),
            ..TaskForm::default()
        };
        let line = r#"{"question": "Which?", "options": ["brick", "apple"], "answer": "B"}"#;
        let fields = form.rename(serde_json::from_str(line).unwrap(), 7).unwrap();
        assert_eq!(text_of(&fields["prompt"]), "Which?\nA) brick\nB) apple");
    }

    /// A file whose fields have names of their own is read as it is.
    #[test]
    fn form_maps_own_field_names() {
        let form = TaskForm {
            names: BTreeMap::from([("prompt".to_owned(), "question".to_owned())]),
            answer: Some(Regex::new("#### (.*)").unwrap()),
            ..TaskForm::default()
        };
        let line =
            r#"{"question": "How much?", "answer": "It is 9*2=18.\n#### 18", "level": 3, "steps": [1]}"#;
        let fields = form.rename(serde_json::from_str(line).unwrap(), 7).unwrap();
        let missing = form.rename(serde_json::from_str(r#"{"Question": "x"}"#).unwrap(), 7).unwrap_err();
        assert_eq!(missing, "it has no `question`, which --map names; its fields are `Question`");
        let listed: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let wanted =
            ["answer=\"It is 9*2=18.\\n#### 18\"", "id=7", "meta={\"level\":3}", "prompt=\"How much?\""];
        assert_eq!(listed, wanted);
        assert_eq!(form.find_answer("so\n#### 1,018 \n".to_owned()).unwrap(), "1,018");
        assert!(form.find_answer("none".to_owned()).unwrap_err().contains("has no match"));
    }
}
