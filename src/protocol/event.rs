//! What happened: the only way into a machine.

use serde::{Deserialize, Serialize};

use super::CallId;

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
