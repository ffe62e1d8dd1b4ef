//! A request for a response: the newer of OpenAI's two forms, as far as text goes.
//!
//! The input is the body of a request. The output is the run that it asks for, and what its answer repeats. The server keeps no
//! conversations, so a request brings all that was said before.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use utoipa::ToSchema;

use crate::serve::dispatch::{
    AnswerFormat, Extension, GivenContent, RequestedRun, RunSettings, Speaker, SpokenMessage, read_body,
    read_text,
};
use crate::serve::http::ApiError;

/// The most pairs of metadata.
const METADATA_MAX: usize = 16;

/// The longest name of a pair, in characters.
const METADATA_NAME_MAX: usize = 64;

/// The longest value of a pair, in characters.
const METADATA_VALUE_MAX: usize = 512;

/// A request for a response.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub(super) struct ResponseRequest {
    /// A roleset, such as `consensus/vote_number`, and behind `@` its model.
    #[schema(example = "consensus/vote_number")]
    model: String,
    /// The conversation. The last message is the user's, and is the task.
    input: ResponseInput,
    /// General instructions, which the agents read as data.
    #[serde(default)]
    pub(super) instructions: Option<String>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
    /// The most tokens of one reply of an agent.
    #[serde(default)]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    text: Option<TextWishes>,
    /// Agents call no tools, so the list must be empty.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<IgnoredAny>>,
    /// The server keeps no conversations, so this must be absent.
    #[serde(default)]
    previous_response_id: Option<String>,
    /// The server keeps no conversations, so this must be absent.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    conversation: Option<IgnoredAny>,
    /// A run cannot be left to itself, except by an `Idempotency-Key`.
    #[serde(default)]
    background: Option<bool>,
    /// The seed of the run, which OpenAI's own form does not have.
    #[serde(default)]
    seed: Option<i64>,
    /// Words of the caller's own, which the answer repeats: at most 16, with names of 64 characters and values of 512.
    #[serde(default)]
    pub(super) metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    consensus: Option<Extension>,
}

/// The conversation.
#[derive(Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a text or a list of messages")]
#[schema(as = Input)]
enum ResponseInput {
    Text(String),
    Items(Vec<InputItem>),
}

/// A part of the conversation.
#[derive(Deserialize, ToSchema)]
#[schema(as = Item)]
struct InputItem {
    /// The type of the item: `message`, which need not be said, or `reasoning`, which is passed over.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    role: Option<Speaker>,
    #[serde(default)]
    content: Option<GivenContent>,
}

/// The wishes for the text of the answer.
#[derive(Deserialize, ToSchema)]
struct TextWishes {
    #[serde(default)]
    format: Option<AnswerFormat>,
}

impl ResponseRequest {
    /// Reads the body of a request.
    pub(super) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let body: Self = read_body(body)?;
        let why = "the server keeps no conversations; send all that was said before as `input`";
        if body.previous_response_id.is_some() {
            return Err(ApiError::field("previous_response_id", why));
        }
        if body.conversation.is_some() {
            return Err(ApiError::field("conversation", why));
        }
        if body.background == Some(true) {
            let why = "send an `Idempotency-Key` in place of it: the same request finds its run again";
            return Err(ApiError::field("background", why));
        }
        Ok(body)
    }

    /// Returns the format of the answer, as the answer repeats it.
    pub(super) fn format(&self) -> Value {
        let format = self.text.as_ref().and_then(|text| text.format.as_ref());
        format.unwrap_or(&AnswerFormat::Text).to_json()
    }

    /// Returns the run that the request asks for.
    pub(super) fn into_run(self) -> Result<RequestedRun, ApiError> {
        let mut messages = Vec::new();
        if let Some(text) = self.instructions {
            messages.push(SpokenMessage { role: Speaker::System, text });
        }
        match self.input {
            ResponseInput::Text(text) => messages.push(SpokenMessage { role: Speaker::User, text }),
            ResponseInput::Items(items) => {
                for (at, item) in items.into_iter().enumerate() {
                    messages.extend(read_item(item, at)?);
                }
            }
        }
        let settings = RunSettings {
            model: self.model,
            seed: self.seed,
            reply_tokens: self.max_output_tokens,
            tokens_field: "max_output_tokens",
            format: self.text.and_then(|text| text.format),
            format_field: "text.format",
            tools: self.tools,
            extension: self.consensus,
        };
        let run = RequestedRun::new(settings, messages, "input")?;
        require_small(&self.metadata.unwrap_or_default())?;
        Ok(run)
    }
}

