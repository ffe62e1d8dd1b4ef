//! How a file of tasks that was not made for this program is read.
//!
//! In: a line, its number, and how its fields are called. Out: the line as it would be written for this program. A file that has
//! names of its own is taken as it is: each line without an id is called by its number, and what no name is mapped to is a label.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::value::RawValue;

use super::grader::Grader;

/// The fields of a task that may have another name in a file.
pub const FIELDS: [&str; 8] =
    ["id", "prompt", "documents", "roleset", "answer", "canonical", "grader", "meta"];

/// How tasks are read from their file.
#[derive(Clone, Debug, Default)]
pub struct TaskForm {
    /// The names of fields in the file, by those that they have here.
    pub names: BTreeMap<String, String>,
    /// What finds the answer in the field of that name; its first group, if it has one.
    pub answer: Option<Regex>,
    /// How answers are graded where a line does not say it.
    pub grader: Grader,
}

/// The fields of a line, as they are written.
pub(super) type Fields = BTreeMap<String, Box<RawValue>>;

impl TaskForm {
    /// Gives the fields of a line the names that they have here.
    pub(super) fn rename(&self, mut line: Fields, number: u64) -> Fields {
        if self.names.is_empty() {
            return line;
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
        // Whatever is left tells tasks apart, as long as it is one word or number.
        line.retain(|_, value| label(value).is_some());
        if !fields.contains_key("meta") && !line.is_empty() {
            fields.extend(raw(&line).map(|meta| ("meta".to_owned(), meta)));
        }
        if !fields.contains_key("id") {
            fields.extend(raw(&number).map(|id| ("id".to_owned(), id)));
        }
        fields
    }

    /// Finds the answer in what a line says it is.
    ///
    /// # Errors
    ///
    /// Why there is none, in words.
    pub(super) fn answer_in(&self, text: String) -> Result<String, String> {
        let Some(pattern) = &self.answer else { return Ok(text) };
        // The last one counts: what leads to an answer comes before it.
        let found = pattern.captures_iter(&text).last();
        let found = found.and_then(|found| found.get(1).or(found.get(0)));
        let found = found.ok_or_else(|| format!("its `answer` has nothing in it that `{pattern}` finds"))?;
        Ok(found.as_str().trim().to_owned())
    }
}

/// What a label says: a text as it is, and a number or a yes or no as it is written.
pub(super) fn label(value: &RawValue) -> Option<String> {
    let written = value.get();
    if written.starts_with('"') {
        return serde_json::from_str(written).ok();
    }
    (!written.starts_with(['{', '[']) && written != "null").then(|| written.to_owned())
}

fn raw(value: &impl serde::Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_names_of_its_own_is_read_as_it_is() {
        let form = TaskForm {
            names: BTreeMap::from([("prompt".to_owned(), "question".to_owned())]),
            answer: Some(Regex::new("#### (.*)").unwrap()),
            ..TaskForm::default()
        };
        let line =
            r#"{"question": "How much?", "answer": "It is 9*2=18.\n#### 18", "level": 3, "steps": [1]}"#;
        let fields = form.rename(serde_json::from_str(line).unwrap(), 7);
        let told: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let wanted =
            ["answer=\"It is 9*2=18.\\n#### 18\"", "id=7", "meta={\"level\":3}", "prompt=\"How much?\""];
        assert_eq!(told, wanted);
        assert_eq!(form.answer_in("so\n#### 1,018 \n".to_owned()).unwrap(), "1,018");
        assert!(form.answer_in("none".to_owned()).unwrap_err().contains("has nothing in it"));
    }
}
