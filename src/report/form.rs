//! A reply that is a form, told field by field.
//!
//! The input is the text of a reply, whole or as far as it has come. The output is Markdown with the name of each field and its value, in
//! the order in which they were written. A text by a model is quoted line by line, so nothing in it can pass for other words.

use std::fmt::Write as _;

use jiter::{JsonValue, PartialMode};
use serde_json::{Map, Value};

use crate::text::{StrictValue, escape, extract, read_one};

/// The most characters of a value on the line of its name.
const WORD_CHARS_MAX: usize = 30;

/// Returns the fields of a form, or `None` if the reply is not a form.
pub(super) fn form_in_words(reply: &str) -> Option<String> {
    let StrictValue(value) = read_one(extract(reply).ok()?.object).ok()?;
    let mut out = String::new();
    fields(&mut out, value.as_object()?);
    Some(out)
}

/// Returns a reply as far as it has come: its words, or the fields of a form that are there. Of a long one only the end is returned, up to
/// this many bytes.
#[must_use]
pub fn reply_so_far(reply: &str, bytes_max: usize) -> String {
    let begun = reply.trim_start().strip_prefix('{').map(|_| reply.trim_start().as_bytes());
    let form =
        begun.and_then(|form| JsonValue::parse_with_config(form, false, PartialMode::TrailingStrings).ok());
    let mut out = String::new();
    match form.as_ref().map(value) {
        Some(Value::Object(object)) => fields(&mut out, &object),
        Some(_) | None => quoted(&mut out, reply),
    }
    let surplus = out.ceil_char_boundary(out.len().saturating_sub(bytes_max));
    if surplus == 0 {
        return out;
    }
    // A line that is cut has lost the mark of a quote.
    let line = out[surplus..].find('\n').map_or(surplus, |end| surplus + end + 1);
    format!("…\n\n{}", &out[line..])
}

/// Returns a value that may be a part of one. A number that is larger than any of a form is left out.
fn value(read: &JsonValue<'_>) -> Value {
    match read {
        JsonValue::Bool(is_so) => Value::from(*is_so),
        JsonValue::Int(number) => Value::from(*number),
        JsonValue::Float(number) => Value::from(*number),
        JsonValue::Str(text) => Value::from(&**text),
        JsonValue::Array(items) => items.iter().map(value).collect(),
        JsonValue::Object(entries) => {
            entries.iter().map(|(key, read)| (key.to_string(), value(read))).collect()
        }
        JsonValue::Null | JsonValue::BigInt(_) => Value::Null,
    }
}

/// Quotes a text line by line.
pub(super) fn quoted(out: &mut String, text: &str) {
    for line in escape::plain(text).lines() {
        let _ = writeln!(out, "> {line}");
    }
}

/// Returns a text that begins with a capital letter.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn fields(out: &mut String, object: &Map<String, Value>) {
    for (key, value) in object {
        field(out, &capital(&escape::excerpt(&key.replace('_', " "))), value);
    }
}

/// Writes a field. A field without a value is left out.
fn field(out: &mut String, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(is_so) => short(out, name, if *is_so { "yes" } else { "no" }),
        Value::Number(number) => short(out, name, &number.to_string()),
        Value::String(text) if text.trim().is_empty() => {}
        Value::String(text) if is_word(text) => short(out, name, &text.replace('_', " ")),
        Value::String(text) => {
            let _ = writeln!(out, "\n{name}:\n");
            quoted(out, text);
            out.push('\n');
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                field(out, &format!("{name}, {} of {}", index + 1, items.len()), item);
            }
        }
        Value::Object(inner) => {
            let _ = writeln!(out, "\n{name}:\n");
            fields(out, inner);
        }
    }
}

fn short(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "- {name}: {value}");
}

/// Returns whether a text is one word, such as a verdict.
fn is_word(text: &str) -> bool {
    text.chars().count() <= WORD_CHARS_MAX
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_told_field_by_field() {
        let told = form_in_words(
            r#"{"checks":[{"claim":"It is\n# big.","verdict":"holds","quote":""}],"veto":false,"confidence":0.95,"is_none":null}"#,
        );
        let expected = "\nChecks, 1 of 1:\n\n\nClaim:\n\n> It is\n> # big.\n\n- Verdict: holds\n- Veto: no\n- Confidence: 0.95\n";
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[test]
    fn a_form_that_is_still_written_shows_what_is_there() {
        let told = |text| reply_so_far(text, 1_000);
        assert_eq!(told(r#" {"response":"It is bi"#), "\nResponse:\n\n> It is bi\n\n");
        assert_eq!(told(r#"{"veto":true,"conf"#), "- Veto: yes\n");
        assert_eq!(told("{"), "");
        assert_eq!(told("I think {a}"), "> I think {a}\n");
    }

    #[test]
    fn of_a_long_reply_the_end_is_told_in_whole_lines() {
        let lines: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
        let text = lines.join("\n");
        let told = reply_so_far(&text, 50);
        assert_eq!(told, "…\n\n> line 96\n> line 97\n> line 98\n> line 99\n");
    }

    #[test]
    fn words_that_are_no_form_are_none() {
        assert_eq!(form_in_words("The answer is 4."), None);
        assert_eq!(form_in_words(r#"{"a":1,"a":2}"#), None, "a repeated key is not dropped in silence");
    }
}