/// Refuses metadata beyond OpenAI's own limits.
fn require_small(metadata: &BTreeMap<String, String>) -> Result<(), ApiError> {
    let has_long_pair = metadata.iter().any(|(name, value)| {
        name.chars().count() > METADATA_NAME_MAX || value.chars().count() > METADATA_VALUE_MAX
    });
    if metadata.len() > METADATA_MAX || has_long_pair {
        let why = "at most 16 pairs are kept, with names of 64 characters and values of 512";
        return Err(ApiError::field("metadata", why));
    }
    Ok(())
}

/// Returns the message of an item, if it is one.
fn read_item(item: InputItem, at: usize) -> Result<Option<SpokenMessage>, ApiError> {
    let InputItem { kind, role, content } = item;
    match (kind.as_deref().unwrap_or("message"), role) {
        ("message", Some(role)) => {
            let text = read_text(content, &format!("input[{at}].content"))?;
            Ok(Some(SpokenMessage { role, text }))
        }
        ("message", None) => Err(ApiError::field(&format!("input[{at}].role"), "a message says whose it is")),
        ("reasoning", _) => Ok(None),
        (kind, _) => {
            let kind = protocol::text::escape::excerpt(kind);
            let why = format!("an item of the type `{kind}` cannot be read; send messages of text");
            Err(ApiError::field(&format!("input[{at}].type"), why))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::serve::openai::chat_request::ChatCompletionRequest;

    fn parse(body: &Value) -> Result<RequestedRun, ApiError> {
        ResponseRequest::read(body.to_string().as_bytes())?.into_run()
    }

    /// One conversation in the form of chats and in that of responses has one digest.
    #[test]
    fn both_forms_give_same_run() {
        let chat = json!({"model": "consensus/m", "seed": 7, "max_completion_tokens": 90, "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi"},
            {"role": "user", "content": "2+2?"},
        ]});
        let response = json!({"model": "m", "seed": 7, "max_output_tokens": 90, "instructions": "Be brief.", "input": [
            {"role": "user", "content": "Hello"},
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "2+2?"}]},
        ]});
        let chat = ChatCompletionRequest::read(chat.to_string().as_bytes()).unwrap();
        let response = parse(&response).unwrap();
        assert_eq!(chat.into_run().unwrap().digest(), response.digest());
    }

    #[test]
    fn unusable_field_is_refused_by_name() {
        for (field, value) in [
            ("previous_response_id", json!("resp_1")),
            ("conversation", json!("conv_1")),
            ("background", json!(true)),
            ("tools", json!([{"type": "web_search"}])),
            ("max_output_tokens", json!(0)),
            ("metadata", json!({"a": "x".repeat(513)})),
            ("metadata", json!({"x".repeat(65): "a"})),
            (
                "metadata",
                json!((0..17).map(|at| (at.to_string(), at.to_string())).collect::<BTreeMap<_, _>>()),
            ),
        ] {
            let mut body = json!({"model": "m", "input": "2+2?"});
            body[field] = value;
            let why = json!(parse(&body).expect_err(field).body());
            assert_eq!(why["error"]["param"], field, "{why}");
        }
        let image = json!({"model": "m", "input": [{"type": "function_call_output", "call_id": "1"}]});
        let why = json!(parse(&image).unwrap_err().body());
        assert_eq!(why["error"]["param"], "input[0].type", "{why}");
    }
}
