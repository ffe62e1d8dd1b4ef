//! An answer that counts: a text that keeps every rule that code can check.

use std::borrow::Cow;

use serde_json::Value;

use crate::text::vacuity::PromptEcho;
use crate::text::{Canonical, CanonicalKind, Canonicalizer, Constraint, Violation};

/// A text, and the form in which it is compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    /// As its author laid it out.
    pub(crate) shown: String,
    /// What is compared.
    pub(crate) canonical: Canonical,
}

/// Returns what an answer of this form looks like in an example, with placeholders that no answer would be.
///
/// Small models write what they have seen: with a string before its eyes, the 1.5B model of the quick start finds half of
/// what it finds with a list.
pub(crate) fn example(kind: CanonicalKind, rules: &[Constraint]) -> &'static str {
    match kind {
        // Without a bracket before its eyes a small model writes a list as a list of one string.
        CanonicalKind::Json => rules.iter().find_map(Constraint::form).map_or("[…]", |form| form.example),
        CanonicalKind::Text
        | CanonicalKind::Lines
        | CanonicalKind::Number
        | CanonicalKind::Choice
        | CanonicalKind::Verbatim => "\"…\"",
    }
}

/// Returns a form with its `response` as a string: where a JSON value is wanted, it may stand there as it is.
pub(crate) fn with_text(object: &str, kind: CanonicalKind) -> Cow<'_, str> {
    let read = || serde_json::from_str::<Value>(object).ok().filter(|_| kind == CanonicalKind::Json);
    let Some(mut form) = read() else { return Cow::Borrowed(object) };
    match form.get_mut("response") {
        Some(response) if !response.is_string() => *response = Value::from(response.to_string()),
        Some(_) | None => return Cow::Borrowed(object),
    }
    Cow::Owned(form.to_string())
}

impl Answer {
    /// Takes a text of less than `chars_max` characters, if it has a canonical form, is not what its author was
    /// told, and keeps the task's rules.
    pub(crate) fn take(
        text: &str,
        chars_max: usize,
        canonicalizer: &Canonicalizer,
        told: &PromptEcho,
        rules: &[Constraint],
    ) -> Result<Self, Violation> {
        if text.chars().count() >= chars_max {
            return Err(Violation::TextTooLong { max: chars_max });
        }
        let canonical = canonicalizer.canonicalize(text)?;
        told.check(canonicalizer.kind(), &canonical.text)?;
        rules.iter().try_for_each(|rule| rule.check(&canonical.text))?;
        Ok(Self { shown: text.trim().to_owned(), canonical })
    }
}
