//! An answer that counts: a text that follows every rule that code can check.

use std::borrow::Cow;

use serde_json::Value;

use super::executions::Executions;
use crate::text::vacuity::PromptEcho;
use crate::text::{Canonical, CanonicalKind, Canonicalizer, Constraint, Violation};

/// A text, and the form in which it is compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    /// The text as its author laid it out.
    pub(crate) shown: String,
    /// The form that is compared.
    pub(crate) canonical: Canonical,
}

/// Returns an example of an answer in this form, with placeholders that no real answer would contain.
///
/// Small models imitate what they see: shown a string, the 1.5B model of the quick start finds half of what it finds when shown a list.
pub(crate) fn example(kind: CanonicalKind, rules: &[Constraint]) -> &'static str {
    match kind {
        // Without a bracket in the example, a small model writes a list as a list of one string.
        CanonicalKind::Json => rules.iter().find_map(Constraint::example).unwrap_or("[…]"),
        CanonicalKind::Text
        | CanonicalKind::Lines
        | CanonicalKind::Number
        | CanonicalKind::Choice
        | CanonicalKind::Verbatim
        | CanonicalKind::Behaviour => "\"…\"",
    }
}

/// Returns a form whose `response` is a string. Where a JSON value is wanted, a reply may hold that value directly.
pub(crate) fn with_text(object: &str, kind: CanonicalKind) -> Cow<'_, str> {
    if kind != CanonicalKind::Json {
        return Cow::Borrowed(object);
    }
    let Ok(mut form) = serde_json::from_str::<Value>(object) else { return Cow::Borrowed(object) };
    match form.get_mut("response") {
        Some(response) if !response.is_string() => *response = Value::from(response.to_string()),
        Some(_) | None => return Cow::Borrowed(object),
    }
    Cow::Owned(form.to_string())
}

impl Answer {
    /// Accepts a text of fewer than `chars_max` characters if it has a canonical form, does not repeat its author's prompt, and follows the
    /// task's rules.
    pub(crate) fn take(
        text: &str,
        chars_max: usize,
        canonicalizer: &Canonicalizer,
        prompt_echo: &PromptEcho,
        rules: &[Constraint],
        executions: &Executions,
    ) -> Result<Self, Violation> {
        if text.chars().count() >= chars_max {
            return Err(Violation::TextTooLong { max: chars_max });
        }
        let canonical = canonicalizer.canonicalize(text)?;
        prompt_echo.check(canonicalizer.kind(), &canonical.text)?;
        let shown = text.trim();
        let check = |rule: &Constraint| rule.check(if rule.is_of_layout() { shown } else { &canonical.text });
        rules.iter().try_for_each(check).map_err(Violation::Constraint)?;
        let answer = Self { shown: shown.to_owned(), canonical };
        executions.check(&answer.in_full(rules))?;
        Ok(answer)
    }

    /// Returns the text that a person reads if this is the final answer.
    pub(crate) fn in_full(&self, rules: &[Constraint]) -> Cow<'_, str> {
        let final_text = rules.iter().find_map(|rule| rule.final_text(&self.canonical.text));
        final_text.map_or(Cow::Borrowed(&self.shown), Cow::Owned)
    }
}
