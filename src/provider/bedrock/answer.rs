//! Builds a reply from the output of Converse, whole or in events.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::provider::completion::Completion;
use crate::provider::ending::finish;
use crate::provider::receipt::ReceiptParts;
use crate::provider::secret::{Cleaner, Secrets};
use protocol::text::escape;
use protocol::{Ask, Finish, Reply};

/// A reply that is still being received.
#[derive(Default)]
pub(super) struct ConverseReply {
    text: String,
    reasoning: String,
    /// The input of the tool that stands for a form.
    input: String,
    stop: Option<String>,
    usage: Option<ConverseUsage>,
    receipt: ReceiptParts,
    /// The number of parts with content, about one for each token.
    pub(super) parts: u64,
}

/// The answer of Converse. Fields that are not needed here are ignored on purpose.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    #[serde(borrow)]
    output: ConverseOutput<'a>,
    stop_reason: String,
    usage: Option<ConverseUsage>,
}

#[derive(Deserialize)]
#[serde(rename = "Output")]
struct ConverseOutput<'a> {
    #[serde(borrow)]
    message: ConverseMessage<'a>,
}

#[derive(Deserialize)]
#[serde(rename = "Message")]
struct ConverseMessage<'a> {
    #[serde(borrow)]
    content: Vec<ContentBlock<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", rename = "Block")]
struct ContentBlock<'a> {
    text: Option<String>,
    #[serde(borrow)]
    tool_use: Option<ToolUse<'a>>,
    reasoning_content: Option<Reasoning>,
}

#[derive(Deserialize)]
struct ToolUse<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Reasoning {
    reasoning_text: Option<ReasoningText>,
}

#[derive(Deserialize)]
struct ReasoningText {
    text: String,
}

/// The content of one event in a stream. The kind of the event is in its head.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", rename = "Event")]
struct StreamEvent {
    delta: Delta,
    stop_reason: Option<String>,
    usage: Option<ConverseUsage>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Delta {
    text: Option<String>,
    tool_use: Option<ToolDelta>,
    reasoning_content: Option<ReasoningDelta>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolDelta {
    input: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReasoningDelta {
    text: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, rename = "Usage")]
struct ConverseUsage {
    /// The prompt's tokens, without those read from a cache or written to one.
    #[serde(rename = "inputTokens")]
    input: u64,
    #[serde(rename = "outputTokens")]
    output: u64,
    #[serde(rename = "cacheReadInputTokens")]
    read: u64,
    #[serde(rename = "cacheWriteInputTokens")]
    written: u64,
}

impl ConverseReply {
    /// Begins a reply with the receipt from its head.
    pub(super) fn new(receipt: ReceiptParts) -> Self {
        Self { receipt, ..Self::default() }
    }

    /// Reads the answer of Converse. Keys are removed from the excerpt of an unusable one.
    pub(super) fn read_whole(json: &str, receipt: ReceiptParts, secrets: &Secrets) -> Result<Self, String> {
        let whole: Whole<'_> = serde_json::from_str(json).map_err(|e| {
            let excerpt = escape::excerpt(&secrets.in_message(json));
            format!("it is not a Converse answer ({e}): `{excerpt}`")
        })?;
        let mut collected = Self::new(receipt);
        (collected.stop, collected.usage) = (Some(whole.stop_reason), whole.usage);
        for block in whole.output.message.content {
            collected.text.push_str(&block.text.unwrap_or_default());
            collected.input.push_str(block.tool_use.map_or("", |tool| tool.input.get()));
            let reasoning = block.reasoning_content.and_then(|reasoning| reasoning.reasoning_text);
            collected.reasoning.push_str(&reasoning.map(|reasoning| reasoning.text).unwrap_or_default());
        }
        Ok(collected)
    }

    /// Adds an event of `ConverseStream`.
    pub(super) fn add(&mut self, payload: &[u8], secrets: &Secrets) -> Result<(), String> {
        let event: StreamEvent = serde_json::from_slice(payload).map_err(|e| {
            let payload = String::from_utf8_lossy(payload);
            let excerpt = escape::excerpt(&secrets.in_message(&payload));
            format!("one of its events cannot be read ({e}): `{excerpt}`")
        })?;
        let Delta { text, tool_use, reasoning_content } = event.delta;
        let (input, reasoning) = (tool_use.map(|t| t.input), reasoning_content.map(|r| r.text));
        let parts = [(&mut self.text, text), (&mut self.input, input), (&mut self.reasoning, reasoning)];
        for (place, part) in parts {
            let part = part.unwrap_or_default();
            self.parts += u64::from(!part.is_empty());
            place.push_str(&part);
        }
        self.stop = event.stop_reason.or(self.stop.take());
        self.usage = event.usage.or(self.usage);
        Ok(())
    }

    /// Returns the text for people who watch, without keys. Before there is any text, it returns the reasoning.
    pub(super) fn visible_text(&self, secrets: &Secrets) -> String {
        let text = if self.text.is_empty() { &self.reasoning } else { &self.text };
        secrets.in_reply(text).into_owned()
    }

    /// Returns true if the model said why it stopped.
    pub(super) fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    /// Returns the reply, without keys, and its usage. Counts that are missing are estimated.
    pub(super) fn into_answer(self, ask: &Ask, secrets: &Secrets) -> Result<Completion, String> {
        let Some(reason) = self.stop.as_deref() else { return Err("it has no stop reason".to_owned()) };
        let finish = match finish(reason) {
            Some(finish) => finish,
            // A form is the input of a tool, and the call of the tool is its end.
            None if reason == "tool_use" && !self.input.is_empty() => Finish::Stop,
            None => {
                let reason = escape::excerpt(reason);
                return Err(format!("it ended for the reason `{reason}`, which ends no whole reply"));
            }
        };
        let text = if self.input.is_empty() { self.text } else { self.input };
        let usage = match self.usage {
            Some(usage) => protocol::core::Usage {
                prompt: usage.input.saturating_add(usage.read).saturating_add(usage.written),
                cached: usage.read,
                completion: usage.output,
                estimated: false,
                cost_micro_usd: None,
            },
            None => protocol::core::Usage::estimate(
                ask.prompt_tokens_estimate(),
                text.len() + self.reasoning.len(),
            ),
        };
        // A key may have come in pieces, so only the whole text shows it.
        let mut cleaner = Cleaner::new(secrets);
        let text = cleaner.text(text);
        let reasoning = cleaner.text(self.reasoning);
        let reasoning = if reasoning.is_empty() { None } else { Some(reasoning) };
        let receipt = self.receipt.into_receipt(&mut cleaner);
        let reply = Reply { text, reasoning, finish, yes: None, model: None };
        Ok(Completion { reply, usage, structured: None, attempts: 1, receipt, key_removed: cleaner.removed })
    }
}
