//! Finds the one JSON object in a reply.
//!
//! Two wrappers are so common that they are removed and recorded: a leading reasoning block (`<think>…</think>`) and
//! one code fence around everything. Any other text outside the object is a violation, because unvalidated text must
//! not ride along with an envelope.

use serde::Deserialize;

use super::{DEPTH_MAX, Violation, check_depth, escape};

/// The longest reply that is examined, in bytes (1 MiB).
pub const REPLY_BYTES_MAX: usize = 1 << 20;

const REASONING_OPEN: &str = "<think>";
const REASONING_CLOSE: &str = "</think>";
const FENCE: &str = "```";

/// The parts of a reply; see [`extract`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Extracted<'a> {
    /// The object: text that begins with `{` and is not parsed yet.
    pub object: &'a str,
    /// The reasoning block before the object, without its tags.
    pub reasoning: Option<&'a str>,
    /// Whether a code fence was removed.
    pub fenced: bool,
}

/// Returns the part of `reply` that must be one JSON object.
///
/// # Errors
///
/// A [`Violation`] if the reply is empty, has more than [`REPLY_BYTES_MAX`] bytes, nests too deeply, has an unclosed
/// reasoning block, or has text before the object. The parser finds text after the object, because it knows where the
/// object ends.
pub fn extract(reply: &str) -> Result<Extracted<'_>, Violation> {
    if reply.len() > REPLY_BYTES_MAX {
        return Err(Violation::TooLong { bytes: reply.len(), max: REPLY_BYTES_MAX });
    }
    let (reasoning, rest) = split_reasoning(reply.trim())?;
    let (object, fenced) = match strip_fence(rest) {
        Some(inside) => (inside, true),
        None => (rest, false),
    };
    if object.is_empty() {
        return Err(Violation::Empty);
    }
    if !object.starts_with('{') {
        return Err(match object.find('{') {
            Some(at) => Violation::TextAround { excerpt: escape::excerpt(&object[..at]) },
            None => Violation::NoObject,
        });
    }
    if !check_depth(object) {
        return Err(Violation::TooDeep { max: DEPTH_MAX });
    }
    Ok(Extracted { object, reasoning, fenced })
}

/// Reads exactly one JSON value from `text`.
pub fn read_one<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Violation> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = match stream.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => {
            return Err(Violation::Json { message: escape::message(&error.to_string()) });
        }
        None => return Err(Violation::NoObject),
    };
    let rest = text[stream.byte_offset()..].trim();
    match rest.chars().next() {
        None => Ok(value),
        Some('{') => Err(Violation::SeveralObjects),
        Some(_) => Err(Violation::TextAround { excerpt: escape::excerpt(rest) }),
    }
}

/// Splits a leading reasoning block off `reply`. Many chat templates write its beginning themselves, so that a reply has
/// only its end.
pub(crate) fn split_reasoning(reply: &str) -> Result<(Option<&str>, &str), Violation> {
    let (inside, has_begun) = match reply.strip_prefix(REASONING_OPEN) {
        Some(inside) => (inside, true),
        None => (reply, false),
    };
    if !has_begun && (reply.starts_with('{') || reply.starts_with(FENCE)) {
        return Ok((None, reply));
    }
    match inside.split_once(REASONING_CLOSE) {
        Some((reasoning, rest)) => Ok((Some(reasoning.trim()), rest.trim_start())),
        None if has_begun => Err(Violation::OpenReasoning),
        None => Ok((None, reply)),
    }
}

/// Returns the text inside one code fence around all of `text`.
fn strip_fence(text: &str) -> Option<&str> {
    let inside = text.strip_prefix(FENCE)?.strip_suffix(FENCE)?;
    let (language, body) = inside.split_once('\n')?;
    let is_tag = language.trim().chars().all(|c| c.is_ascii_alphanumeric());
    if is_tag { Some(body.trim()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: &str, object: &str, reasoning: Option<&str>, fenced: bool) {
        assert_eq!(extract(reply), Ok(Extracted { object, reasoning, fenced }));
    }

    #[test]
    fn a_bare_object_is_taken_whole() {
        check(" {\"a\":1}\n", "{\"a\":1}", None, false);
    }

    #[test]
    fn removes_one_reasoning_block_and_fence() {
        check("<think>\nhm\n</think>\n\n{}", "{}", Some("hm"), false);
        check("```json\n{}\n```", "{}", None, true);
        check("<think></think>```\n{}\n```", "{}", Some(""), true);
        check("It is forty-eight.\n</think>\n{}", "{}", Some("It is forty-eight."), false);
        check("{\"a\":\"</think>\"}", "{\"a\":\"</think>\"}", None, false);
    }

    #[test]
    fn anything_else_outside_is_a_violation() {
        assert_eq!(extract(""), Err(Violation::Empty));
        assert_eq!(extract("```json\n```"), Err(Violation::Empty));
        assert_eq!(extract("no json here"), Err(Violation::NoObject));
        assert_eq!(extract("<think>{}"), Err(Violation::OpenReasoning));
        let around = |excerpt: &str| Err(Violation::TextAround { excerpt: excerpt.into() });
        assert_eq!(extract("Sure! {}"), around("Sure!"));
        assert_eq!(extract("```json\n{}\n``` ok"), around("```json"));
        assert_eq!(extract(&"{\"a\":".repeat(100_000)), Err(Violation::TooDeep { max: 64 }));
        let long = "x".repeat(REPLY_BYTES_MAX + 1);
        assert!(matches!(extract(&long), Err(Violation::TooLong { .. })));
    }
}
