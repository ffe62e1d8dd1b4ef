//! A JSON Schema that a user gives for the answer.
//!
//! The input is an untrusted schema. The output is a rule for texts, and the form that servers are asked to force. References
//! within the schema are replaced by what they stand for, up to a size, and a reference that contains itself is refused. So a check takes
//! time in proportion to the schema and the text, whatever both are. Patterns have no back-references, for the same reason.

use std::fmt;
use std::sync::{Arc, LazyLock};

use jsonschema::{Draft, PatternOptions, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::escape;
use super::memo::Memo;

/// The longest schema as JSON without spaces, in bytes. Agents read it in each prompt.
const BYTES_MAX: usize = 16 << 10;

/// The most values in a schema once its references are replaced.
const NODES_MAX: usize = 2000;

/// The places of a schema to which a reference may point.
const PLACES: [&str; 2] = ["#/$defs/", "#/definitions/"];

/// Schemas ready for use. Few are kept, because a schema may take a megabyte.
static READY: LazyLock<Memo<Option<Arc<Validator>>>> = LazyLock::new(|| Memo::new(32));

/// A schema for an answer that is an object or a list.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct AnswerSchema(Arc<Value>);

impl TryFrom<Value> for AnswerSchema {
    type Error = String;

    /// Replaces the references of a schema.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the schema.
    fn try_from(schema: Value) -> Result<Self, String> {
        let mut top = schema.clone();
        for name in ["$schema", "$defs", "definitions"] {
            top.as_object_mut().and_then(|top| top.shift_remove(name));
        }
        let whole = inlined(&top, &definitions(&schema), &mut Vec::new(), &mut 0)?;
        if !matches!(whole["type"].as_str(), Some("object" | "array")) {
            return Err("the schema of an answer has the `type` `object` or `array` at its top".to_owned());
        }
        if whole.to_string().len() > BYTES_MAX {
            return Err(format!(
                "the schema has more than {BYTES_MAX} bytes once its references are replaced"
            ));
        }
        ready(&whole)?;
        Ok(Self(Arc::new(whole)))
    }
}

impl From<AnswerSchema> for Value {
    fn from(schema: AnswerSchema) -> Self {
        (*schema.0).clone()
    }
}

impl AnswerSchema {
    /// Returns the form that servers are asked to force. It has no patterns, which few servers know; the check has them.
    pub(super) fn form(&self) -> Value {
        without_patterns(&self.0)
    }

    /// Returns what is wrong with a text, if it is not JSON that the schema accepts.
    pub(super) fn fault(&self, text: &str) -> Option<String> {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Some("it is no JSON".to_owned()) };
        let make = || ready(&self.0).ok().map(Arc::new);
        // The schema was ready for use when it was read.
        let validator = READY.get(&self.0.to_string(), make)?;
        let fault = validator.validate(&value).err()?;
        let (at, what) = (fault.instance_path().to_string(), fault.masked().to_string());
        let at = if at.is_empty() { String::new() } else { format!("at `{}`: ", escape::excerpt(&at)) };
        Some(format!("{at}{}", escape::excerpt(&what)))
    }
}

impl fmt::Display for AnswerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

fn ready(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().with_draft(Draft::Draft202012);
    let built = options.with_pattern_options(PatternOptions::regex().size_limit(1 << 20)).build(schema);
    built.map_err(|why| format!("the schema is not valid: {}", escape::excerpt(&why.to_string())))
}

/// Returns the schemas to which references may point, by their references.
fn definitions(schema: &Value) -> Vec<(String, &Value)> {
    let at = |place: &'static str| {
        let name = place.trim_start_matches("#/").trim_end_matches('/');
        let all = schema.get(name).and_then(Value::as_object).into_iter().flatten();
        all.map(move |(name, schema)| (format!("{place}{name}"), schema))
    };
    PLACES.into_iter().flat_map(at).collect()
}

