//! The table that turns tokens back into what they stand for.
//!
//! In: tokens with their originals, and texts. Out: the texts with the originals. What is no token of the table stays as it is.

use std::collections::BTreeMap;

use regex::Captures;
use serde::{Deserialize, Serialize};

use super::kinds;
use super::known::Originals;
use super::tokens::{TOKEN, parts, words};

/// Tokens and what they stand for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Redactions(pub(super) BTreeMap<String, String>);

impl Redactions {
    /// Returns what the tokens stand for, but for what was written like a token.
    #[must_use]
    pub fn originals(&self) -> Originals {
        let mut originals = Originals::default();
        for (token, original) in &self.0 {
            let word = parts(token).and_then(|(word, _)| words().find(|known| *known == word));
            word.filter(|word| *word != kinds::WORDS[0])
                .into_iter()
                .for_each(|word| originals.add(original, word));
        }
        originals
    }

    /// Returns how many tokens there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the text with the originals in place of their tokens.
    #[must_use]
    pub fn restore(&self, text: &str) -> String {
        self.restore_as(text, str::to_owned)
    }

    /// The same for JSON, in whose strings the originals must be written as JSON writes them.
    #[must_use]
    pub fn restore_json(&self, text: &str) -> String {
        let escaped = |original: &str| {
            let quoted = serde_json::Value::from(original).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        self.restore_as(text, escaped)
    }

    fn restore_as(&self, text: &str, write: impl Fn(&str) -> String) -> String {
        let original = |captures: &Captures<'_>| {
            let token = captures.get_match().as_str();
            self.0.get(token).map_or_else(|| token.to_owned(), |original| write(original))
        };
        TOKEN.replace_all(text, original).into_owned()
    }
}
