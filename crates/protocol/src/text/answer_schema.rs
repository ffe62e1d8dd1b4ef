//! A JSON Schema that a user gives for the answer.
//!
//! The input is an untrusted schema. The output is a rule for texts, and the form that servers are asked to force. Only keywords whose
//! check takes time in proportion to the schema and the text are taken, so no schema can hold up a run. References within the schema are
//! replaced by what they stand for, and a reference that contains itself is refused. Size, depth and patterns have limits.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::escape;
use super::strict_json::nests_at_most;

/// The longest schema, as JSON without spaces, in bytes. Agents read it in each prompt.
const BYTES_MAX: usize = 16 << 10;

/// The longest schema before its references are replaced, in bytes.
const GIVEN_BYTES_MAX: usize = 64 << 10;

/// The most schemas within a schema once its references are replaced.
const SCHEMAS_MAX: usize = 1000;

/// The deepest nesting of schemas, and of brackets. A line of a journal may nest to 64, and some of it is around the schema.
const DEPTH_MAX: usize = 12;
const NESTING_MAX: usize = 40;

/// The most patterns, and the most memory of each, in bytes.
const PATTERNS_MAX: usize = 16;
const PATTERN_BYTES_MAX: usize = 128 << 10;

/// The places of a schema to which a reference may point.
const PLACES: [&str; 2] = ["$defs", "definitions"];

/// The keywords whose value is a schema, a list of schemas, or schemas by names.
const OF_SCHEMA: [&str; 7] = ["items", "additionalProperties", "not", "if", "then", "else", "propertyNames"];
const OF_LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const OF_NAMES: [&str; 2] = ["properties", "patternProperties"];

/// The keywords whose value is data.
const OF_DATA: [&str; 19] = [
    "type",
    "enum",
    "const",
    "required",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "dependentRequired",
];

/// The keywords that are words for people and models.
const OF_WORDS: [&str; 3] = ["title", "description", "$comment"];

/// The keywords that only say something about a schema. They are left out.
const LEFT_OUT: [&str; 9] = [
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
    "$schema",
    "nullable",
];

/// A schema for an answer that is an object or a list.
#[derive(Clone, Deserialize, Serialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct AnswerSchema {
    schema: Arc<Value>,
    /// The same, ready for use. It may take megabytes, so clones share it.
    validator: Arc<Validator>,
}

/// The key of a decoder contains this text, so the compiled form is not in it.
impl fmt::Debug for AnswerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnswerSchema").field(&self.schema).finish()
    }
}

impl PartialEq for AnswerSchema {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
    }
}

impl Eq for AnswerSchema {}

impl TryFrom<Value> for AnswerSchema {
    type Error = String;

    /// Replaces the references of a schema.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the schema.
    fn try_from(mut given: Value) -> Result<Self, String> {
        if given.to_string().len() > GIVEN_BYTES_MAX {
            return Err(format!("the schema has more than {GIVEN_BYTES_MAX} bytes"));
        }
        let mut definitions = BTreeMap::new();
        for place in PLACES {
            let all = given.as_object_mut().and_then(|given| given.shift_remove(place));
            if let Some(Value::Object(all)) = all {
                definitions
                    .extend(all.into_iter().map(|(name, schema)| (format!("#/{place}/{name}"), schema)));
            }
        }
        let mut inliner = Inliner { definitions: &definitions, open: Vec::new(), schemas: 0, patterns: 0 };
        let whole = inliner.schema(&given, 0)?;
        if !matches!(whole["type"].as_str(), Some("object" | "array")) {
            return Err("the schema of an answer has the `type` `object` or `array` at its top".to_owned());
        }
        let text = whole.to_string();
        if !nests_at_most(&text, NESTING_MAX) {
            return Err(format!("the brackets of the schema are nested more than {NESTING_MAX} times"));
        }
        if text.len() > BYTES_MAX {
            return Err(format!(
                "the schema has more than {BYTES_MAX} bytes once its references are replaced"
            ));
        }
        let validator = Arc::new(compile(&whole)?);
        Ok(Self { schema: Arc::new(whole), validator })
    }
}

impl From<AnswerSchema> for Value {
    fn from(schema: AnswerSchema) -> Self {
        (*schema.schema).clone()
    }
}

impl AnswerSchema {
    /// Returns the form that servers are asked to force. It has no patterns, which few servers know; the check has them.
    pub(super) fn form(&self) -> Value {
        without_patterns(&self.schema)
    }