/// Returns a schema with its references replaced by what they stand for.
fn inlined<'a>(
    schema: &'a Value,
    definitions: &[(String, &'a Value)],
    open: &mut Vec<&'a str>,
    nodes: &mut usize,
) -> Result<Value, String> {
    *nodes += 1;
    if *nodes > NODES_MAX {
        return Err(format!("the schema has more than {NODES_MAX} values once its references are replaced"));
    }
    let fields = match schema {
        Value::Array(items) => {
            let items = items.iter().map(|item| inlined(item, definitions, open, nodes));
            return Ok(Value::Array(items.collect::<Result<_, _>>()?));
        }
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(schema.clone()),
    };
    let mut whole = Map::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("$ref", Value::String(place)) => {
                let Some((_, target)) = definitions.iter().find(|(known, _)| known == place) else {
                    let place = escape::excerpt(place);
                    return Err(format!("the reference `{place}` points to nothing in the schema's `$defs`"));
                };
                if open.contains(&place.as_str()) {
                    let place = escape::excerpt(place);
                    return Err(format!(
                        "the reference `{place}` contains itself, and such a schema is not taken"
                    ));
                }
                open.push(place);
                let target = inlined(target, definitions, open, nodes)?;
                open.pop();
                // The fields beside a reference count too.
                if let Value::Object(target) = target {
                    for (name, value) in target {
                        whole.entry(name).or_insert(value);
                    }
                }
            }
            ("$ref" | "$dynamicRef" | "$recursiveRef" | "$id", _) => {
                return Err(format!("the schema of an answer has no `{name}` of this kind"));
            }
            _ => drop(whole.insert(name.clone(), inlined(value, definitions, open, nodes)?)),
        }
    }
    Ok(Value::Object(whole))
}

/// Returns a schema without its patterns, and without the bounds that hold only beside them.
fn without_patterns(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let has_names = fields.contains_key("patternProperties");
            let is_dropped = |name: &str, value: &Value| match name {
                "pattern" => value.is_string(),
                "patternProperties" => true,
                "additionalProperties" => has_names,
                _ => false,
            };
            let kept = fields.iter().filter(|(name, value)| !is_dropped(name, value));
            Value::Object(kept.map(|(name, value)| (name.clone(), without_patterns(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_patterns).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: Value) -> Result<AnswerSchema, String> {
        AnswerSchema::try_from(value)
    }

    #[test]
    fn references_are_replaced_and_the_answer_is_checked() {
        // The form in which pydantic writes a model with another inside it.
        let person = json!({
            "$defs": {"Place": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}},
            "type": "object",
            "required": ["name", "home"],
            "properties": {"name": {"type": "string", "pattern": "^[A-Z]"}, "home": {"$ref": "#/$defs/Place", "title": "Home"}},
        });
        let person = schema(person).unwrap();
        assert_eq!(person.fault(r#"{"name": "Ada", "home": {"city": "London"}}"#), None);
        let fault = person.fault(r#"{"name": "Ada", "home": {"town": "London"}}"#).unwrap();
        assert!(fault.contains("/home") && fault.contains("city"), "{fault}");
        assert!(person.fault(r#"{"name": "ada", "home": {"city": "London"}}"#).is_some());
        assert!(person.fault("Ada").is_some());
        assert!(!person.to_string().contains("$ref") && !person.form().to_string().contains("pattern"));
        // The written form is read again as the same.
        let again: AnswerSchema = serde_json::from_value(person.clone().into()).unwrap();
        assert_eq!(again, person);
    }

    #[test]
    fn a_schema_that_could_cost_any_time_or_size_is_refused() {
        let doubled = |count: usize| {
            let pair = |at: usize| json!({"anyOf": [{"$ref": format!("#/$defs/{}", at + 1)}, {"$ref": format!("#/$defs/{}", at + 1)}]});
            let mut all: Map<String, Value> = (0..count).map(|at| (at.to_string(), pair(at))).collect();
            all.insert(count.to_string(), json!({"type": "string"}));
            json!({"$defs": all, "type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}})
        };
        assert!(schema(doubled(3)).is_ok());
        for (wrong, why) in [
            (doubled(40), "more than 2000 values"),
            (
                json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}),
                "contains itself",
            ),
            (
                json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/a"}}}),
                "points to nothing",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(a)\\1"}}}),
                "not valid",
            ),
            (json!({"type": "object", "properties": {"a": {"type": "word"}}}), "not valid"),
            (json!({"type": "object", "description": "x".repeat(20_000)}), "more than 16384 bytes"),
            (json!({"type": "string"}), "`object` or `array`"),
            (json!(true), "`object` or `array`"),
        ] {
            let said = schema(wrong).unwrap_err();
            assert!(said.contains(why), "{why}: {said}");
        }
    }
}
