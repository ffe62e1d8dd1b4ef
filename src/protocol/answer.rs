//! An answer that counts: a text that keeps every rule that code can check.

use crate::text::vacuity::Told;
use crate::text::{Canonical, Canonicalizer, Constraint, Violation};

/// A text, and the form in which it is compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    /// As its author laid it out.
    pub(crate) shown: String,
    /// What is compared.
    pub(crate) canonical: Canonical,
}

impl Answer {
    /// Takes a text of less than `chars_max` characters, if it has a canonical form, is not what its author was
    /// told, and keeps the task's rules.
    pub(crate) fn take(
        text: &str,
        chars_max: usize,
        canonicalizer: &Canonicalizer,
        told: &Told,
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