    /// Returns what is wrong with a text, if it is not JSON that the schema accepts.
    pub(super) fn fault(&self, text: &str) -> Option<String> {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Some("it is no JSON".to_owned()) };
        let fault = self.validator.validate(&value).err()?;
        let (at, what) = (fault.instance_path().to_string(), fault.masked().to_string());
        let at = if at.is_empty() { String::new() } else { format!("at `{}`: ", escape::excerpt(&at)) };
        Some(format!("{at}{}", escape::excerpt(&what)))
    }
}

impl fmt::Display for AnswerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.schema)
    }
}

fn compile(schema: &Value) -> Result<Validator, String> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
    let options = jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(patterns);
    options
        .build(schema)
        .map_err(|why| format!("the schema is not valid: {}", escape::excerpt(&why.to_string())))
}

/// The replacement of the references of a schema.
struct Inliner<'a> {
    /// The schemas to which references may point, by their references.
    definitions: &'a BTreeMap<String, Value>,
    /// The references that are being replaced.
    open: Vec<&'a str>,
    /// The numbers of schemas and of patterns that were counted.
    schemas: usize,
    patterns: usize,
}

impl<'a> Inliner<'a> {
    /// Returns a schema with its references replaced by what they stand for.
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<Value, String> {
        self.schemas += 1;
        if self.schemas > SCHEMAS_MAX {
            return Err(format!(
                "the schema has more than {SCHEMAS_MAX} parts once its references are replaced"
            ));
        }
        if depth > DEPTH_MAX {
            return Err(format!(
                "the schema is nested more than {DEPTH_MAX} times once its references are replaced"
            ));
        }
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err("a schema within the schema is neither an object nor a boolean".to_owned());
            }
        };
        let mut whole = Map::new();
        for (name, value) in fields.iter().filter(|(name, _)| *name != "$ref") {
            if let Some(value) = self.keyword(name, value, depth)? {
                whole.insert(name.clone(), value);
            }
        }
        let Some(place) = fields.get("$ref") else { return Ok(Value::Object(whole)) };
        let target = self.target(place, depth)?;
        let only_words = whole.keys().all(|name| OF_WORDS.contains(&name.as_str()));
        match (target, only_words) {
            (Value::Object(mut target), true) => {
                // The words beside a reference are about this use of it.
                target.extend(whole);
                Ok(Value::Object(target))
            }
            (target, true) => Ok(target),
            (target, false) => {
                let all = whole.entry("allOf").or_insert_with(|| json!([]));
                if let Some(all) = all.as_array_mut() {
                    all.push(target);
                }
                Ok(Value::Object(whole))
            }
        }
    }

    /// Returns the value of a keyword, or `None` for one that only says something about the schema.
    fn keyword(&mut self, name: &str, value: &'a Value, depth: usize) -> Result<Option<Value>, String> {
        let below = depth + 1;
        if LEFT_OUT.contains(&name) {
            return Ok(None);
        }
        if OF_DATA.contains(&name) || OF_WORDS.contains(&name) {
            self.count_patterns(usize::from(name == "pattern"))?;
            return Ok(Some(value.clone()));
        }
        if OF_SCHEMA.contains(&name) {
            return self.schema(value, below).map(Some);
        }
        if let Value::Array(list) = value
            && OF_LIST.contains(&name)
        {
            let list = list.iter().map(|schema| self.schema(schema, below));
            return Ok(Some(Value::Array(list.collect::<Result<_, _>>()?)));
        }
        if let Value::Object(named) = value
            && OF_NAMES.contains(&name)
        {
            self.count_patterns(if name == "patternProperties" { named.len() } else { 0 })?;
            let named = named.iter().map(|(name, schema)| Ok((name.clone(), self.schema(schema, below)?)));
            return Ok(Some(Value::Object(named.collect::<Result<_, String>>()?)));
        }
        Err(format!("`{}` cannot be used in the schema of an answer", escape::excerpt(name)))
    }

    fn count_patterns(&mut self, more: usize) -> Result<(), String> {
        self.patterns += more;
        if self.patterns > PATTERNS_MAX {
            return Err(format!(
                "the schema has more than {PATTERNS_MAX} patterns once its references are replaced"
            ));
        }
        Ok(())
    }

    /// Returns what a reference stands for.
    fn target(&mut self, place: &'a Value, depth: usize) -> Result<Value, String> {
        let place = place.as_str().unwrap_or_default();
        let shown = escape::excerpt(place);
        let Some(target) = self.definitions.get(place) else {
            return Err(format!("the reference `{shown}` points to nothing in the schema's `$defs`"));
        };
        if self.open.contains(&place) {
            return Err(format!("the reference `{shown}` contains itself, and such a schema is not taken"));
        }
        self.open.push(place);
        let target = self.schema(target, depth + 1);
        self.open.pop();
        target
    }
}

