//! A reply that is a form, field by field.
//!
//! The input is the text of a reply, whole or the part of it that has arrived. The output is Markdown with the name of each field and its
//! value, in their order. A text by a model is quoted line by line, and a name is one of the plain names of forms. So nothing in it can
//! pass for the words of a transcript.

use std::fmt::Write as _;

use jiter::{JsonError, JsonErrorType, JsonValue, PartialMode};
use serde_json::{Map, Value};

use protocol::text::{StrictValue, escape, extract, read_one};

/// The most characters of the name of a field, and of a value beside it.
const WORD_CHARS_MAX: usize = 40;

/// The most items of a list that are written one by one, and how deep a field may be in others. Any other value is quoted as it is.
const ITEMS_MAX: usize = 50;
const DEPTH_MAX: usize = 3;

/// The longest reply in bytes that is read as a form before it is recorded.
const BEGUN_BYTES_MAX: usize = 64 << 10;

/// Returns the thoughts before a form and its fields, or `None` if the reply is not a form.
pub(super) fn describe_form(reply: &str) -> Option<String> {
    let form = extract(reply).ok()?;
    let StrictValue(value) = read_one(form.object).ok()?;
    let object = value.as_object().filter(|object| object.keys().all(|name| is_name(name)))?;
    let mut out = String::new();
    write_quote(&mut out, form.reasoning.unwrap_or_default());
    write_fields(&mut out, object, 0);
    Some(out)
}

/// Returns the part of a reply that has arrived: its words, or the fields of a form that are there. At most its last `bytes_max` bytes are
/// returned.
pub fn partial_reply(reply: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    let form = if reply.len() <= BEGUN_BYTES_MAX { read_begun_form(reply) } else { None };
    match form {
        Some(object) => write_fields(&mut out, &object, 0),
        None => {
            write_quote(&mut out, &reply[reply.ceil_char_boundary(reply.len().saturating_sub(bytes_max))..]);
        }
    }
    let surplus = out.ceil_char_boundary(out.len().saturating_sub(bytes_max));
    if surplus == 0 {
        return out;
    }
    // The rest of a line has lost the mark of a quote.
    let (rest, lines) = out[surplus..].split_once('\n').unwrap_or((&out[surplus..], ""));
    format!("…\n\n> {rest}\n{lines}")
}

/// Returns the fields of a form whose end has not come.
fn read_begun_form(reply: &str) -> Option<Map<String, Value>> {
    let behind_thoughts = reply.rsplit_once("</think>").map_or(reply, |(_, form)| form).trim_start();
    let form = behind_thoughts.trim_start_matches("```json").trim_start();
    if !form.starts_with('{') {
        return None;
    }
    let read = match JsonValue::parse(form.as_bytes(), false) {
        Err(why) if is_open(&why) => {
            JsonValue::parse_with_config(form.as_bytes(), false, PartialMode::TrailingStrings)
        }
        read => read,
    };
    // Words that begin with a brace are words.
    let read = read.ok()?;
    let Value::Object(object) = as_json(&read) else { return None };
    if object.keys().all(|name| is_name(name)) { Some(object) } else { None }
}

/// Returns whether the text ended before its value did.
fn is_open(why: &JsonError) -> bool {
    use JsonErrorType as Kind;
    let kinds = [
        Kind::EofWhileParsingList,
        Kind::EofWhileParsingObject,
        Kind::EofWhileParsingString,
        Kind::EofWhileParsingValue,
    ];
    kinds.contains(&why.error_type)
}

/// Converts a value that may be incomplete. A number beyond 64 bits is left out.
fn as_json(read: &JsonValue<'_>) -> Value {
    match read {
        JsonValue::Bool(is_so) => Value::from(*is_so),
        JsonValue::Int(number) => Value::from(*number),
        JsonValue::Float(number) => Value::from(*number),
        JsonValue::Str(text) => Value::from(&**text),
        JsonValue::Array(items) => items.iter().map(as_json).collect(),
        JsonValue::Object(entries) => {
            entries.iter().map(|(key, read)| (key.to_string(), as_json(read))).collect()
        }
        JsonValue::Null | JsonValue::BigInt(_) => Value::Null,
    }
}

/// Quotes a text line by line.
pub(super) fn write_quote(out: &mut String, text: &str) {
    for line in escape::plain(text).lines() {
        let _ = writeln!(out, "> {line}");
    }
}

/// Returns a text that begins with a capital letter.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn write_fields(out: &mut String, object: &Map<String, Value>, depth: usize) {
    for (key, value) in object {
        write_field(out, &capital(&key.replace('_', " ")), value, depth);
    }
}

