//! The conduct of a server, as a recorded reply shows it: whether its replies follow their schema, and whether its
//! token counts are possible.
//!
//! The facts are the same from a live run and from its journal. Nothing here changes a record or decides what happens to a reply.

use crate::journal::Replied;
use protocol::core::{Price, Structured, Usage};
use protocol::text::TextMemos;
use protocol::{Ask, Degraded, DegradedKind, Finish, ReplyShape};

/// The tokens that a chat template may add to each message.
const MESSAGE_ROOM: u64 = 64;

/// The tokens that a server may add to each request, such as its own system prompt or the description of a tool.
const REQUEST_ROOM: u64 = 1024;

/// The tokens of hidden reasoning, which some servers count but do not keep within the request's limit.
const REASONING_ROOM: u64 = 32_768;

/// Returns true if a reply that ended by itself breaks the schema that its server accepted.
pub(super) fn ignores_schema(ask: &Ask, replied: &Replied, memos: &TextMemos) -> bool {
    let ReplyShape::Json { schema, .. } = &ask.shape else { return false };
    replied.structured == Some(Structured::JsonSchema)
        && replied.reply.finish == Finish::Stop
        && !schema.admits_in_form(&memos.forms, &replied.reply.text)
}

/// Returns the losses that a reply of the agent `name` adds to the run's result. `is_implausible` means that its
/// token counts are impossible.
pub(super) fn losses(name: &str, replied: &Replied, is_implausible: bool) -> Vec<Degraded> {
    let mut losses = Vec::new();
    if let Some(held @ (Structured::JsonObject | Structured::Prompt)) = replied.structured {
        let how = match held {
            Structured::JsonSchema | Structured::JsonObject => "some JSON object (`json_object`)",
            Structured::Prompt => "the prompt alone",
        };
        let detail = format!("the server of {name} refused the schema; its replies were held by {how}");
        losses.push(Degraded { kind: DegradedKind::StructuredOutput, detail });
    }
    if replied.usage.estimated {
        let detail = format!("the server of {name} reports no usage; tokens are estimates");
        losses.push(Degraded { kind: DegradedKind::UsageEstimated, detail });
    }
    if is_implausible {
        let detail = format!(
            "the server of {name} counts tokens for which its requests and replies have no room; estimates were charged"
        );
        losses.push(Degraded { kind: DegradedKind::UsageImplausible, detail });
    }
    if replied.key_removed {
        let detail = format!("the server of {name} repeated its key in a reply; the key was taken out");
        losses.push(Degraded { kind: DegradedKind::KeyInReply, detail });
    }
    losses
}

/// Returns the estimate that replaces a server's counts, if those are impossible.
///
/// A cost that the server itself reports is kept only if no price is known by which the estimate could be charged.
pub(super) fn estimate_instead(ask: &Ask, replied: &Replied, price: Option<Price>) -> Option<Usage> {
    let usage = replied.usage;
    if usage.estimated || has_room(ask, replied) {
        return None;
    }
    let cost_micro_usd = if price.is_none() { usage.cost_micro_usd } else { None };
    let estimate = Usage::estimate(ask.prompt_tokens_estimate(), written_bytes(replied));
    Some(Usage { cost_micro_usd, ..estimate })
}

/// Returns true if the request and the reply have room for the reported counts. A token is at least one byte, and a
/// text that was sent or written is at least one token.
fn has_room(ask: &Ask, replied: &Replied) -> bool {
    let usage = replied.usage;
    let schema = match &ask.shape {
        ReplyShape::Json { schema, .. } => schema.as_str().len(),
        ReplyShape::Free => 0,
    };
    let sent = schema + ask.messages.iter().map(|message| message.content.len()).sum::<usize>();
    let prompt_max = sent as u64 + MESSAGE_ROOM * ask.messages.len() as u64 + REQUEST_ROOM;
    let written = written_bytes(replied) as u64;
    let completion_max = written.max(u64::from(ask.max_tokens)) + REASONING_ROOM;
    (1..=prompt_max).contains(&usage.prompt)
        && usage.cached <= usage.prompt
        && usage.completion <= completion_max
        && (usage.completion > 0 || written == 0)
}

fn written_bytes(replied: &Replied) -> usize {
    replied.reply.text.len() + replied.reply.reasoning.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crypto::Digest;
    use protocol::{CallId, Message, Reply, Role, Step};

    const CALL: CallId = CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Think, attempt: 0 };

    fn charged(usage: Usage, price: Option<Price>) -> Option<Usage> {
        let ask = Ask {
            refused: None,
            call: CALL,
            messages: vec![Arc::new(Message::new(Role::User, "x".repeat(300)))],
            shape: ReplyShape::Free,
            max_tokens: 100,
            temperature: 0.0,
            seed: 1,
            digest: Digest::ZERO,
        };
        let reply =
            Reply { text: "y".repeat(60), reasoning: None, finish: Finish::Stop, yes: None, model: None };
        let replied = Replied {
            call: CALL,
            reply,
            usage,
            structured: None,
            attempts: 1,
            receipt: None,
            key_removed: false,
        };
        estimate_instead(&ask, &replied, price)
    }

    /// More tokens than the bytes and the room allow are no count.
    #[test]
    fn impossible_token_counts_become_estimates() {
        let counted = |prompt, cached, completion| Usage { prompt, cached, completion, ..Usage::default() };
        for usage in [counted(1, 0, 1), counted(300 + 64 + 1024, 1388, 100 + 32_768), counted(90, 90, 20)] {
            assert_eq!(charged(usage, None), None, "{usage:?}");
        }
        for usage in [
            counted(u64::MAX, 0, 20),
            counted(1389, 0, 20),
            counted(90, 91, 20),
            counted(90, 0, u64::MAX),
            counted(90, 0, 32_869),
            counted(0, 0, 20),
            counted(90, 0, 0),
        ] {
            let estimate = Usage { prompt: 105, completion: 20, estimated: true, ..Usage::default() };
            assert_eq!(charged(usage, None), Some(estimate), "{usage:?}");
        }
    }

    #[test]
    fn price_replaces_cost_of_impossible_counts() {
        let usage = Usage { prompt: u64::MAX, completion: 20, cost_micro_usd: Some(7), ..Usage::default() };
        let cost = |price| charged(usage, price).unwrap().cost(price);
        assert_eq!(cost(None), Some(7));
        let price = Price { prompt: 1_000_000, cached: 1_000_000, completion: 1_000_000 };
        assert_eq!(cost(Some(price)), Some(125));
    }
}
