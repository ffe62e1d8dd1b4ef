//! What to do next: the only way out of a machine.

use std::sync::Arc;

use super::call_id::CallId;
use super::conversation::Message;
use super::outcome::Outcome;
use crate::crypto::{Digest, Hasher};
use crate::text::schema::SchemaText;

/// What must follow from an event. Each action leaves the process only once the event is on disk: a
/// reply that was paid for must never be asked for again because of what came after it.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Call a model.
    Ask(Ask),
    /// Search the user's documents.
    Search(Search),
    /// Give up a call that is not needed any more, whether or not it is in the air.
    Cancel(CallId),
    /// End the run.
    Finish(Outcome),
}

/// One search of the user's documents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Search {
    /// For which round.
    pub round: u32,
    /// What to search for, as plain words.
    pub words: String,
    /// The most tokens that the passages may have together, by a high estimate.
    pub tokens_max: u64,
}

/// One model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Which call of the run this is.
    pub call: CallId,
    /// The conversation to send, oldest message first.
    pub messages: Vec<Arc<Message>>,
    /// What kind of reply is wanted.
    pub shape: ReplyShape,
    /// The most tokens the reply may have.
    pub max_tokens: u32,
    /// Sampling temperature, 0 to 2.
    pub temperature: f64,
    /// Sampling seed, derived from the run's seed and the call, below 2³¹.
    pub seed: u32,
    /// Digest of everything above: what the journal records as sent.
    pub digest: Digest,
    /// Why the reply before it did not count, for people; the model is told in the conversation.
    pub refused: Option<String>,
}

/// What kind of reply is wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyShape {
    /// Free text.
    Free,
    /// One JSON object that this schema describes, under this name.
    Json {
        /// A short name for servers that want one.
        name: &'static str,
        /// The decoding schema.
        schema: SchemaText,
        /// A field of it that holds `yes` or `no`, if the probability of that word is wanted.
        measured: Option<&'static str>,
    },
}

impl ReplyShape {
    /// Returns the field in which the probability of `yes` is wanted.
    #[must_use]
    pub fn measured(&self) -> Option<&'static str> {
        match self {
            Self::Json { measured, .. } => *measured,
            Self::Free => None,
        }
    }
}

impl Ask {
    /// Returns the digest of a call whose conversation has the digest `conversation`.
    #[must_use]
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

    /// Returns an estimate of the prompt's tokens that errs on the high side: a third of its bytes,
    /// and four for the frame of each message. Servers report the truth afterwards.
    #[must_use]
    pub fn prompt_tokens_estimate(&self) -> u64 {
        self.messages.iter().map(|m| m.content.len() as u64 / 3 + 5).sum()
    }
}
