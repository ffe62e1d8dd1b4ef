//! A conversation that only grows at its end, so that servers can reuse the prefix that they have computed.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crypto::{Digest, Hasher};

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
#[derive(Clone, Debug)]
pub struct Message {
    pub role: Role,
    /// The text of the message.
    pub content: String,
    /// The message as JSON. It is sent again with each further call, so it is written once.
    json: OnceLock<Box<RawValue>>,
}

impl Message {
    pub fn new(role: Role, content: String) -> Self {
        Self { role, content, json: OnceLock::new() }
    }

    /// Returns the message as JSON, with its role and its content.
    fn json(&self) -> &RawValue {
        // A message may be as long as its documents, so it is written without a copy.
        #[derive(Serialize)]
        struct Fields<'a> {
            role: Role,
            content: &'a str,
        }
        let fields = Fields { role: self.role, content: &self.content };
        self.json.get_or_init(|| to_raw_value(&fields).expect("a word and a text are JSON"))
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        (self.role, &self.content) == (other.role, &other.content)
    }
}

impl Eq for Message {}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
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
        self.messages.push(Arc::new(Message::new(role, content)));
    }

    /// Returns the messages, oldest first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the digest of all messages.
    pub fn digest(&self) -> Digest {
        self.hasher.finish()
    }
}
