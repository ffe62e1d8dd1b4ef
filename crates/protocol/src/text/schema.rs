//! The envelope's JSON Schema, and schemas as text.
//!
//! The full schema is in `envelope.schema.json` and validates every reply. The schemas with which servers decode are
//! made in [`decoding`](super::decoding).

use std::sync::{Arc, LazyLock};

use jsonschema::Validator;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::memo::Memo;
use super::{Violation, escape};

/// The full schema, as `consensus schema envelope` prints it.
pub const ENVELOPE: &str = include_str!("envelope.schema.json");

pub(super) static ENVELOPE_VALUE: LazyLock<Value> = LazyLock::new(|| parse_embedded(ENVELOPE));
static ENVELOPE_VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compile(&ENVELOPE_VALUE));

/// Parses a schema that is part of this program.
///
/// # Panics
///
/// If the text is not JSON. A test parses every embedded schema.
pub fn parse_embedded(text: &str) -> Value {
    serde_json::from_str(text).expect("embedded schemas are JSON (tested)")
}

/// Compiles a schema that is part of this program.
///
/// # Panics
///
/// If the schema is not valid. A test compiles every embedded schema.
pub fn compile(schema: &Value) -> Validator {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .build(schema)
        .expect("embedded schemas are valid (tested)")
}

/// Validates one envelope against the full schema.
///
/// # Errors
///
/// The first violation, with its JSON pointer.
pub fn validate_envelope(value: &Value) -> Result<(), Violation> {
    ENVELOPE_VALIDATOR.validate(value).map_err(|error| {
        let at = error.instance_path().to_string();
        let pointer = if at.is_empty() { "/".to_owned() } else { at };
        Violation::Schema { pointer, message: escape::excerpt(&error.masked().to_string()) }
    })
}

/// A decoding schema as JSON text, which is made once, and sent and digested unchanged.
#[derive(Clone, Debug)]
pub struct SchemaText(Arc<RawValue>);

impl SchemaText {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the schema as a value that can be examined.
    pub fn to_value(&self) -> Value {
        parse_embedded(self.as_str())
    }

    /// Returns true if `reply` is JSON and nothing else, and valid under this schema.
    pub fn admits(&self, reply: &str) -> bool {
        serde_json::from_str(reply.trim())
            .is_ok_and(|value: Value| compile(&self.to_value()).is_valid(&value))
    }

    /// Returns true if [`SchemaText::admits`] would, or if only the upper bounds in patterns are exceeded.
    ///
    /// Compiling a pattern that counts to a hundred takes as long as a whole turn. A server that enforces nothing shows
    /// it in every other way.
    pub fn admits_in_form(&self, memo: &Memo<Arc<Validator>>, reply: &str) -> bool {
        let Ok(value) = serde_json::from_str::<Value>(reply.trim()) else { return false };
        let validator = memo.get(self.as_str(), || {
            let mut schema = self.to_value();
            lift_upper_bounds(&mut schema);
            Arc::new(compile(&schema))
        });
        validator.is_valid(&value)
    }

    /// Creates a schema text from a text that is JSON.
    pub(super) fn from_json(text: String) -> Result<Self, serde_json::Error> {
        Ok(Self(RawValue::from_string(text)?.into()))
    }
}

/// Turns `{8,160}` into `{8,}` in every pattern of a schema.
fn lift_upper_bounds(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(pattern)) = fields.get_mut("pattern") {
                *pattern = without_upper_bounds(pattern);
            }
            fields.values_mut().for_each(lift_upper_bounds);
        }
        Value::Array(items) => items.iter_mut().for_each(lift_upper_bounds),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a pattern without its upper bounds. The patterns are this program's own, in which a brace is always a count.
fn without_upper_bounds(pattern: &str) -> String {
    let mut parts = pattern.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let bounds = part.split_once('}').and_then(|(bounds, rest)| Some((bounds.split_once(',')?.0, rest)));
        match bounds {
            Some((min, rest)) => out.extend(["{", min, ",}", rest]),
            None => out.extend(["{", part]),
        }
    }
    out
}

impl PartialEq for SchemaText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Serialize for SchemaText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl From<&Value> for SchemaText {
    fn from(schema: &Value) -> Self {
        let raw = serde_json::value::to_raw_value(schema).expect("a JSON value is JSON");
        Self(raw.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lose_their_upper_bounds_alone() {
        assert_eq!(without_upper_bounds("^x{8,160}[a]{3}y{0,5}$"), "^x{8,}[a]{3}y{0,}$");
    }
}
