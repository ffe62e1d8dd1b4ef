//! A conversation that only grows at its end, so that servers can reuse the prefix that they have computed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::crypto::{Digest, Hasher};

/// The speaker of a message.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The controller.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Message {
    /// The speaker.
    pub role: Role,
    /// The text of the message.
    pub content: String,
}

/// An append-only conversation with a running digest.
///
/// Cloning shares the messages. The digest of a longer conversation costs only the messages that were added.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    messages: Vec<Arc<Message>>,
    hasher: Hasher,
}

impl Conversation {
    /// Starts a conversation with a system message.
    #[must_use]
    pub fn new(system: String) -> Self {
        let mut conversation = Self::default();
        conversation.push(Role::System, system);
        conversation
    }

    /// Adds a message at the end.
    pub fn push(&mut self, role: Role, content: String) {
        let tag: &[u8] = match role {
            Role::System => b"system",
            Role::User => b"user",
            Role::Assistant => b"assistant",
        };
        self.hasher.part(tag).part(content.as_bytes());
        self.messages.push(Arc::new(Message { role, content }));
    }

    /// Returns the messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the digest of all messages.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.hasher.finish()
    }
}
