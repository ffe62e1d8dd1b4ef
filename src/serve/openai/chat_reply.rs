//! The answer to a chat completion: whole, or in the chunks of a stream.
//!
//! The input is the answer of a run. The output is JSON in OpenAI's form, with this program's own findings in the field `consensus`.

use axum::response::sse::Event;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::serve::http::ApiError;
use crate::serve::runs::{ReplyForm, RunReply, TokenUse};

/// A chat completion.
#[derive(Serialize, ToSchema)]
pub(super) struct ChatCompletion {
    /// The id of the run, behind `chatcmpl-`.
    id: String,
    object: &'static str,
    /// The time of the request, in seconds since 1970.
    created: u64,
    model: String,
    /// The one choice.
    choices: Vec<ChatChoice>,
    usage: CompletionUsage,
    /// What the result of the run says about the answer.
    #[schema(value_type = Object)]
    consensus: Value,
}

/// The choice of a completion.
#[derive(Serialize, ToSchema)]
struct ChatChoice {
    index: u32,
    message: ChatMessage,
    logprobs: Option<Value>,
    /// `length` if a limit of the run was reached, else `stop`.
    finish_reason: &'static str,
}

/// The message of a choice.
#[derive(Serialize, ToSchema)]
struct ChatMessage {
    role: &'static str,
    /// The agreed text; without agreement the text that leads, or null.
    content: Option<String>,
    /// The reason why there is no agreement.
    refusal: Option<String>,
}

/// The tokens of all calls of the run.
#[derive(Serialize, ToSchema)]
struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: CachedTokens,
    completion_tokens_details: ReasoningTokens,
}

/// The tokens that servers had computed before.
#[derive(Serialize, ToSchema)]
struct CachedTokens {
    cached_tokens: u64,
}

/// All tokens of replies but those of the final text.
#[derive(Serialize, ToSchema)]
pub(super) struct ReasoningTokens {
    pub(super) reasoning_tokens: u64,
}

impl From<TokenUse> for CompletionUsage {
    fn from(usage: TokenUse) -> Self {
        Self {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            total_tokens: usage.prompt + usage.completion,
            prompt_tokens_details: CachedTokens { cached_tokens: usage.cached },
            completion_tokens_details: ReasoningTokens { reasoning_tokens: usage.reasoning },
        }
    }
}

/// The form of a chat completion.
#[derive(Debug)]
pub(super) struct ChatForm {
    pub(super) run: String,
    pub(super) model: String,
    /// The time of the request, in seconds since 1970.
    pub(super) created: u64,
    /// Whether a stream ends with the usage.
    pub(super) include_usage: bool,
}

impl ChatForm {
    fn id(&self) -> String {
        format!("chatcmpl-{}", self.run)
    }

    /// Returns one chunk of a stream.
    fn chunk(&self, delta: &Value) -> Value {
        json!({
            "id": self.id(),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}],
        })
    }
}

fn finish_reason(reply: &RunReply) -> &'static str {
    if reply.is_cut { "length" } else { "stop" }
}

impl ReplyForm for ChatForm {
    fn whole(&self, reply: &RunReply) -> Value {
        let RunReply { content, refusal, usage, findings, .. } = reply;
        let message = ChatMessage { role: "assistant", content: content.clone(), refusal: refusal.clone() };
        json!(ChatCompletion {
            id: self.id(),
            object: "chat.completion",
            created: self.created,
            model: self.model.clone(),
            choices: vec![ChatChoice {
                index: 0,
                message,
                logprobs: None,
                finish_reason: finish_reason(reply)
            }],
            usage: (*usage).into(),
            consensus: findings.clone(),
        })
    }

    fn begin(&mut self) -> Vec<Value> {
        vec![self.chunk(&json!({"role": "assistant", "content": ""}))]
    }

    fn progress(&mut self, line: &str) -> Vec<Value> {
        let text = format!("{line}\n");
        // Servers and clients do not agree on the name of this field.
        vec![self.chunk(&json!({"reasoning": text, "reasoning_content": text}))]
    }

    fn end(&mut self, reply: &RunReply) -> Vec<Value> {
        let RunReply { content, refusal, usage, findings, .. } = reply;
        let mut chunks = Vec::new();
        chunks.extend(content.as_ref().map(|content| self.chunk(&json!({"content": content}))));
        chunks.extend(refusal.as_ref().map(|refusal| self.chunk(&json!({"refusal": refusal}))));
        let mut end = self.chunk(&json!({}));
        end["choices"][0]["finish_reason"] = json!(finish_reason(reply));
        end["consensus"] = findings.clone();
        chunks.push(end);
        if self.include_usage {
            let mut last = self.chunk(&json!({}));
            last["choices"] = json!([]);
            last["usage"] = json!(CompletionUsage::from(*usage));
            chunks.push(last);
        }
        chunks
    }

    fn fail(&mut self, why: &ApiError) -> Vec<Value> {
        vec![json!(why.body())]
    }

    fn event(&self, value: &Value) -> Event {
        Event::default().data(value.to_string())
    }

    fn last(&self) -> Option<Event> {
        Some(Event::default().data("[DONE]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(include_usage: bool) -> ChatForm {
        ChatForm { run: "r".to_owned(), model: "consensus/x".to_owned(), created: 1, include_usage }
    }

    fn reply() -> RunReply {
        RunReply {
            content: Some("four".to_owned()),
            refusal: None,
            is_cut: false,
            usage: TokenUse { prompt: 70, cached: 30, completion: 20, reasoning: 18 },
            findings: json!({"journal_head": "h"}),
        }
    }

    /// The usage counts the tokens of all calls.
    #[test]
    fn answer_has_run_text_and_usage() {
        let whole = form(false).whole(&reply());
        assert_eq!(whole["id"], "chatcmpl-r");
        assert_eq!(whole["choices"][0]["message"]["content"], "four");
        assert_eq!(whole["usage"]["total_tokens"], 90);
        assert_eq!(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 18);
        assert_eq!(whole["consensus"]["journal_head"], "h");
        let cut = form(false).whole(&RunReply { is_cut: true, ..reply() });
        assert_eq!(cut["choices"][0]["finish_reason"], "length");
    }

    /// The usage is there only if it was asked for.
    #[test]
    fn stream_ends_with_reason_and_usage() {
        let chunks = form(true).end(&reply());
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks[0]["choices"][0]["delta"]["content"], "four");
        assert_eq!(chunks[1]["choices"][0]["finish_reason"], "stop");
        assert_eq!((&chunks[2]["choices"], &chunks[2]["usage"]["prompt_tokens"]), (&json!([]), &json!(70)));
        assert_eq!(form(false).end(&reply()).len(), 2);
    }
}
