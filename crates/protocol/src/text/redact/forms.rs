//! Forms as regular expressions, each with a few characters that every match contains.
//!
//! The input is constants. The output is places in a text. A search for a few characters is many times faster than a
//! regular expression, so a form costs hardly anything in a text where it cannot match. Each form is searched for
//! separately. One that fails late is not tried again after each match of another, so the time is linear in the text,
//! whatever its content.

use std::ops::Range;

use regex::Regex;

/// Compiles a form that is a constant of this program.
pub(super) fn regex(form: &str) -> Regex {
    Regex::new(form).expect("the forms are constants, and a test uses each")
}

/// Forms, ready to be searched for.
pub(super) struct Forms(Vec<(&'static str, Regex)>);

impl Forms {
    /// Compiles pairs of the characters that each text with a form contains, and the form.
    pub(super) fn new(forms: &[(&'static str, &str)]) -> Self {
        Self(forms.iter().map(|(hint, form)| (*hint, regex(form))).collect())
    }

    /// Returns the places of the forms. If a form has the group `part`, its place is that group alone.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (_, form) in self.0.iter().filter(|(hint, _)| text.contains(hint)) {
            if form.captures_len() == 1 {
                found.extend(form.find_iter(text).map(|place| place.range()));
            } else {
                let parts = form.captures_iter(text).filter_map(|captures| captures.name("part"));
                found.extend(parts.map(|part| part.range()));
            }
        }
        found
    }
}