fn write_field(out: &mut String, name: &str, value: &Value, depth: usize) {
    match value {
        Value::Null => write_short(out, name, "none"),
        Value::Bool(is_so) => write_short(out, name, if *is_so { "yes" } else { "no" }),
        Value::Number(number) => write_short(out, name, &number.to_string()),
        Value::String(text) if text.trim().is_empty() => write_short(out, name, "none"),
        Value::String(text) if is_word(text) => write_short(out, name, text),
        Value::String(text) => write_long(out, name, text),
        Value::Array(items) if items.is_empty() => write_short(out, name, "none"),
        Value::Array(items) if items.len() <= ITEMS_MAX && !items.iter().any(Value::is_array) => {
            for (index, item) in items.iter().enumerate() {
                write_field(out, &format!("{name}, {} of {}", index + 1, items.len()), item, depth);
            }
        }
        Value::Object(inner) if depth < DEPTH_MAX && inner.keys().all(|name| is_name(name)) => {
            let _ = writeln!(out, "\n{name}:\n");
            write_fields(out, inner, depth + 1);
        }
        Value::Array(_) | Value::Object(_) => write_long(out, name, &value.to_string()),
    }
}

fn write_long(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "\n{name}:\n");
    write_quote(out, text);
    out.push('\n');
}

fn write_short(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "- {name}: {value}");
}

/// Returns whether a key can be the name of a field. Any other one could pass for words of the transcript.
fn is_name(key: &str) -> bool {
    let mut chars = key.chars();
    !key.is_empty()
        && key.len() <= WORD_CHARS_MAX
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Returns whether a text is one word, such as a verdict.
fn is_word(text: &str) -> bool {
    text.chars().count() <= WORD_CHARS_MAX
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_is_written_field_by_field() {
        let words = describe_form(
            r#"{"checks":[{"claim":"It is\n# big.","verdict":"holds","quote":""}],"veto":false,"confidence":0.95}"#,
        );
        let expected = "\nChecks, 1 of 1:\n\n\nClaim:\n\n> It is\n> # big.\n\n- Verdict: holds\n- Quote: none\n- Veto: no\n- Confidence: 0.95\n";
        assert_eq!(words.as_deref(), Some(expected));
    }

    #[test]
    fn unfinished_form_shows_arrived_fields() {
        let words = |text| partial_reply(text, 1_000);
        assert_eq!(words(r#" {"response":"It is bi"#), "\nResponse:\n\n> It is bi\n\n");
        assert_eq!(words(r#"{"veto":true,"conf"#), "- Veto: yes\n");
        assert_eq!(words("{"), "");
        assert_eq!(words("I think {a}"), "> I think {a}\n");
        assert_eq!(words("{} is the empty set"), "> {} is the empty set\n");
        assert_eq!(words("<think>\nHm.\n</think>\n```json\n{\"veto\":"), "");
    }

    #[test]
    fn end_of_long_line_is_quoted() {
        let words = partial_reply(&"word ".repeat(5_000), 50);
        assert!(words.starts_with("…\n\n> ") && words.ends_with("word word \n"), "{words}");
    }

    #[test]
    fn key_cannot_pass_for_transcript_words() {
        for key in ["# Outcome: agreed", "All agreed.", "", &"a".repeat(50), "The_check"] {
            let form = serde_json::json!({key: {}}).to_string();
            assert_eq!(describe_form(&form), None, "{key}");
            assert_eq!(partial_reply(&form, 1_000), format!("> {form}\n"), "{key}");
            let inner = serde_json::json!({"claim": {key: true}}).to_string();
            let words = describe_form(&inner).unwrap();
            assert!(
                words.lines().all(|line| line.is_empty() || line == "Claim:" || line.starts_with('>')),
                "{words}"
            );
        }
    }

    /// The words of the form itself stay as they are.
    #[test]
    fn thoughts_before_form_are_quoted() {
        let words = describe_form("<think>\nIt is so.\n</think>\n{\"answer\":\"max_len\"}").unwrap();
        assert_eq!(words, "> It is so.\n- Answer: max_len\n");
    }

    #[test]
    fn end_of_long_reply_is_shown() {
        let lines: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
        let text = lines.join("\n");
        let words = partial_reply(&text, 50);
        assert!(words.starts_with("…\n\n> ") && words.ends_with("\n> line 98\n> line 99\n"), "{words}");
        assert!(
            words.lines().all(|line| line.is_empty() || line == "…" || line.starts_with("> ")),
            "{words}"
        );
    }

    #[test]
    fn form_takes_little_more_than_reply() {
        let long = format!(r#"{{"n":[{}]}}"#, vec!["1"; 100_000].join(","));
        let deep = format!(r#"{{"n":{}{}{}}}"#, "[".repeat(60), vec!["1"; 10_000].join(","), "]".repeat(60));
        let nested = format!("{}1{}", r#"{"n":"#.repeat(60), "}".repeat(60));
        for form in [long, deep, nested] {
            let words = describe_form(&form).unwrap();
            assert!(words.len() < form.len() + 200, "{} bytes of {}", words.len(), form.len());
            assert!(partial_reply(&form, 1_000).len() < 1_100);
        }
    }

    #[test]
    fn words_that_are_no_form_are_none() {
        assert_eq!(describe_form("The answer is 4."), None);
        assert_eq!(describe_form(r#"{"a":1,"a":2}"#), None, "a repeated key is not dropped in silence");
    }
}
