//! What a call brings, and what it is given for its way.

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

/// Called with the number of tokens received so far, while a reply streams in.
pub type OnProgress<'a> = &'a dyn Fn(u64);

/// Becomes true when no call is to be made again; those under way are still awaited.
pub type Quitting = tokio::sync::watch::Receiver<bool>;
