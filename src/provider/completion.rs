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
    /// So many tokens have been received so far.
    Tokens(u64),
    /// A request has failed, and is made again.
    Again {
        /// Why it has failed.
        error: &'a ProviderError,
        /// How long it is waited for.
        wait: Duration,
    },
}

/// Called while a reply is on its way.
pub type OnProgress<'a> = &'a dyn Fn(CallProgress<'_>);

/// Becomes true when no call is to be made again; those under way are still awaited.
pub type Quitting = tokio::sync::watch::Receiver<bool>;
