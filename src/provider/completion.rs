//! What a call brings, and what it is given for its way.

use std::time::Duration;

use super::ProviderError;
use crate::core::{Receipt, Structured, Usage};
use crate::protocol::Reply;

/// A reply and what it took.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The reply, untouched but for keys.
    pub reply: Reply,
    /// Tokens used.
    pub usage: Usage,
    /// How the server was held to the schema, if there was one.
    pub structured: Option<Structured>,
    /// Requests sent until this reply came.
    pub attempts: u32,
    /// What its provider can be asked about later.
    pub receipt: Option<Receipt>,
    /// Whether the reply held a key of its endpoint, or a piece of one, which was taken out.
    pub key_removed: bool,
}

/// What becomes of a call on the way to its reply.
#[derive(Debug)]
pub enum CallProgress<'a> {
    /// A part of the reply has been received.
    Received {
        /// Tokens received so far, about.
        tokens: u64,
        /// The text of the reply so far.
        text: TextSoFar<'a>,
    },
    /// A request has failed, and is made again.
    Again {
        /// Why it has failed.
        error: &'a ProviderError,
        /// How long it is waited for.
        wait: Duration,
    },
}

/// The text of a reply that is on its way: made only if it is looked at.
#[derive(Clone, Copy)]
pub struct TextSoFar<'a>(&'a dyn Fn() -> String);

impl<'a> TextSoFar<'a> {
    /// The text that `make` returns, which holds no key.
    pub(super) fn new(make: &'a dyn Fn() -> String) -> Self {
        Self(make)
    }

    /// Returns what has come so far, up to the last whole word: a key that is still coming in is not one that could be known.
    #[must_use]
    pub fn whole_words(&self) -> String {
        let mut text = (self.0)();
        let end = text.rfind(char::is_whitespace).unwrap_or(0);
        text.truncate(end);
        text
    }
}

impl std::fmt::Debug for TextSoFar<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TextSoFar")
    }
}

/// Called while a reply is on its way.
pub type OnProgress<'a> = &'a dyn Fn(CallProgress<'_>);

/// Becomes true when no call is to be made again; those under way are still awaited.
pub type Quitting = tokio::sync::watch::Receiver<bool>;
