//! Builds a reply from the output of a server, whole or in parts.
//!
//! The input is parts in their order, and the end of the form. The output is a whole, cut or refused reply, or the
//! reason why the reply cannot be used. Nothing is guessed: where two parts say different things about the reply, it is
//! damaged.

use super::chunk::{ReplyPart, WireUsage, Words};
use super::fields::{ReplyFault, join_halves};
use super::logprobs::{self, Token};
use crate::provider::completion::Completion;
use crate::provider::receipt::{ReceiptParts, clean_name};
use crate::provider::secret::{Cleaner, Secrets};
use protocol::core::Usage;
use protocol::{Ask, Finish, Reply};

/// A reply that is still being received.
#[derive(Default)]
pub(super) struct CollectedChunks {
    text: Vec<u8>,
    reasoning: Vec<u8>,
    is_refused: bool,
    finish: Option<Finish>,
    usage: Option<WireUsage>,
    tokens: Vec<Token>,
    choices: u64,
    receipt: ReceiptParts,
    /// The model that answers, as the server names it.
    model: Option<String>,
    /// The number of parts with content, about one for each token.
    pub(super) parts: u64,
    /// Whether the server said that it is done.
    pub(super) is_done: bool,
}

impl CollectedChunks {
    /// Begins a reply with the receipt from its head.
    pub(super) fn new(receipt: ReceiptParts) -> Self {
        Self { receipt, ..Self::default() }
    }

    /// Adds a whole completion or one chunk.
    pub(super) fn add(&mut self, part: ReplyPart) -> Result<(), ReplyFault> {
        self.receipt.id = self.receipt.id.take().or(part.id);
        self.receipt.system_fingerprint = self.receipt.system_fingerprint.take().or(part.system_fingerprint);
        self.model = self.model.take().or(part.model);
        self.receipt.created = self.receipt.created.or(part.created);
        // No prompt is empty, so zero means that the server has not counted.
        self.usage = part.usage.filter(|usage| usage.prompt_tokens > 0).or(self.usage);
        if !part.has_choice {
            return Ok(());
        }
        self.choices += 1;
        self.tokens.extend(part.tokens);
        match (part.message, part.delta) {
            // Perplexity repeats the whole message beside each chunk.
            (_, Some(delta)) => self.append(delta)?,
            (Some(message), None) => self.take_whole(message)?,
            (None, None) => {}
        }
        match (self.finish, part.finish) {
            (Some(before), Some(now)) if before != now => {
                Err(ReplyFault::Damaged("it ended twice, for two reasons".to_owned()))
            }
            (before, now) => {
                self.finish = before.or(now);
                Ok(())
            }
        }
    }

    fn append(&mut self, words: Words) -> Result<(), ReplyFault> {
        if self.finish.is_some() && !words.content.is_empty() {
            return Err(ReplyFault::Damaged("it went on after its end".to_owned()));
        }
        self.parts += u64::from(!words.content.is_empty() || !words.reasoning.is_empty());
        self.text.extend(words.content);
        self.reasoning.extend(words.reasoning);
        self.is_refused |= words.is_refused;
        Ok(())
    }

    /// Takes a message that is the whole text. Some servers send it behind the chunks that it consists of.
    fn take_whole(&mut self, words: Words) -> Result<(), ReplyFault> {
        if self.text.is_empty() {
            return self.append(words);
        }
        if words.content.is_empty() || words.content == self.text {
            self.is_refused |= words.is_refused;
            return Ok(());
        }
        Err(ReplyFault::Damaged("its last message is not the text of its chunks".to_owned()))
    }

    /// Returns the text for people who watch, without keys. Before there is any text, it returns the reasoning.
    pub(super) fn visible_text(&self, secrets: &Secrets) -> String {
        let text = if self.text.is_empty() { &self.reasoning } else { &self.text };
        secrets.in_reply(&String::from_utf8_lossy(text)).into_owned()
    }

    /// Returns true if the reply came to the end that its form promises: a reason, or the mark `[DONE]`.
    pub(super) fn is_complete(&self) -> bool {
        self.is_done || self.finish.is_some()
    }

    /// Returns true if the server has sent a choice.
    pub(super) fn has_begun(&self) -> bool {
        self.choices > 0
    }

    /// Returns the reply, without keys, and its usage. Counts that the server did not send are estimated.
    pub(super) fn into_answer(self, ask: &Ask, secrets: &Secrets) -> Result<Completion, ReplyFault> {
        if self.choices == 0 {
            return Err(ReplyFault::Form("it has no choices".to_owned()));
        }
        let (Some(text), Some(reasoning)) = (join_halves(self.text), join_halves(self.reasoning)) else {
            return Err(ReplyFault::Damaged("it has half of a character".to_owned()));
        };
        let finish = match self.finish {
            Some(Finish::Length) => Finish::Length,
            Some(Finish::Stop | Finish::Refused) | None if self.is_refused => Finish::Refused,
            Some(finish) => finish,
            None => Finish::Stop,
        };
        let written = text.len() + reasoning.len();
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
        let yes = ask.shape.measured().and_then(|field| logprobs::yes(&self.tokens, &text, field));
        // A key may have come in pieces, so only the whole text shows it.
        let mut cleaner = Cleaner::new(secrets);
        let text = cleaner.text(text);
        let reasoning = cleaner.text(reasoning);
        let reasoning = if reasoning.is_empty() { None } else { Some(reasoning) };
        let receipt = self.receipt.into_receipt(&mut cleaner);
        let model = self.model.and_then(|name| clean_name(&mut cleaner, name));
        let reply = Reply { text, reasoning, finish, yes, model };
        Ok(Completion { reply, usage, structured: None, attempts: 1, receipt, key_removed: cleaner.removed })
    }
}

/// Returns dollars in millionths, rounded up, or nothing if no call could cost this sum.
fn micro_usd(dollars: f64) -> Option<u64> {
    if !(0.0..1e4).contains(&dollars) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
    let micro = (dollars * 1e6 - 1e-6).ceil().max(0.0) as u64;
    Some(micro)
}
