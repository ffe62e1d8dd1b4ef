//! RFC 8785 (JSON Canonicalization Scheme), restricted to numbers that survive it.
//!
//! RFC 8785 prints every number as an IEEE 754 double, so `9007199254740993` silently becomes `…992`, and `1e-400`
//! becomes 0. Two different answers would then have one digest. Numbers that do not come back from a double as they
//! were written are therefore refused here; they can be written as strings. RFC 7493 (I-JSON) gives the same advice.

use serde_json::Value;
use thiserror::Error;

/// A JSON number whose canonical form is another number.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("the number {0} would lose digits; write it as a string")]
pub struct NotInteroperable(pub String);

/// Returns the RFC 8785 form of a JSON text, which `value` was read from.
///
/// # Errors
///
/// [`NotInteroperable`] with the first number that is not the shortest decimal of a double, up to its notation.
pub fn canonical_json(text: &str, value: &Value) -> Result<String, NotInteroperable> {
    if let Some(number) = numbers(text).find(|number| !comes_back(number)) {
        return Err(NotInteroperable(number.to_owned()));
    }
    serde_json_canonicalizer::to_string(value).map_err(|e| NotInteroperable(e.to_string()))
}

/// Returns the numbers in a JSON text, as they are written.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            rest = &rest[start..];
            if let Some(string) = rest.strip_prefix('"') {
                rest = &string[end_of_string(string)..];
                continue;
            }
            let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
            let (number, behind) = rest.split_at(end.unwrap_or(rest.len()));
            rest = behind;
            return Some(number);
        }
    })
}

/// Returns the length of a string with the quote that ends it.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 1)
}

/// Returns true if the double nearest to a number is written with the same digits.
fn comes_back(number: &str) -> bool {
    let read = number.parse::<f64>().ok().filter(|read| read.is_finite());
    // Rust prints the shortest decimal that is read as the same double.
    read.is_some_and(|read| digits(&format!("{read:e}")) == digits(number))
}

/// Returns the digits of a number without the zeros around them, and the power of ten of the last one.
fn digits(number: &str) -> (String, i128) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", whole.trim_start_matches(['-', '+']));
    let trimmed = all.trim_end_matches('0');
    if trimmed.is_empty() {
        return (String::new(), 0);
    }
    let exponent = i128::from(exponent.parse::<i64>().unwrap_or(i64::MAX));
    let place = exponent - fraction.len() as i128 + (all.len() - trimmed.len()) as i128;
    (trimmed.trim_start_matches('0').to_owned(), place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_numbers_shortened() {
        let value = json!({"b": 1.0, "a": [true, null, "é"]});
        assert_eq!(canonical_json(&value.to_string(), &value).unwrap(), r#"{"a":[true,null,"é"],"b":1}"#);
    }

    #[test]
    fn numbers_that_would_lose_digits_are_refused() {
        for text in [
            "9007199254740993",
            "[1, {\"x\": -9007199254740993}]",
            "[1e-400]",
            "1.0000000000000001",
            "0.1000000000000000055",
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(canonical_json(text, &value).is_err(), "{text}");
        }
        for (text, form) in [
            ("6.02214076e23", "6.02214076e+23"),
            ("[1e30, 1E+30, 1000000000000000000000000000000.0]", "[1e+30,1e+30,1e+30]"),
            ("9007199254740992", "9007199254740992"),
            ("[0.30, -0.0, 0e9, 5e-324, 1.7976931348623157e308]", "[0.3,0,0,5e-324,1.7976931348623157e+308]"),
            (r#"{"9007199254740993": "1e-400 \" 1e999"}"#, r#"{"9007199254740993":"1e-400 \" 1e999"}"#),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(canonical_json(text, &value).unwrap(), form, "{text}");
        }
    }
}
