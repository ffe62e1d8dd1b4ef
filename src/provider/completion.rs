//! The result of a call, and the means to watch and to stop it.

use std::time::Duration;

use super::ProviderError;
use crate::core::{Receipt, Structured, Usage};
use crate::protocol::Reply;

/// A reply and its cost.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The reply, unchanged except for removed keys.
    pub reply: Reply,
    /// The tokens that were used.
    pub usage: Usage,
    /// The form of structured output, if there was a schema.
    pub structured: Option<Structured>,
    /// The number of requests sent until this reply came.
    pub attempts: u32,
    /// The receipt, about which the provider can be asked later.
    pub receipt: Option<Receipt>,
    /// Whether the reply held a key of its endpoint, or a piece of one, which was removed.
    pub key_removed: bool,
}

/// An event on the way of a call to its reply.
#[derive(Debug)]
pub enum CallProgress<'a> {
    /// A part of the reply has been received.
    Received {
        /// The approximate number of tokens received until now.
        tokens: u64,
        /// The text of the reply until now.
        text: TextSoFar<'a>,
    },
    /// A request has failed, and is sent again.
    Again {
        /// The reason for the failure.
        error: &'a ProviderError,
        /// The wait before the next request.
        wait: Duration,
    },
}

/// The text of a reply that is still arriving, which is made only if it is needed.
#[derive(Clone, Copy)]
pub struct TextSoFar<'a>(&'a dyn Fn() -> String);

impl<'a> TextSoFar<'a> {
    /// Wraps the text that `make` returns, which holds no key.
    pub(super) fn new(make: &'a dyn Fn() -> String) -> Self {
        Self(make)
    }

    /// Returns the text up to the last whole word, because a key that is still arriving cannot be recognised yet. No key has a character
    /// beyond ASCII, so such a character ends a word too.
    #[must_use]
    pub fn whole_words(&self) -> String {
        let mut text = (self.0)();
        let last = text.char_indices().rfind(|(_, c)| c.is_whitespace() || !c.is_ascii());
        let end = last.map_or(0, |(at, c)| if c.is_whitespace() { at } else { at + c.len_utf8() });
        text.truncate(end);
        text
    }
}

impl std::fmt::Debug for TextSoFar<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TextSoFar")
    }
}

/// A function that is called while a reply is arriving.
pub type OnProgress<'a> = &'a dyn Fn(CallProgress<'_>);

/// A signal that becomes true when no further call is to be made. Calls under way are still awaited.
pub type Quitting = tokio::sync::watch::Receiver<bool>;
