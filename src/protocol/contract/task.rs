//! What agents are asked to do.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::text::{CanonicalKind, CanonicalRule, Constraint, escape};

/// What is asked.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The question or order.
    pub prompt: String,
    /// Text to work with; data, never instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Document>,
    /// Whether there is a library of documents that can be searched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_searched: bool,
}

impl Task {
    /// Says what is asked, without its documents, what form the answer has, and which rules of it code will check.
    pub(crate) fn stated(&self, form: &CanonicalRule, rules: &[Constraint]) -> String {
        let mut text = format!("Task: {}", escape::plain(self.prompt.trim()));
        // That prose is wanted goes without saying.
        let form = (form.kind != CanonicalKind::Text).then(|| form.in_words());
        let rules: Vec<String> = form.into_iter().chain(rules.iter().map(ToString::to_string)).collect();
        if !rules.is_empty() {
            text.extend(["\nForm of the answer: ", &rules.join("; "), "."]);
        }
        text
    }
}

/// A text that belongs to a task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its file name.
    pub name: String,
    /// Its content, which the record, the state and the machine of a run hold together.
    pub text: Arc<str>,
    /// Whether it is another than the file's, since tokens stand in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}
