//! A request for a chat completion, as clients of OpenAI's interface write it.
//!
//! The input is the body of a request. The output is the run that it asks for, and the way in which the answer is sent. Settings of a
//! single sample, such as the temperature, are ignored in a request, because the roleset sets them.

use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::ToSchema;

use crate::serve::dispatch::{
    AnswerFormat, Extension, GivenContent, RequestedRun, RunSettings, Speaker, SpokenMessage, read_body,
    read_text,
};
use crate::serve::http::ApiError;

/// A request for a chat completion. Clients send many fields that mean nothing here, and servers ignore fields that they do not know.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub(super) struct ChatCompletionRequest {
    /// A roleset, such as `consensus/vote_number`, and behind `@` its model.
    #[schema(example = "consensus/vote_number")]
    model: String,
    /// The conversation. The last message is the user's, and is the task.
    messages: Vec<RequestMessage>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    /// The seed of the run.
    #[serde(default)]
    seed: Option<i64>,
    /// The most tokens of one reply of an agent, by its old name.
    #[serde(default)]
    max_tokens: Option<u32>,
    /// The most tokens of one reply of an agent.
    #[serde(default)]
    max_completion_tokens: Option<u32>,
    /// An agreement is one answer.
    #[serde(default)]
    n: Option<u32>,
    /// An agreement has no token probabilities.
    #[serde(default)]
    logprobs: Option<bool>,
    /// Agents call no tools, so the list must be empty.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<IgnoredAny>>,
    /// Tools, by their old name.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    functions: Option<Vec<IgnoredAny>>,
    #[serde(default)]
    response_format: Option<AnswerFormat>,
    #[serde(default)]
    consensus: Option<Extension>,
}

/// The wishes for a stream.
#[derive(Deserialize, ToSchema)]
struct StreamOptions {
    /// Whether the stream ends with the usage.
    #[serde(default)]
    include_usage: bool,
}

/// A message of a conversation.
#[derive(Deserialize, ToSchema)]
#[serde(rename = "Message")]
#[schema(as = Message)]
struct RequestMessage {
    role: Speaker,
    #[serde(default)]
    content: Option<GivenContent>,
    /// The reason that an earlier answer gave in place of a text.
    #[serde(default)]
    refusal: Option<String>,
}

impl ChatCompletionRequest {
    /// Reads the body of a request.
    pub(super) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body: Self = read_body(body)?;
        if body.functions.as_ref().is_some_and(|functions| !functions.is_empty()) {
            return Err(ApiError::field("functions", "agents that agree on a text call no functions"));
        }
        if body.n.is_some_and(|n| n != 1) {
            return Err(ApiError::field("n", "an agreement is one answer; leave `n` out"));
        }
        if body.logprobs == Some(true) {
            let why = "an agreement has no token probabilities; leave `logprobs` out";
            return Err(ApiError::field("logprobs", why));
        }
        Ok(body)
    }

    /// Returns whether a stream ends with the usage.
    pub(super) fn includes_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options.include_usage)
    }

    /// Returns the run that the request asks for.
    pub(super) fn into_run(self) -> Result<RequestedRun, ApiError> {
        let mut messages = Vec::new();
        for (at, RequestMessage { role, content, refusal }) in self.messages.into_iter().enumerate() {
            let mut text = read_text(content, &format!("messages[{at}].content"))?;
            if text.is_empty() {
                text = refusal.unwrap_or_default();
            }
            messages.push(SpokenMessage { role, text });
        }
        let settings = RunSettings {
            model: self.model,
            seed: self.seed,
            reply_tokens: self.max_completion_tokens.or(self.max_tokens),
            tokens_field: "max_completion_tokens",
            format: self.response_format,
            format_field: "response_format",
            tools: self.tools,
            extension: self.consensus,
        };
        RequestedRun::new(settings, messages, "messages")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(body: &Value) -> Result<RequestedRun, ApiError> {
        ChatCompletionRequest::read(body.to_string().as_bytes())?.into_run()
    }

    /// The messages before the last one become documents, which are data.
    #[test]
    fn last_message_becomes_task() {
        let run = parse(&json!({"model": "m", "temperature": 2, "user": "u", "tools": [], "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
            {"role": "assistant", "content": "Hi"},
            {"role": "user", "content": "2+2?"},
        ]}))
        .unwrap();
        assert_eq!(run.prompt, "2+2?");
        let documents: Vec<(&str, &str)> =
            run.documents.iter().map(|document| (document.name.as_str(), &*document.text)).collect();
        let [system, earlier] = documents[..] else { panic!("{documents:?}") };
        assert_eq!(system, ("notes of the application", "Be brief."));
        assert_eq!(earlier, ("earlier in this conversation", "User: Hello\n\nAssistant: Hi"));
    }

    #[test]
    fn unusable_field_is_refused_by_name() {
        let ask = json!([{"role": "user", "content": "2+2?"}]);
        let with = |name: &str, value: Value| {
            let mut body = json!({"model": "m", "messages": ask});
            body[name] = value;
            body
        };
        for (field, body) in [
            ("tools", with("tools", json!([{"type": "function"}]))),
            ("n", with("n", json!(2))),
            ("logprobs", with("logprobs", json!(true))),
            ("max_completion_tokens", with("max_tokens", json!(0))),
            ("response_format", with("response_format", json!({"type": "json_schema"}))),
            ("messages", with("messages", json!([]))),
            ("messages", with("messages", json!([{"role": "assistant", "content": "4"}]))),
            (
                "messages[0].content",
                with("messages", json!([{"role": "user", "content": [{"type": "image_url"}]}])),
            ),
            ("consensus.choices", with("consensus", json!({"canonical": "choice"}))),
        ] {
            let why = json!(parse(&body).expect_err(field).body());
            assert_eq!(why["error"]["param"], field, "{why}");
        }
        let why = parse(&with("consensus", json!({"choises": ["A"]}))).unwrap_err();
        assert!(why.to_string().contains("choises"), "{why}");
    }
}
