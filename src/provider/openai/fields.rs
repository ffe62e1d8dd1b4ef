//! A JSON object by its fields, none of which is lost.
//!
//! The input is the text of an object. The output is the text of each field's value. Servers write a field twice, and
//! halves of a character that only the next chunk completes. A field that is there twice with two values is an error
//! where the answer depends on it, because nothing here chooses between them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::provider::failure::ServerFailure;

/// The fields of an object, in their order.
pub(super) struct ObjectFields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// The name of a field. Every chunk of a stream has a dozen, so one without escapes is not copied.
#[derive(Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

/// The reason why a part of a reply cannot be used.
#[derive(Debug)]
pub(super) enum ReplyFault {
    /// The part has another form.
    Form(String),
    /// The part ends too early, or says two things.
    Damaged(String),
    /// The part is an error, inside an answer that began well.
    Failed(ServerFailure),
}

impl<'a> ObjectFields<'a> {
    /// Returns the value of a field, or nothing if it is missing or null. A value that is written twice counts once.
    pub(super) fn get(&self, name: &str) -> Result<Option<&'a RawValue>, ReplyFault> {
        let mut values = self.values(name);
        let Some(first) = values.next() else { return Ok(None) };
        if values.any(|value| value.get() != first.get()) {
            return Err(ReplyFault::Damaged(format!("it has two different values of `{name}`")));
        }
        Ok(Some(first))
    }

    /// Returns the last value of a field on which no answer depends, if it can be read.
    pub(super) fn lenient<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.values(name).last().and_then(|value| serde_json::from_str(value.get()).ok())
    }

    /// Returns true if the object has this field, with any value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    fn values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a RawValue> + 's {
        let named = self.0.iter().filter(move |(key, value)| key == name && value.get() != "null");
        named.map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ObjectFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsReader;

        impl<'de> Visitor<'de> for FieldsReader {
            type Value = ObjectFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((FieldName(key), value)) = map.next_entry::<FieldName<'de>, &'de RawValue>()? {
                    fields.push((key, value));
                }
                Ok(ObjectFields(fields))
            }
        }

        deserializer.deserialize_map(FieldsReader)
    }
}

/// A JSON string as bytes. The half of a character that JSON can write has three bytes, as WTF-8 writes it.
pub(super) struct Wtf8(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Wtf8 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextReader;

        impl Visitor<'_> for TextReader {
            type Value = Wtf8;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Wtf8, E> {
                Ok(Wtf8(text.as_bytes().to_vec()))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Wtf8, E> {
                Ok(Wtf8(bytes.to_vec()))
            }
        }

        deserializer.deserialize_bytes(TextReader)
    }
}

/// Joins halves of characters that follow each other, and returns the text, or nothing if a half is left alone.
pub(super) fn join_halves(mut bytes: Vec<u8>) -> Option<String> {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(6).position(is_pair) {
        let start = at + found;
        let high = half(&bytes[start..start + 3]);
        let low = half(&bytes[start + 3..start + 6]);
        let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        let joined = char::from_u32(code)?;
        let mut buffer = [0; 4];
        bytes.splice(start..start + 6, joined.encode_utf8(&mut buffer).bytes());
        at = start + 4;
    }
    String::from_utf8(bytes).ok()
}

/// Returns true for a high half before a low one.
fn is_pair(six: &[u8]) -> bool {
    matches!(six, [0xED, 0xA0..=0xAF, _, 0xED, 0xB0..=0xBF, _])
}

/// Returns the code of a half in three bytes.
fn half(three: &[u8]) -> u32 {
    let bits = three.iter().map(|byte| u32::from(byte & 0x3F)).fold(0, |code, bits| (code << 6) | bits);
    // The first byte of three holds four bits.
    bits & 0xFFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_written_twice_counts_once() {
        let fields: ObjectFields<'_> =
            serde_json::from_str(r#"{"a":"x","b":1,"a":"x","b":2,"c":null}"#).unwrap();
        assert_eq!(fields.get("a").unwrap().unwrap().get(), "\"x\"");
        assert!(fields.get("b").is_err());
        assert_eq!(fields.lenient("b"), Some(2));
        assert!(fields.get("c").unwrap().is_none() && fields.has("c") && !fields.has("d"));
    }

    #[test]
    fn halves_of_a_character_are_joined() {
        let read = |json: &str| serde_json::from_str::<Wtf8>(json).unwrap().0;
        let joined = |parts: &[&str]| join_halves(parts.iter().flat_map(|part| read(part)).collect());
        assert_eq!(joined(&[r#""Party \ud83d""#, r#""\ude00 yes""#]).unwrap(), "Party 😀 yes");
        assert_eq!(joined(&[r#""\ud83d\ude00""#, r#""\ud83d""#, r#""\ude01é""#]).unwrap(), "😀😁é");
        assert_eq!(joined(&[r#""\ud83d""#, r#""x""#]), None);
        assert_eq!(joined(&[r#""\ude00""#]), None);
        assert_eq!(joined(&[r#""plain""#]).unwrap(), "plain");
    }
}
