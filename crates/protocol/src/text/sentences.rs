//! Texts with a stated number of sentences, in forms that grammars can force.

use serde_json::{Value, json};

use super::constraint::Bounds;
use super::{CanonicalKind, Constraint};

/// The longest sentence that a grammar can be asked for, in characters: about forty words.
const SENTENCE_CHARS_MAX: usize = 240;

/// The most sentences that are forced. More than this are counted afterwards.
const SENTENCES_MAX: usize = 12;

/// Returns the number of sentences of a text that is written as the list of them. This is prose with a stated number of
/// sentences that is small and greater than one.
pub fn listed_sentences(kind: CanonicalKind, constraints: &[Constraint]) -> Option<usize> {
    if kind != CanonicalKind::Text {
        return None;
    }
    constraints.iter().find_map(|rule| {
        let Constraint::Sentences(Bounds { min: Some(min), max: Some(max) }) = rule else { return None };
        if min == max && (2..=SENTENCES_MAX).contains(min) { Some(*min) } else { None }
    })
}

/// Returns the schema of a text of this many sentences, written as the list of them.
///
/// A small model that must write the number in one string, and has fewer sentences in mind, fills it up with anything;
/// in a list it writes another sentence. Nothing is returned if there is no room for so many, because bounds that
/// exclude each other make servers hang.
pub(super) fn sentence_list(count: usize, chars_max: usize) -> Option<Value> {
    let pattern = format!("^{}$", sentence(sentence_room(chars_max, count))?);
    let items = json!({"type": "string", "pattern": pattern});
    Some(json!({"type": "array", "items": items, "minItems": count, "maxItems": count}))
}

/// Returns the room for one sentence out of so many, in characters, without its first and its last character.
fn sentence_room(chars_max: usize, count: usize) -> usize {
    (chars_max / count).saturating_sub(4).min(SENTENCE_CHARS_MAX)
}

/// Returns the pattern of one sentence, or nothing if the room is not enough for a word.
fn sentence(room: usize) -> Option<String> {
    let first = r"[^\x00-\x40\x5B-\x7F]";
    let rest = r#"[^.!?"\\\x00-\x1F\x7F]"#;
    if room > 2 { Some(format!("{first}{rest}{{2,{room}}}[.!?]")) } else { None }
}

/// Returns the pattern of a text with a stated number of sentences.
///
/// The pattern forbids full stops inside a sentence, so it admits less than the rule does. Every ASCII text that it
/// admits obeys the rule, unless one of its sentences ends in a shortened word or an initial. After a full stop a sentence begins only with a capital, because a digit or a small letter
/// continues the sentence before (UAX #29, SB8). In other scripts every letter may begin a sentence, and the full check
/// decides.
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

    /// A vast count is not forced either.
    #[test]
    fn impossible_sentence_count_is_not_forced() {
        let pattern = |rule: &str, room| sentences(&Constraint::parse(rule).unwrap(), room);
        assert!(pattern("sentences=3", 600).is_some());
        assert_eq!(pattern("sentences=99..", 600), None);
        assert_eq!(pattern("sentences=3", 12), None);
        assert_eq!(pattern("words=3", 600), None);
        assert!(sentence_list(3, 600).is_some());
        assert_eq!(sentence_list(3, 20), None);
    }

    #[test]
    fn only_prose_with_count_is_listed() {
        let listed = |kind, rule: &str| listed_sentences(kind, &[Constraint::parse(rule).unwrap()]);
        assert_eq!(listed(CanonicalKind::Text, "sentences=3"), Some(3));
        for rule in ["sentences=1", "sentences=13", "sentences=2..3", "sentences=..3", "words=3"] {
            assert_eq!(listed(CanonicalKind::Text, rule), None, "{rule}");
        }
        assert_eq!(listed(CanonicalKind::Lines, "sentences=3"), None);
    }

    proptest! {
        #[test]
        fn forced_count_equals_counted_sentences(
            parts in prop::collection::vec("[A-Z][ a-zA-Z0-9,;:()'-]{2,28}zz[.!?]", 1..6),
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