/// Returns a schema without its patterns, and without the bounds that hold only beside them.
fn without_patterns(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let has_names = fields.contains_key("patternProperties");
    let mut form = Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            ("pattern" | "patternProperties", _) => continue,
            ("additionalProperties", _) if has_names => continue,
            (name, Value::Array(list)) if OF_LIST.contains(&name) => {
                list.iter().map(without_patterns).collect()
            }
            ("properties", Value::Object(named)) => {
                let named = named.iter().map(|(name, schema)| (name.clone(), without_patterns(schema)));
                Value::Object(named.collect())
            }
            (name, value) if OF_SCHEMA.contains(&name) => without_patterns(value),
            (_, value) => value.clone(),
        };
        form.insert(name.clone(), value);
    }
    Value::Object(form)
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
    fn costly_schema_is_refused() {
        let doubled = |count: usize| {
            let mut all = Map::new();
            for at in 0..count {
                let next = json!({"$ref": format!("#/$defs/{}", at + 1)});
                all.insert(at.to_string(), json!({"anyOf": [next, next]}));
            }
            all.insert(count.to_string(), json!({"type": "string"}));
            json!({"$defs": all, "type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}})
        };
        assert!(schema(doubled(3)).is_ok());
        let many: Map<String, Value> =
            (0..40).map(|at| (at.to_string(), json!({"$ref": "#/$defs/a"}))).collect();
        let wide = json!({"$defs": {"a": {"anyOf": vec![true; 40]}}, "type": "object", "properties": many});
        let nested = |keyword: &str| {
            let mut schema = json!({});
            for _ in 0..30 {
                schema = json!({"type": "object", keyword: schema});
            }
            schema
        };
        for (wrong, why) in [
            (wide, "more than 1000 parts"),
            (doubled(40), "nested more than 12 times"),
            (nested("not"), "nested more than 12 times"),
            (nested("unevaluatedProperties"), "`unevaluatedProperties` cannot be used"),
            (
                json!({"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a"}}}}, "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}),
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
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "\\p{L}{200}"}}}),
                "not valid",
            ),
            (json!({"type": "object", "anyOf": vec![json!({"pattern": "a"}); 17]}), "more than 16 patterns"),
            (json!({"type": "object", "properties": {"a": {"type": "word"}}}), "not valid"),
            (json!({"type": "object", "description": "x".repeat(20_000)}), "more than 16384 bytes"),
            (json!({"type": "object", "description": "x".repeat(70_000)}), "more than 65536 bytes"),
            (json!({"type": "string"}), "`object` or `array`"),
            (json!(true), "`object` or `array`"),
        ] {
            let said = schema(wrong).unwrap_err();
            assert!(said.contains(why), "{why}: {said}");
        }
    }

    /// Data that looks like a reference is left alone.
    #[test]
    fn rule_beside_reference_adds_to_it() {
        let of = |beside: Value| {
            let mut a = json!({"$ref": "#/$defs/long"});
            a.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            schema(json!({"$defs": {"long": {"type": "string", "minLength": 3}, "never": false}, "type": "object", "properties": {"a": a}})).unwrap()
        };
        assert!(of(json!({})).fault(r#"{"a": "x"}"#).is_some());
        assert!(of(json!({"minLength": 0})).fault(r#"{"a": "x"}"#).is_some(), "the stricter rule holds");
        assert!(of(json!({"maxLength": 4})).fault(r#"{"a": "abcde"}"#).is_some());
        assert_eq!(of(json!({"maxLength": 4, "allOf": [{"minLength": 4}]})).fault(r#"{"a": "abcd"}"#), None);
        let never = json!({"$defs": {"never": false}, "type": "object", "properties": {"a": {"$ref": "#/$defs/never"}}});
        assert!(schema(never).unwrap().fault(r#"{"a": 1}"#).is_some());
        let data =
            schema(json!({"type": "object", "properties": {"pattern": {"const": {"$ref": "x"}}}})).unwrap();
        assert_eq!(data.fault(r#"{"pattern": {"$ref": "x"}}"#), None);
        assert_eq!(data.form(), Value::from(data.clone()));
    }
}
