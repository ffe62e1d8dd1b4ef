//! The task that agents work on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::text::{CanonicalKind, CanonicalRule, Constraint, escape};

/// The task of a run.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The question or instruction.
    pub prompt: String,
    /// The texts to work with; they are data, never instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Document>,
    /// Whether there is a library of documents to search.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_searched: bool,
}

impl Task {
    /// Returns the task in words, without its documents: the question, the form of the answer, and the rules that code checks.
    pub(crate) fn describe(&self, form: &CanonicalRule, rules: &[Constraint]) -> String {
        let mut text = format!("Task: {}", escape::plain(self.prompt.trim()));
        let mut parts = Vec::new();
        // Prose is the default, so its form is not stated.
        if form.kind != CanonicalKind::Text {
            parts.push(form.in_words());
        }
        parts.extend(rules.iter().map(ToString::to_string));
        if !parts.is_empty() {
            text.extend(["\nForm of the answer: ", &parts.join("; "), "."]);
        }
        text
    }
}

/// A text that belongs to a task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub name: String,
    /// The content, which the record, the state and the machine of a run share.
    pub text: Arc<str>,
    /// Whether the text differs from the file's, because tokens replace parts of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}
