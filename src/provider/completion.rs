//! The result of a call, and the means to watch and to stop it.

use std::time::Duration;

use super::ProviderError;
use super::secret::Secrets;
use protocol::Reply;
use protocol::core::{Receipt, Structured, Usage};

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
        text: PartialText<'a>,
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
pub struct PartialText<'a> {
    make: &'a dyn Fn() -> String,
    secrets: &'a Secrets,
}

impl<'a> PartialText<'a> {
    /// Wraps the text that `make` returns, from which these keys are removed.
    pub(super) fn new(make: &'a dyn Fn() -> String, secrets: &'a Secrets) -> Self {
        Self { make, secrets }
    }

    /// Returns the text up to the last whole word, because a key that is still arriving cannot be recognised yet. A character that no key
    /// has ends a word too, as in a language without spaces.
    pub fn whole_words(&self) -> String {
        let mut text = (self.make)();
        let last = text.char_indices().rfind(|(_, c)| !self.secrets.may_contain(*c));
        let end = last.map_or(0, |(at, c)| if c.is_whitespace() { at } else { at + c.len_utf8() });
        text.truncate(end);
        text
    }
}

impl std::fmt::Debug for PartialText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PartialText")
    }
}

/// A function that is called while a reply is arriving.
pub type OnProgress<'a> = &'a dyn Fn(CallProgress<'_>);

/// A signal that becomes true when no further call is to be made. Calls under way are still awaited.
pub type Quitting = tokio::sync::watch::Receiver<bool>;

#[cfg(test)]
mod tests {
    use super::*;

    /// A word that is still arriving is held back in every language.
    #[test]
    fn arriving_word_is_held_back() {
        let whole = |arrived: &str, secrets: &Secrets| {
            let make = || arrived.to_owned();
            PartialText::new(&make, secrets).whole_words()
        };
        let secrets = Secrets::new(["sk-1234567890123456"]);
        for (arrived, expected) in [
            ("", ""),
            ("sk-123", ""),
            ("The key is sk-12", "The key is"),
            ("答案是四", "答案是四"),
            ("密钥sk-12", "密钥"),
            ("sk-12\u{200b}34", ""),
        ] {
            assert_eq!(whole(arrived, &secrets), expected);
        }
        assert_eq!(
            whole("schlüs", &Secrets::new(["schlüssel-beyond-ascii"])),
            "",
            "a key is held back whole"
        );
    }
}
