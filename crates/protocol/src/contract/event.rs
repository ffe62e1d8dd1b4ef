//! The events of a run: the only way into a machine.

use serde::{Deserialize, Serialize};

use super::call_id::CallId;
use super::execution::ExecutionResult;
use crypto::Digest;

/// An event outside the machine. Each event is in the journal before a machine sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    Started,
    /// A model answered.
    Replied {
        /// The call that the reply answers.
        call: CallId,
        reply: Reply,
    },
    /// The server of a call failed for good. A machine receives this only where its run bears the loss; see
    /// [`Setup::bears_loss_of`](super::Setup::bears_loss_of).
    Lost {
        /// The call that will have no reply.
        call: CallId,
        /// The failure in one line, free of keys.
        cause: String,
    },
    /// The documents were searched.
    Found {
        /// The round that the search was for.
        round: u32,
        /// The passages that fit best, the best one first.
        passages: Vec<Passage>,
    },
    /// Something was executed.
    Executed {
        /// The key of the execution.
        key: Digest,
        result: ExecutionResult,
    },
    /// One more sample is permitted to a run that waits.
    Permitted,
    /// No more samples are permitted to a run that waits. It is decided from those that it has.
    Closed,
}

impl Event {
    /// Returns true if this is the reply to `call`, or the loss of it.
    pub(crate) fn is_end_of(&self, call: CallId) -> bool {
        matches!(self, Self::Replied { call: ended, .. } | Self::Lost { call: ended, .. } if *ended == call)
    }
}

/// The maximum number of passages from one search.
pub const PASSAGES_MAX: usize = 12;

/// The maximum length of a passage, in characters: about 300 tokens, so that several passages fit into a small model's context.
pub const PASSAGE_CHARS_MAX: usize = 1200;

/// A part of a document, word for word.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Passage {
    /// The document's path.
    pub document: String,
    /// The byte at which the passage begins in the document's text.
    pub start: usize,
    /// The text of the passage.
    pub text: String,
    /// Whether tokens in the text replace data that must not leave the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

impl Passage {
    /// Returns a high estimate of the passage's tokens: a third of its bytes.
    pub fn tokens_estimate(&self) -> u64 {
        self.text.len() as u64 / 3 + 1
    }
}

/// One reply of a model, as received.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The text, unchanged.
    pub text: String,
    /// Reasoning that the server delivered apart from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The reason why the text ends where it does.
    pub finish: Finish,
    /// The probability of `yes` against `no` in the measured field, if the server reported it: in ten-thousandths, 0 to 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yes: Option<u16>,
    /// The model that answered, as the server names it. A machine receives the model that the server lists for it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The reason why a reply ends where it does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model finished.
    Stop,
    /// The token limit cut the reply off.
    Length,
    /// The model or its server refused to answer.
    Refused,
}
