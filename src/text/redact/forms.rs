//! Forms as regular expressions, each with what every text that has it contains.
//!
//! In: constants. Out: places in a text. Looking for a few characters is many times faster than a regular expression, so that a
//! form costs hardly anything where nothing could have it. Each form is searched for by itself: one that fails late is not
//! tried again after each match of another, so that the time is linear in the text, whatever it says.

use std::ops::Range;

use regex::Regex;

/// Compiles a form that a constant of this program gives.
pub(super) fn regex(form: &str) -> Regex {
    Regex::new(form).expect("the forms are constants, and a test uses each")
}

/// Forms, ready to be searched for.
pub(super) struct Forms(Vec<(&'static str, Regex)>);

impl Forms {
    /// Takes pairs of what each text with a form contains, and the form.
    pub(super) fn new(forms: &[(&'static str, &str)]) -> Self {
        Self(forms.iter().map(|(hint, form)| (*hint, regex(form))).collect())
    }

    /// Returns the places of the forms: of the group `part` where a form has one, else of all of it.
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
