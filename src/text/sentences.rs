//! Texts with a stated number of sentences, as grammars can force them.

use serde_json::{Value, json};

use super::constraint::Bounds;
use super::{CanonicalKind, Constraint};

/// The longest sentence that a grammar can be asked for, in characters: about forty words.
const SENTENCE_CHARS_MAX: usize = 240;

/// More sentences than this are counted afterwards, and not forced.
const SENTENCES_MAX: usize = 12;

/// Returns how many sentences a text has that is written as the list of them: prose that must have a stated,
/// small number of several.
#[must_use]
pub fn listed_sentences(kind: CanonicalKind, constraints: &[Constraint]) -> Option<usize> {
    if kind != CanonicalKind::Text {
        return None;
    }
    constraints.iter().find_map(|rule| {
        let Constraint::Sentences(Bounds { min: Some(min), max: Some(max) }) = rule else { return None };
        Some(*min).filter(|count| min == max && (2..=SENTENCES_MAX).contains(count))
    })
}

/// A text of so many sentences, written as the list of them.
///
/// Held to the number inside one string, a small model that has fewer in mind fills up with what comes to
/// hand; in a list it writes another sentence. None, if there is no room for so many: bounds that exclude each
/// other make servers hang.
pub(super) fn sentence_list(count: usize, chars_max: usize) -> Option<Value> {
    let pattern = format!("^{}$", sentence(sentence_room(chars_max, count))?);
    let items = json!({"type": "string", "pattern": pattern});
    Some(json!({"type": "array", "items": items, "minItems": count, "maxItems": count}))
}

/// The characters of one sentence out of so many, its first and its last aside.
fn sentence_room(chars_max: usize, count: usize) -> usize {
    (chars_max / count).saturating_sub(4).min(SENTENCE_CHARS_MAX)
}

/// The pattern of one sentence; none, if the room is not enough for a word.
fn sentence(room: usize) -> Option<String> {
    let first = r"[^\x00-\x40\x5B-\x7F]";
    let rest = r#"[^.!?"\\\x00-\x1F\x7F]"#;
    (room > 2).then(|| format!("{first}{rest}{{2,{room}}}[.!?]"))
}

/// The pattern of a text with a stated number of sentences.
///
/// It forbids full stops inside a sentence, so it admits less than the rule does. What it admits in
/// ASCII holds to the rule: after a full stop a sentence begins only with a capital, since a digit or a
/// small letter goes on with the one before (UAX #29, SB8). Of other scripts every letter may begin one,
/// and the full check decides.
pub(super) fn sentences(rule: &Constraint, chars_max: usize) -> Option<String> {
    let Constraint::Sentences(bounds) = rule else { return None };
    let min = bounds.min.unwrap_or(1).max(1);
    let max = bounds.max.unwrap_or(SENTENCES_MAX).min(SENTENCES_MAX);
    if min > max {
        return None;
    }
    let sentence = sentence(sentence_room(chars_max, max))?;
    let (fewest, most) = (min - 1, max - 1);
    Some(format!("^{sentence}( {sentence}){{{fewest},{most}}}$"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::schema::compile;
    use proptest::prelude::*;

    #[test]
    fn an_impossible_or_vast_number_of_sentences_is_not_forced() {
        let pattern = |rule: &str, room| sentences(&Constraint::parse(rule).unwrap(), room);
        assert!(pattern("sentences=3", 600).is_some());
        assert_eq!(pattern("sentences=99..", 600), None);
        assert_eq!(pattern("sentences=3", 12), None);
        assert_eq!(pattern("words=3", 600), None);
        assert!(sentence_list(3, 600).is_some());
        assert_eq!(sentence_list(3, 20), None);
    }

    #[test]
    fn only_prose_of_a_stated_number_of_sentences_is_written_as_a_list() {
        let listed = |kind, rule: &str| listed_sentences(kind, &[Constraint::parse(rule).unwrap()]);
        assert_eq!(listed(CanonicalKind::Text, "sentences=3"), Some(3));
        for rule in ["sentences=1", "sentences=13", "sentences=2..3", "sentences=..3", "words=3"] {
            assert_eq!(listed(CanonicalKind::Text, rule), None, "{rule}");
        }
        assert_eq!(listed(CanonicalKind::Lines, "sentences=3"), None);
    }

    proptest! {
        #[test]
        fn a_forced_number_of_sentences_is_the_number_that_is_counted(
            parts in prop::collection::vec("[A-Z][ a-zA-Z0-9,;:()'-]{2,30}[.!?]", 1..6),
        ) {
            let rule = Constraint::parse(&format!("sentences={}", parts.len())).unwrap();
            let text = parts.join(" ");
            let pattern = sentences(&rule, 240).unwrap();
            let admitted = compile(&json!({"type": "string", "pattern": pattern})).is_valid(&json!(text));
            prop_assert!(admitted, "{}", text);
            prop_assert_eq!(rule.check(&text), Ok(()));
        }
    }
}
