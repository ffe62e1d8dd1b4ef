//! What happened: the only way into a machine.

use serde::{Deserialize, Serialize};

use super::call_id::CallId;

/// What happened outside. Each event is in the journal before a machine sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The run begins.
    Started,
    /// A model answered.
    Replied {
        /// The call that it answers.
        call: CallId,
        /// What it answered.
        reply: Reply,
    },
    /// The documents were searched.
    Found {
        /// For which round.
        round: u32,
        /// What fits best, best first.
        passages: Vec<Passage>,
    },
}

/// The most passages that one search brings.
pub const PASSAGES_MAX: usize = 12;

/// The longest passage, in characters: about 300 tokens, so that several fit into a small model's context.
pub const PASSAGE_CHARS_MAX: usize = 1200;

/// A part of a document, as it stands there.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Passage {
    /// The document's path.
    pub document: String,
    /// The byte at which the passage begins in the document's text.
    pub start: usize,
    /// Its text.
    pub text: String,
    /// Whether tokens stand in it in place of what must not leave the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

impl Passage {
    /// Returns an estimate of its tokens that errs on the high side: a third of its bytes.
    #[must_use]
    pub fn tokens_estimate(&self) -> u64 {
        self.text.len() as u64 / 3 + 1
    }
}

/// One answer of a model, as received.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The text, untouched.
    pub text: String,
    /// Reasoning that the server delivered apart from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Why the text ends where it does.
    pub finish: Finish,
    /// The probability of `yes` against `no` in the field that was to be measured, if the server told it: in
    /// ten-thousandths, 0 to 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yes: Option<u16>,
}

/// Why a reply ends where it does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was done.
    Stop,
    /// The token limit cut it.
    Length,
    /// The model or its server declined.
    Refused,
}
