//! A request for a response: the newer of OpenAI's two forms, as far as text goes.
//!
//! The input is the body of a request. The output is the run that it asks for, and what its answer repeats. The server keeps no
//! conversations, so a request brings all that was said before.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use utoipa::ToSchema;

use super::api_error::ApiError;
use super::requested_run::{
    AnswerFormat, Extension, GivenContent, RequestedRun, Speaker, Spoken, Wishes, read_body, text,
};

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
    input: Input,
    /// General instructions, which the agents read as data.
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
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
    metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    consensus: Option<Extension>,
}

/// The conversation.
#[derive(Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a text or a list of messages")]
enum Input {
    Text(String),
    Items(Vec<Item>),
}

/// A part of the conversation.
#[derive(Deserialize, ToSchema)]
struct Item {
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

/// A run that is asked for, and what its answer repeats.
#[derive(Debug)]
pub(super) struct AskedResponse {
    pub(super) run: RequestedRun,
    /// Whether the answer is sent as a stream.
    pub(super) stream: bool,
    pub(super) instructions: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    /// The format of the answer.
    pub(super) format: Value,
}

impl AskedResponse {
    /// Reads the body of a request.
    pub(super) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body: ResponseRequest = read_body(body)?;
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
        let mut said = Vec::new();
        said.extend(body.instructions.clone().map(|text| Spoken { role: Speaker::System, text }));
        match body.input {
            Input::Text(text) => said.push(Spoken { role: Speaker::User, text }),
            Input::Items(items) => {
                for (at, item) in items.into_iter().enumerate() {
                    said.extend(item_said(item, at)?);
                }
            }
        }
        let format = body.text.and_then(|wishes| wishes.format);
        let repeated = format.as_ref().unwrap_or(&AnswerFormat::Text).repeated();
        let wishes = Wishes {
            model: body.model,
            seed: body.seed,
            reply_tokens: (body.max_output_tokens, "max_output_tokens"),
            format: (format, "text.format"),
            tools: body.tools,
            extension: body.consensus,
        };
        Ok(Self {
            run: RequestedRun::new(wishes, said, "input")?,
            stream: body.stream.unwrap_or_default(),
            instructions: body.instructions,
            metadata: bounded(body.metadata.unwrap_or_default())?,
            format: repeated,
        })
    }
}

/// Refuses metadata beyond OpenAI's own limits.
fn bounded(metadata: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ApiError> {
    let fits = |(name, value): (&String, &String)| {
        name.chars().count() <= METADATA_NAME_MAX && value.chars().count() <= METADATA_VALUE_MAX
    };
    if metadata.len() <= METADATA_MAX && metadata.iter().all(fits) {
        return Ok(metadata);
    }
    let why = "at most 16 pairs are kept, with names of 64 characters and values of 512";
    Err(ApiError::field("metadata", why))
}

/// Returns the message of an item, if it is one.
fn item_said(Item { kind, role, content }: Item, at: usize) -> Result<Option<Spoken>, ApiError> {
    match (kind.as_deref().unwrap_or("message"), role) {
        ("message", Some(role)) => {
            let text = text(content, &format!("input[{at}].content"))?;
            Ok(Some(Spoken { role, text }))
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
        let chat = crate::serve::chat_request::AskedChat::parse(chat.to_string().as_bytes()).unwrap();
        let response = AskedResponse::parse(response.to_string().as_bytes()).unwrap();
        assert_eq!(chat.run.digest(), response.run.digest());
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
            let why = json!(AskedResponse::parse(body.to_string().as_bytes()).expect_err(field).body());
            assert_eq!(why["error"]["param"], field, "{why}");
        }
        let image = json!({"model": "m", "input": [{"type": "function_call_output", "call_id": "1"}]});
        let why = json!(AskedResponse::parse(image.to_string().as_bytes()).unwrap_err().body());
        assert_eq!(why["error"]["param"], "input[0].type", "{why}");
    }
}
