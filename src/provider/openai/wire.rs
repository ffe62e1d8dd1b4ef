//! The JSON on the wire: chat completions as servers speak them, dialects included.
//!
//! Incoming types ignore unknown fields on purpose, because every server adds some.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::logprobs::Logprobs;
use crate::protocol::Message;
use crate::text::schema::SchemaText;

/// The approximate size of a request besides its messages, in bytes. Most of it is the schema.
const FRAME_BYTES: usize = 4096;

/// The approximate size of a message besides its content, in bytes.
const MESSAGE_BYTES: usize = 32;

/// A request for a chat completion.
#[derive(Serialize)]
pub(super) struct ChatRequest<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [Arc<Message>],
    pub(super) temperature: f64,
    pub(super) seed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) logprobs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_logprobs: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(flatten)]
    pub(super) further: &'a Map<String, Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseFormat<'a> {
    JsonSchema { json_schema: NamedSchema<'a> },
    JsonObject,
}

#[derive(Serialize)]
pub(super) struct NamedSchema<'a> {
    pub(super) name: &'a str,
    pub(super) strict: bool,
    pub(super) schema: &'a SchemaText,
}

#[derive(Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

impl ChatRequest<'_> {
    /// Returns the bytes, written into room for all of them. Growing on the way cost more than writing.
    pub(super) fn body(&self) -> Vec<u8> {
        let messages: usize = self.messages.iter().map(|message| message.content.len() + MESSAGE_BYTES).sum();
        let mut body = Vec::with_capacity(messages + messages / 8 + FRAME_BYTES);
        serde_json::to_writer(&mut body, self).expect("texts, numbers and JSON are JSON");
        body
    }
}

/// A whole completion, or one chunk of a streamed one.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Body {
    pub(super) choices: Vec<Choice>,
    #[serde(deserialize_with = "usage")]
    pub(super) usage: Option<WireUsage>,
    pub(super) error: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) system_fingerprint: Option<String>,
    /// The time of creation, in seconds since 1970.
    #[serde(deserialize_with = "lenient")]
    pub(super) created: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    /// The message of a whole completion.
    pub(super) message: Option<Delta>,
    /// The message of a chunk.
    pub(super) delta: Option<Delta>,
    #[serde(deserialize_with = "lenient")]
    pub(super) finish_reason: Option<String>,
    #[serde(deserialize_with = "logprobs")]
    pub(super) logprobs: Option<Logprobs>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    pub(super) content: Option<Content>,
    pub(super) refusal: Option<String>,
    /// The reasoning, as llama.cpp, DeepSeek and older vLLM name it.
    pub(super) reasoning_content: Option<String>,
    /// The reasoning, as newer vLLM, OpenRouter and Ollama name it.
    pub(super) reasoning: Option<String>,
}

/// The text of a reply: whole, or in parts, of which only the text parts count.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Whole(String),
    Parts(Vec<ContentPart>),
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ContentPart {
    text: Option<String>,
}

impl Content {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    /// The cost in US dollars, as OpenRouter reports it.
    pub(super) cost: Option<f64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Option<u64>,
}

/// Reads figures. A reply is not lost because its figures cannot be read.
fn usage<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<WireUsage>, D::Error> {
    lenient(deserializer)
}

fn logprobs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Logprobs>, D::Error> {
    lenient(deserializer)
}

fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// A list of models.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Models {
    pub(super) data: Vec<Model>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Model {
    pub(super) id: String,
    /// The owner of the model. Servers name themselves here.
    pub(super) owned_by: Option<String>,
    /// The context length, as vLLM reports it.
    pub(super) max_model_len: Option<u64>,
    /// Further data, as llama.cpp reports it.
    pub(super) meta: Option<ModelMeta>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelMeta {
    pub(super) n_ctx: Option<u64>,
    pub(super) n_ctx_train: Option<u64>,
}
