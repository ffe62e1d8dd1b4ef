//! Pieces of JSON Schemas that servers can enforce: the vocabulary of every form that a model fills in.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The most values of an `enum`. Servers refuse larger ones (OpenAI takes 250 strings of any length), and the choice is
/// then asked for and not forced.
pub(crate) const CHOICES_MAX: usize = 250;

/// The form of an agent that answers in one field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerForm {
    pub(crate) response: String,
}

/// Returns the schema of an object with these keys.
pub(super) fn with_keys(keys: &[String]) -> Value {
    let any = of_types(&["string", "number", "boolean", "null", "array", "object"]);
    closed(&keys.iter().map(|key| (key.clone(), any.clone())).collect::<Map<_, _>>().into())
}

pub(super) fn of_types(names: &[&str]) -> Value {
    let types: Vec<Value> = names.iter().map(|name| json!({"type": name})).collect();
    json!({"anyOf": types})
}

pub(super) fn fixed(text: &str) -> Value {
    json!({"type": "string", "enum": [text]})
}

pub(super) fn string(chars_max: usize) -> Value {
    json!({"type": "string", "maxLength": chars_max})
}

pub(crate) fn non_empty_string(chars_max: usize) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": chars_max})
}

/// Returns the schema of an object with exactly these fields.
pub(crate) fn closed(properties: &Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    let required = json!(names);
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
