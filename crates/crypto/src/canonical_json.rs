//! RFC 8785 (JSON Canonicalization Scheme), restricted to values that survive it.
//!
//! RFC 8785 prints every number as an IEEE 754 double, so `9007199254740993` silently becomes `…992`. Two different
//! answers would then have one digest. Numbers at or beyond 2⁵³ are therefore refused here; they can be written as
//! strings. RFC 7493 (I-JSON) gives the same advice.

use serde_json::Value;
use thiserror::Error;

/// The bound below which every integer is an exact double: 2⁵³.
const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// A JSON number whose canonical form would differ from the number that was written.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("the number {0} is not below 2^53 and would lose digits; write it as a string")]
pub struct NotInteroperable(pub String);

/// Returns the RFC 8785 form of `value`.
///
/// # Errors
///
/// [`NotInteroperable`] with the first number whose magnitude is 2⁵³ or more.
pub fn canonical_json(value: &Value) -> Result<String, NotInteroperable> {
    check_numbers(value)?;
    serde_json_canonicalizer::to_string(value).map_err(|e| NotInteroperable(e.to_string()))
}

fn check_numbers(value: &Value) -> Result<(), NotInteroperable> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.abs() < EXACT_LIMIT => Ok(()),
            Some(_) | None => Err(NotInteroperable(number.to_string())),
        },
        Value::Array(items) => items.iter().try_for_each(check_numbers),
        Value::Object(map) => map.values().try_for_each(check_numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_numbers_shortened() {
        let value = json!({"b": 1.0, "a": [true, null, "é"]});
        assert_eq!(canonical_json(&value).unwrap(), r#"{"a":[true,null,"é"],"b":1}"#);
    }

    #[test]
    fn numbers_that_would_lose_digits_are_refused() {
        for text in ["9007199254740993", "[1, {\"x\": -9007199254740992}]", "1e300"] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(canonical_json(&value).is_err(), "{text}");
        }
    }
}
