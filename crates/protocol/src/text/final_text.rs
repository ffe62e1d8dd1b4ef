//! A final text as its author wrote it: a JSON string, the JSON value that it is, or a list of its sentences.
//!
//! An answer that is JSON can be written as a value of the envelope. Small models get a JSON text
//! inside a JSON string wrong, because every quote in it must be escaped.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A final text as it was written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FinalText {
    /// The text. For a JSON value, this is its JSON as it was written.
    pub text: String,
    /// Whether it was written as a JSON value other than a string.
    pub is_value: bool,
}

impl FinalText {
    /// Returns the joined sentences of a text that was written as a list of them.
    pub fn join_sentences(&self) -> Option<String> {
        if !self.is_value {
            return None;
        }
        let sentences: Vec<String> = serde_json::from_str(&self.text).ok()?;
        Some(sentences.iter().map(|sentence| sentence.trim()).collect::<Vec<_>>().join(" "))
    }
}

impl From<&str> for FinalText {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), is_value: false }
    }
}

impl<'de> Deserialize<'de> for FinalText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let is_value = !raw.get().starts_with('"');
        let text = if is_value {
            raw.get().to_owned()
        } else {
            serde_json::from_str(raw.get()).map_err(D::Error::custom)?
        };
        Ok(Self { text, is_value })
    }
}

impl Serialize for FinalText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_value {
            RawValue::from_string(self.text.clone()).map_err(S::Error::custom)?.serialize(serializer)
        } else {
            serializer.serialize_str(&self.text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_sentences_becomes_text() {
        let joined = |json: &str| serde_json::from_str::<FinalText>(json).unwrap().join_sentences();
        assert_eq!(joined(r#"["One.", " Two. "]"#).as_deref(), Some("One. Two."));
        for other in ["\"[]\"", "[1]", "{}", "7", "[[\"a\"]]"] {
            assert_eq!(joined(other), None, "{other}");
        }
    }

    #[test]
    fn value_keeps_digits_string_keeps_text() {
        for (json, text, is_value) in [
            (r#""a \"b\"""#, r#"a "b""#, false),
            (r#"{"x": 1.50}"#, r#"{"x": 1.50}"#, true),
            ("null", "null", true),
        ] {
            let found: FinalText = serde_json::from_str(json).unwrap();
            assert_eq!((found.text.as_str(), found.is_value), (text, is_value));
            assert_eq!(serde_json::to_string(&found).unwrap(), json);
        }
    }
}
