//! The JSON of a request for a chat completion, and of a list of models.
//!
//! Incoming types ignore unknown fields on purpose, because every server adds some.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use protocol::Message;
use protocol::text::schema::SchemaText;

/// The approximate size of a request besides its messages, in bytes. Most of it is the schema.
const FRAME_BYTES: usize = 4096;

/// The approximate size of a message besides its content, in bytes.
const MESSAGE_BYTES: usize = 32;

/// A request for a chat completion.
#[derive(Serialize)]
pub(super) struct ChatRequest<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [Arc<Message>],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u32>,
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
    pub(super) stream_options: Option<Value>,
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

impl ChatRequest<'_> {
    /// Returns the bytes, written into room for all of them. Growing on the way cost more than writing.
    pub(super) fn body(&self) -> Vec<u8> {
        let messages: usize = self.messages.iter().map(|message| message.content.len() + MESSAGE_BYTES).sum();
        let mut body = Vec::with_capacity(messages + messages / 8 + FRAME_BYTES);
        serde_json::to_writer(&mut body, self).expect("texts, numbers and JSON are JSON");
        body
    }
}

/// A list of models.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Models {
    pub(super) data: Vec<ListedModel>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename = "Model")]
pub(super) struct ListedModel {
    pub(super) id: String,
    /// The model behind the name, as vLLM reports it.
    pub(super) root: Option<String>,
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
