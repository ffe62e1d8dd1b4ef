//! Builds a reply from the output of a server, whole or in parts.

use super::logprobs::{self, Token};
use super::wire::{Body, Content, Delta, WireUsage};
use crate::core::Usage;
use crate::protocol::{Ask, Finish, Reply};
use crate::provider::ProviderError;
use crate::provider::completion::Completion;
use crate::provider::http::error_message;
use crate::provider::receipt::Parts;
use crate::provider::secret::{Cleaner, Secrets};
use crate::text::escape;

/// A reply that is still being received.
#[derive(Default)]
pub(super) struct CollectedChunks {
    text: String,
    reasoning: String,
    refused: bool,
    finish: Option<String>,
    usage: Option<WireUsage>,
    tokens: Vec<Token>,
    choices: u64,
    receipt: Parts,
    /// The number of parts with content, about one for each token.
    pub(super) parts: u64,
    /// Whether the server said that it is done.
    pub(super) done: bool,
}

/// An unusable part of a reply.
pub(super) enum Unusable {
    /// The part has another form.
    Form(String),
    /// The part is JSON that ends too early.
    Cut(String),
    /// The part is an error with an HTTP status, inside an answer that began well.
    Status(u16, String),
}

impl CollectedChunks {
    /// Begins a reply with the receipt from its head.
    pub(super) fn new(receipt: Parts) -> Self {
        Self { receipt, ..Self::default() }
    }

    /// Adds a whole completion or one chunk. Keys are removed from the excerpt of an unusable one.
    pub(super) fn add(&mut self, json: &str, secrets: &Secrets) -> Result<(), Unusable> {
        // Some programs begin every text with this mark.
        let part: Body = serde_json::from_str(json.trim_start_matches('\u{FEFF}')).map_err(|e| {
            let excerpt = escape::excerpt(&secrets.in_message(json));
            let why = format!("it is not a chat completion ({e}): `{excerpt}`");
            if e.is_eof() { Unusable::Cut(why) } else { Unusable::Form(why) }
        })?;
        if let Some(error) = part.error.filter(|e| !e.is_null()) {
            let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
            if let Some(status) = status.filter(|code| (400..600).contains(code)) {
                return Err(Unusable::Status(status, error_message(&secrets.in_message(json))));
            }
            let error = escape::excerpt(&secrets.in_message(&error.to_string()));
            return Err(Unusable::Form(format!("the server reports an error: `{error}`")));
        }
        self.receipt.id = self.receipt.id.take().or(part.id);
        self.receipt.system_fingerprint = self.receipt.system_fingerprint.take().or(part.system_fingerprint);
        self.receipt.created = self.receipt.created.or(part.created);
        // No prompt is empty, so zero means that the server has not counted.
        self.usage = part.usage.filter(|usage| usage.prompt_tokens > 0).or(self.usage);
        // Only one choice is ever asked for; a server that sends more is not read further.
        let Some(choice) = part.choices.into_iter().next() else { return Ok(()) };
        self.choices += 1;
        self.finish = choice.finish_reason.or(self.finish.take());
        self.tokens.extend(choice.logprobs.and_then(|logprobs| logprobs.content).into_iter().flatten());
        if let Some(said) = choice.message.or(choice.delta) {
            self.say(said);
        }
        Ok(())
    }

    fn say(&mut self, said: Delta) {
        let content = said.content.map(Content::into_text).unwrap_or_default();
        let reasoning = said.reasoning_content.or(said.reasoning).unwrap_or_default();
        self.parts += u64::from(!content.is_empty() || !reasoning.is_empty());
        self.text.push_str(&content);
        self.reasoning.push_str(&reasoning);
        self.refused |= said.refusal.is_some_and(|r| !r.is_empty());
    }

    /// Returns the text for people who watch, without keys. Before there is any text, it returns the reasoning.
    pub(super) fn shown(&self, secrets: &Secrets) -> String {
        let text = if self.text.is_empty() { &self.reasoning } else { &self.text };
        secrets.in_reply(text).into_owned()
    }

    /// Returns true if the server said why it stopped, or that it is done.
    pub(super) fn is_complete(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// Returns the reply, without keys, and its usage. Counts that the server did not send are estimated.
    pub(super) fn into_answer(
        self,
        ask: &Ask,
        url: &str,
        secrets: &Secrets,
    ) -> Result<Completion, ProviderError> {
        if self.choices == 0 {
            let why = "it has no choices".to_owned();
            return Err(ProviderError::BadAnswer { url: url.to_owned(), why });
        }
        let finish = match self.finish.as_deref() {
            Some("length") => Finish::Length,
            Some("content_filter") => Finish::Refused,
            Some(_) | None if self.refused => Finish::Refused,
            Some(_) | None => Finish::Stop,
        };
        let written = self.text.len() + self.reasoning.len();
        let usage = match self.usage {
            Some(usage) => Usage {
                prompt: usage.prompt_tokens,
                cached: usage.prompt_tokens_details.and_then(|d| d.cached_tokens).unwrap_or(0),
                completion: usage.completion_tokens,
                estimated: false,
                cost_micro_usd: usage.cost.and_then(micro_usd),
            },
            None => Usage::estimate(ask.prompt_tokens_estimate(), written),
        };
        let yes = ask.shape.measured().and_then(|field| logprobs::yes(&self.tokens, &self.text, field));
        // A key may have come in pieces, so only the whole text shows it.
        let mut cleaner = Cleaner::new(secrets);
        let text = cleaner.text(self.text);
        let reasoning = Some(cleaner.text(self.reasoning)).filter(|r| !r.is_empty());
        let receipt = self.receipt.receipt(&mut cleaner);
        let reply = Reply { text, reasoning, finish, yes };
        Ok(Completion { reply, usage, structured: None, attempts: 1, receipt, key_removed: cleaner.removed })
    }
}

/// Returns dollars in millionths, rounded up, or nothing if no call could cost this sum.
fn micro_usd(dollars: f64) -> Option<u64> {
    // The sum is below 10,000 dollars, so that nothing is cut off.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
    (0.0..1e4).contains(&dollars).then(|| (dollars * 1e6 - 1e-6).ceil().max(0.0) as u64)
}
