//! Texts of models and people: the JSON in a reply, the envelope, and the words that must not leave the machine.
//!
//! In: bytes. Out: whether a text was taken; of a text to be redacted, whether a token stands in it. Nothing is repaired here.

use std::collections::BTreeMap;

use protocol::text::redact::{Redactions, Redactor, is_token, tokens};
use protocol::text::{self, Envelope, Extracted, StrictValue, check_depth};
use serde_json::Value;

/// Reads a reply in which one JSON object may stand.
pub(crate) fn extract(bytes: &[u8]) -> bool {
    let Ok(reply) = std::str::from_utf8(bytes) else { return false };
    let Ok(Extracted { object, .. }) = text::extract(reply) else { return false };
    assert!(object.starts_with('{') && reply.contains(object) && check_depth(object));
    let bare = Extracted { object, reasoning: None, fenced: false };
    assert_eq!(text::extract(object), Ok(bare), "an object is found in itself, whole");
    let Ok(StrictValue(value)) = serde_json::from_str(object) else { return false };
    let lax: Value = serde_json::from_str(object).expect("the strict reading takes nothing else");
    assert_eq!(lax, value, "no key was given twice");
    let StrictValue(again) = serde_json::from_str(&value.to_string()).expect("a written value is read");
    assert_eq!(again, value);
    true
}

/// Reads a reply that should be an envelope.
pub(crate) fn envelope(bytes: &[u8]) -> bool {
    let Ok(reply) = std::str::from_utf8(bytes) else { return false };
    let Ok(envelope) = Envelope::parse(reply) else { return false };
    let written = serde_json::to_string(&envelope).expect("an envelope has a JSON form");
    assert_eq!(Envelope::parse(&written).as_ref(), Ok(&envelope), "an envelope reads the same again");
    assert!(envelope.artifact.content.0.is_object(), "an artifact has named parts");
    true
}

/// Redacts a text, and restores it.
pub(crate) fn redact(bytes: &[u8]) -> bool {
    let text = &*String::from_utf8_lossy(bytes);
    let own = ["PRJ-[0-9]+".to_owned()];
    let new =
        |known: &Redactions| Redactor::new(&own).expect("the pattern is one").with_redactions(known.clone());
    let mut redactor = new(&Redactions::default());
    let redacted = redactor.redact(text);
    let known = redactor.redactions().clone();
    assert_eq!(known.restore(&redacted), text, "the restored text is the original");
    let table = serde_json::to_value(&known).expect("a table has a JSON form");
    for token in tokens(&redacted) {
        assert!(is_token(token) && table.get(token).is_some(), "`{token}` stands for something");
    }
    let in_json = known.restore_json(&Value::from(redacted.as_str()).to_string());
    assert_eq!(serde_json::from_str::<Value>(&in_json).ok(), Some(text.into()), "JSON stays JSON");
    let read: BTreeMap<String, String> = serde_json::from_value(table).expect("names and originals");
    assert!(read.values().all(|original| text.contains(original)), "the table holds words of the text alone");
    assert_eq!(new(&known).redact(text), redacted, "one original keeps its token");
    restores_in_parts(text, new(&known));
    redacted != text
}

/// Redacts a text in two parts, each beside the other. A part ends at white space.
fn restores_in_parts(text: &str, mut redactor: Redactor) {
    let middle = text.floor_char_boundary(text.len() / 2);
    let Some((at, gap)) = text[middle..].char_indices().find(|(_, c)| c.is_whitespace()) else { return };
    let (head, tail) = (&text[..middle + at], &text[middle + at + gap.len_utf8()..]);
    let [head, tail] = [redactor.redact_between("", head, tail), redactor.redact_between(head, tail, "")];
    let parts = format!("{head}{gap}{tail}");
    assert_eq!(redactor.redactions().restore(&parts), text, "in parts as well");
}
