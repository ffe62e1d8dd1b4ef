//! The actions that follow from an event: the only way out of a machine.

use std::sync::Arc;

use super::call_id::CallId;
use super::conversation::Message;
use super::execution::Execution;
use super::outcome::Outcome;
use crate::text::schema::SchemaText;
use crypto::{Digest, Hasher};

/// An action that must follow from an event. It leaves the process only once the event is on disk: a reply that was paid for must never be
/// asked for again because of something that came after it.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Call a model.
    Ask(Ask),
    /// Search the user's documents.
    Search(Search),
    /// Execute the user's check, or a program.
    Execute(Execution),
    /// Cancel a call that is no longer needed, whether or not it has been sent.
    Cancel(CallId),
    /// Wait until another sample is permitted, or the run is closed. Nothing else is open.
    AwaitPermit,
    /// End the run.
    Finish(Outcome),
}

/// One search of the user's documents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Search {
    /// The round that the search is for.
    pub round: u32,
    /// The search terms, as plain words.
    pub words: String,
    /// The maximum number of tokens that the passages may have together, by a high estimate.
    pub tokens_max: u64,
}

/// One model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub call: CallId,
    /// The conversation to send, oldest message first.
    pub messages: Vec<Arc<Message>>,
    /// The kind of reply that is wanted.
    pub shape: ReplyShape,
    /// The maximum number of tokens in the reply.
    pub max_tokens: u32,
    /// The sampling temperature, 0 to 2.
    pub temperature: f64,
    /// The sampling seed, derived from the run's seed and the call; below 2³¹.
    pub seed: u32,
    /// The digest of the request, which the journal records as sent.
    pub digest: Digest,
    /// The reason why the previous reply was refused, for people. The model reads the reason in the conversation.
    pub refused: Option<String>,
}

/// The kind of reply that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyShape {
    Free,
    /// One JSON object that follows this schema, under this name.
    Json {
        /// A short name, for servers that require one.
        name: &'static str,
        schema: SchemaText,
        /// The name of a field that holds `yes` or `no`, if the probability of that word is wanted.
        measured: Option<&'static str>,
    },
}

impl ReplyShape {
    /// Returns the name of the field whose probability of `yes` is wanted.
    pub fn measured(&self) -> Option<&'static str> {
        match self {
            Self::Json { measured, .. } => *measured,
            Self::Free => None,
        }
    }
}

impl Ask {
    /// Returns the digest of a call whose conversation has the digest `conversation`.
    pub fn digest_of(
        conversation: Digest,
        shape: &ReplyShape,
        max_tokens: u32,
        temperature: f64,
        seed: u32,
    ) -> Digest {
        let shape = match shape {
            ReplyShape::Free => "",
            ReplyShape::Json { schema, .. } => schema.as_str(),
        };
        let sampling = format!("{max_tokens} {temperature} {seed}");
        let mut hasher = Hasher::default();
        hasher.part(conversation.to_string().as_bytes());
        hasher.part(shape.as_bytes()).part(sampling.as_bytes()).finish()
    }

    /// Returns a high estimate of the prompt's tokens: a third of its bytes, and four for the frame of each message. Servers report the
    /// true number afterwards.
    pub fn prompt_tokens_estimate(&self) -> u64 {
        self.messages.iter().map(|m| m.content.len() as u64 / 3 + 5).sum()
    }
}
