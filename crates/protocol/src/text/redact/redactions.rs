//! The table that turns tokens back into their originals.
//!
//! The input is tokens with their originals, and texts. The output is the texts with the originals. Text that is not a
//! token of the table stays as it is.

use std::collections::BTreeMap;

use regex::Captures;
use serde::{Deserialize, Serialize};

use super::known::Originals;
use super::tokens::{TOKEN, WORDS, parts, words};

/// The tokens and their originals.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Redactions(pub(super) BTreeMap<String, String>);

impl Redactions {
    /// Returns the originals of the tokens, except for text that was written like a token.
    pub fn originals(&self) -> Originals {
        let mut originals = Originals::default();
        for (token, original) in &self.0 {
            let word = parts(token).and_then(|(word, _)| words().find(|known| *known == word));
            if let Some(word) = word
                && word != WORDS[0]
            {
                originals.add(original, word);
            }
        }
        originals
    }

    /// Returns the number of tokens.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the text with the originals in place of their tokens.
    pub fn restore(&self, text: &str) -> String {
        self.restore_as(text, str::to_owned)
    }

    /// Returns JSON with the originals in place of their tokens, written as JSON writes them inside its strings.
    pub fn restore_json(&self, text: &str) -> String {
        self.restore_as(text, |original| {
            let quoted = serde_json::Value::from(original).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        })
    }

    fn restore_as(&self, text: &str, write: impl Fn(&str) -> String) -> String {
        let restored = TOKEN.replace_all(text, |captures: &Captures<'_>| {
            let token = captures.get_match().as_str();
            self.0.get(token).map_or_else(|| token.to_owned(), |original| write(original))
        });
        restored.into_owned()
    }
}
