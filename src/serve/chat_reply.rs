//! The answer to a chat completion: whole, or in the chunks of a stream.
//!
//! The input is the line of results of a run. The output is JSON in OpenAI's form, with this program's own findings in the field
//! `consensus`. A run without agreement is an answer too: its content is the text that leads, if one does, and the reason is its refusal.

use serde::Deserialize;
use serde_json::{Value, json};

use super::api_error::ApiError;
use crate::core::Usage;
use crate::protocol::OutcomeKind;

/// The parts of a line of results that an answer has.
#[derive(Deserialize)]
struct ReplyFields {
    outcome: OutcomeKind,
    reason: Option<String>,
    text: Option<String>,
    blind_vote: BlindVote,
    usage: Used,
}

#[derive(Deserialize)]
struct BlindVote {
    text: Option<String>,
}

#[derive(Deserialize)]
struct Used {
    prompt: u64,
    cached: u64,
    completion: u64,
    calls: u64,
}

/// The parts of the line that go into the answer as they are.
const FINDINGS: [&str; 12] = [
    "run",
    "protocol",
    "roleset",
    "outcome",
    "reason",
    "how",
    "confidence",
    "rounds",
    "blind_vote",
    "dissent",
    "degraded",
    "journal_head",
];

/// The answer to a request.
#[derive(Debug)]
pub(super) struct ChatReply {
    id: String,
    model: String,
    /// The time of the request, in seconds since 1970.
    created: u64,
    content: Option<String>,
    refusal: Option<String>,
    usage: Value,
    findings: Value,
}

impl ChatReply {
    /// Makes the answer of a run from its line of results.
    pub(super) fn new(
        run: &str,
        model: &str,
        created: u64,
        has_key: bool,
        row: &Value,
    ) -> Result<Self, ApiError> {
        let fields = ReplyFields::deserialize(row).map_err(|why| ApiError::internal(&why))?;
        let ReplyFields { outcome, reason, text, blind_vote, usage } = fields;
        let reason = reason.unwrap_or_else(|| "the run ended without agreement".to_owned());
        let (content, refusal) = match outcome {
            OutcomeKind::Agreed => (text, None),
            OutcomeKind::Budget if usage.calls == 0 => return Err(ApiError::bad("budget", reason)),
            // The vote over blind drafts is the best that the run has.
            OutcomeKind::NoAgreement | OutcomeKind::Budget => (blind_vote.text, Some(reason)),
            OutcomeKind::Abstained | OutcomeKind::Vetoed => (None, Some(reason)),
            OutcomeKind::Failed => return Err(ApiError::provider(&reason, usage.calls == 0 && !has_key)),
            OutcomeKind::Interrupted => return Err(ApiError::put_down(has_key)),
        };
        let said = content.as_ref().map_or(0, |text| Usage::estimate(0, text.len()).completion);
        let findings = FINDINGS.iter().map(|name| ((*name).to_owned(), row[name].clone())).collect();
        Ok(Self {
            id: completion_id(run),
            model: model.to_owned(),
            created,
            content,
            refusal,
            usage: json!({
                "prompt_tokens": usage.prompt,
                "completion_tokens": usage.completion,
                "total_tokens": usage.prompt + usage.completion,
                "prompt_tokens_details": {"cached_tokens": usage.cached},
                // Everything but the final text is work on the way to it.
                "completion_tokens_details": {"reasoning_tokens": usage.completion.saturating_sub(said)},
            }),
            findings: Value::Object(findings),
        })
    }

    /// Returns the whole answer.
    pub(super) fn whole(&self) -> Value {
        let Self { id, model, created, content, refusal, usage, findings } = self;
        json!({
            "id": id,
            "object": "chat.completion",
            "created": created,
            "model": model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": usage,
            "consensus": findings,
        })
    }

    /// Returns the chunks that end a stream.
    pub(super) fn chunks(&self, include_usage: bool) -> Vec<Value> {
        let Self { id, model, created, content, refusal, usage, findings } = self;
        let delta = |delta: Value| chunk(id, model, *created, &delta);
        let mut chunks = Vec::new();
        chunks.extend(content.as_ref().map(|content| delta(json!({"content": content}))));
        chunks.extend(refusal.as_ref().map(|refusal| delta(json!({"refusal": refusal}))));
        let mut end = delta(json!({}));
        end["choices"][0]["finish_reason"] = json!("stop");
        end["consensus"] = findings.clone();
        chunks.push(end);
        if include_usage {
            let mut last = delta(json!({}));
            last["choices"] = json!([]);
            last["usage"] = usage.clone();
            chunks.push(last);
        }
        chunks
    }
}

/// Returns the id of an answer.
pub(super) fn completion_id(run: &str) -> String {
    format!("chatcmpl-{run}")
}

/// Returns one chunk of a stream.
pub(super) fn chunk(id: &str, model: &str, created: u64, delta: &Value) -> Value {
    json!({
        "id": id,
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(outcome: &str, text: Option<&str>, blind: Option<&str>, calls: u64) -> Value {
        json!({"run": "r", "outcome": outcome, "reason": "why", "text": text, "blind_vote": {"text": blind},
            "usage": {"prompt": 70, "cached": 30, "completion": 20, "calls": calls}, "journal_head": "h"})
    }

    #[test]
    fn an_agreement_is_the_content_and_its_tokens_are_those_of_all_calls() {
        let whole = ChatReply::new("r", "consensus/x", 1, false, &row("agreed", Some("four"), None, 4))
            .unwrap()
            .whole();
        let message = &whole["choices"][0]["message"];
        assert_eq!((&message["content"], &message["refusal"]), (&json!("four"), &Value::Null));
        assert_eq!(whole["id"], "chatcmpl-r");
        assert_eq!(whole["usage"]["total_tokens"], 90);
        assert_eq!(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 18);
        assert_eq!(whole["consensus"]["journal_head"], "h");
    }

    #[test]
    fn no_agreement_is_an_answer_with_its_reason_and_a_veto_has_no_content() {
        let said = |row: &Value| {
            ChatReply::new("r", "m", 1, false, row)
                .map(|reply| reply.whole()["choices"][0]["message"].clone())
        };
        let leads = said(&row("no_agreement", None, Some("five"), 4)).unwrap();
        assert_eq!((&leads["content"], &leads["refusal"]), (&json!("five"), &json!("why")));
        let vetoed = said(&row("vetoed", None, Some("five"), 4)).unwrap();
        assert_eq!((&vetoed["content"], &vetoed["refusal"]), (&Value::Null, &json!("why")));
        assert!(said(&row("failed", None, None, 0)).is_err());
    }

    #[test]
    fn a_stream_ends_with_its_reason_and_with_the_usage_if_that_was_asked_for() {
        let reply = ChatReply::new("r", "m", 1, false, &row("agreed", Some("four"), None, 4)).unwrap();
        let chunks = reply.chunks(true);
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks[0]["choices"][0]["delta"]["content"], "four");
        assert_eq!(chunks[1]["choices"][0]["finish_reason"], "stop");
        assert_eq!((&chunks[2]["choices"], &chunks[2]["usage"]["prompt_tokens"]), (&json!([]), &json!(70)));
        assert_eq!(reply.chunks(false).len(), 2);
    }
}
