//! A reader of JSON that refuses what `serde_json::Value` quietly accepts: repeated keys and deep nesting.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Map, Number, Value};

/// The deepest nesting of objects and arrays that a reply, roleset or task may have.
pub const DEPTH_MAX: usize = 64;

/// Returns false if brackets outside strings nest deeper than [`DEPTH_MAX`].
///
/// The check is one pass over the bytes before any parser sees them, so hostile nesting costs no stack.
pub fn check_depth(text: &str) -> bool {
    nests_at_most(text, DEPTH_MAX)
}

/// Returns false if brackets outside strings nest deeper than `most`.
pub(super) fn nests_at_most(text: &str, most: usize) -> bool {
    // Most texts have so few brackets that they cannot nest too deeply, and a processor counts bytes many at a time.
    if text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count() <= most {
        return true;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > most {
                    return false;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

/// A JSON value in which no object repeats a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StrictValue(pub Value);

impl Serialize for StrictValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(StrictValue)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value without repeated keys")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Number(v.into()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Number(v.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Value, E> {
        Number::from_f64(v).map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(StrictValue(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate field `{key}`")));
            }
            let StrictValue(value) = access.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"x":[{"a":1,"b":0,"a":1}]}"#] {
            let error = serde_json::from_str::<StrictValue>(text).unwrap_err().to_string();
            assert!(error.contains("duplicate field `a`"), "{error}");
        }
    }

    #[test]
    fn ordinary_value_equals_serde_json_reading() {
        let text = r#"{"a":[1,-2,3.5,"x",null,true],"b":{"c":{}}}"#;
        let strict: StrictValue = serde_json::from_str(text).unwrap();
        assert_eq!(strict.0, serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(serde_json::to_string(&strict).unwrap(), text);
    }

    #[test]
    fn depth_counts_brackets_outside_strings_only() {
        assert!(check_depth(&format!("{}{}", "[".repeat(64), "]".repeat(64))));
        assert!(!check_depth(&"[".repeat(65)));
        assert!(check_depth(&format!("\"{}\"", "[".repeat(100_000))));
        assert!(check_depth(&format!(r#""\"{}""#, "[".repeat(65))));
        assert!(!check_depth(&format!(r#""\\"{}"#, "[".repeat(65))));
        assert!(check_depth(&"[]{}".repeat(65)), "brackets side by side do not nest");
    }
}
