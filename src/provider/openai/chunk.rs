//! One part of a reply as servers send it: a whole completion, or one chunk of a stream.
//!
//! The input is its JSON. The output is a [`ReplyPart`], or the reason why it cannot be used. A part is taken only
//! in the forms that are listed here. Fields of other names are ignored, because every server adds some, unless they
//! report an error.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::{ObjectFields, ReplyFault, Wtf8};
use super::logprobs::{Logprobs, Token};
use crate::provider::ending::finish;
use crate::provider::failure::{ServerFailure, has_error, may_pass};
use crate::provider::secret::Secrets;
use protocol::Finish;
use protocol::text::escape;

/// A part of a reply, with its first choice. Only one is ever asked for.
#[derive(Default)]
pub(super) struct ReplyPart {
    pub(super) has_choice: bool,
    /// The message of a whole completion.
    pub(super) message: Option<Words>,
    /// The words that a chunk adds.
    pub(super) delta: Option<Words>,
    pub(super) finish: Option<Finish>,
    pub(super) tokens: Vec<Token>,
    pub(super) usage: Option<WireUsage>,
    pub(super) id: Option<String>,
    pub(super) system_fingerprint: Option<String>,
    /// The model that answers.
    pub(super) model: Option<String>,
    /// The time of creation, in seconds since 1970.
    pub(super) created: Option<u64>,
}

/// The words of a model. A text may begin or end in the middle of a character; see [`Wtf8`].
#[derive(Default)]
pub(super) struct Words {
    pub(super) content: Vec<u8>,
    pub(super) reasoning: Vec<u8>,
    pub(super) is_refused: bool,
}

/// The counts of tokens.
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

/// Reads a whole completion or one chunk. Keys are removed from the excerpt of an unusable one.
pub(super) fn read(json: &str, secrets: &Secrets) -> Result<ReplyPart, ReplyFault> {
    // Some programs begin every text with this mark.
    let json = json.trim_start_matches('\u{FEFF}');
    let fields: ObjectFields<'_> = serde_json::from_str(json).map_err(|error| {
        let clean = secrets.in_message(json);
        if error.is_eof() {
            let excerpt = escape::excerpt(&clean);
            return ReplyFault::Damaged(format!("it is not a chat completion ({error}): `{excerpt}`"));
        }
        explain(&clean)
    })?;
    if reports_error(&fields) || !fields.has("choices") && !fields.has("usage") {
        return Err(read_error(json, secrets));
    }
    let mut part = ReplyPart {
        usage: fields.lenient("usage"),
        id: fields.lenient("id"),
        system_fingerprint: fields.lenient("system_fingerprint"),
        model: fields.lenient("model"),
        created: fields.lenient("created"),
        ..ReplyPart::default()
    };
    let Some(choices) = fields.get("choices")? else { return Ok(part) };
    let choices: Vec<&RawValue> = read_typed("choices", choices)?;
    let Some(first) = choices.first() else { return Ok(part) };
    let choice: ObjectFields<'_> = read_typed("choices[0]", first)?;
    if reports_error(&choice) {
        return Err(read_error(json, secrets));
    }
    let logprobs: Option<Logprobs> = choice.lenient("logprobs");
    part.has_choice = true;
    for (name, words) in [("message", &mut part.message), ("delta", &mut part.delta)] {
        let Some(value) = choice.get(name)? else { continue };
        let fields: ObjectFields<'_> = read_typed(name, value)?;
        if reports_error(&fields) {
            return Err(read_error(json, secrets));
        }
        *words = Some(read_words(&fields)?);
    }
    part.finish = read_finish(&choice)?;
    part.tokens = logprobs.and_then(|logprobs| logprobs.content).unwrap_or_default();
    Ok(part)
}

/// Reads the error that a part holds.
fn read_error(json: &str, secrets: &Secrets) -> ReplyFault {
    ReplyFault::Failed(ServerFailure::of_text(&secrets.in_message(json)))
}

/// Returns what is wrong with a text that is no part of a reply: a server's or a gateway's error in any form.
pub(super) fn explain(text: &str) -> ReplyFault {
    // Older versions of llama.cpp name the field of an event `error`.
    let object = text.find('{').map_or("", |start| text[start..].lines().next().unwrap_or_default());
    if serde_json::from_str::<Value>(object).is_ok() {
        return ReplyFault::Failed(ServerFailure::of_text(object));
    }
    if may_pass(text) {
        return ReplyFault::Failed(ServerFailure::of_text(text));
    }
    ReplyFault::Form(format!("it is not a chat completion: `{}`", escape::excerpt(text)))
}

/// Returns true if an object says that something went wrong.
fn reports_error(fields: &ObjectFields<'_>) -> bool {
    has_error(|name| fields.lenient(name).unwrap_or_default())
}

/// Returns the reason for the end, if the reply ends here.
fn read_finish(choice: &ObjectFields<'_>) -> Result<Option<Finish>, ReplyFault> {
    let Some(value) = choice.get("finish_reason")? else { return Ok(None) };
    let value: Value = read_typed("finish_reason", value)?;
    // SGLang writes an object with the reason as its type.
    let reason = value.as_str().or_else(|| value["type"].as_str());
    if reason.is_some_and(|reason| reason.is_empty() || reason == "null") {
        return Ok(None);
    }
    if let Some(finish) = reason.and_then(finish) {
        return Ok(Some(finish));
    }
    let reason = reason.map_or_else(|| value.to_string(), str::to_owned);
    let message =
        format!("it ended for the reason `{}`, which ends no whole reply", escape::excerpt(&reason));
    if may_pass(&reason) {
        return Err(ReplyFault::Failed(ServerFailure { status: None, message, may_pass: true }));
    }
    Err(ReplyFault::Damaged(message))
}

/// Returns the words of a message or of a chunk.
fn read_words(fields: &ObjectFields<'_>) -> Result<Words, ReplyFault> {
    let mut words = Words::default();
    if let Some(content) = fields.get("content")? {
        read_content(content, &mut words)?;
    }
    // llama.cpp, DeepSeek and older vLLM use the first name; newer vLLM, OpenRouter and Ollama use the second.
    let reasoning =
        ["reasoning_content", "reasoning"].into_iter().find_map(|name| fields.lenient::<Wtf8>(name));
    words.reasoning.extend(reasoning.map(|text| text.0).unwrap_or_default());
    if let Some(refusal) = fields.get("refusal")? {
        words.is_refused |= !read_typed::<String>("refusal", refusal)?.is_empty();
    }
    Ok(words)
}

/// Reads the content of a message: a text, or parts, of which only the texts count.
fn read_content(content: &RawValue, words: &mut Words) -> Result<(), ReplyFault> {
    if content.get().starts_with('"') {
        words.content = read_typed::<Wtf8>("content", content)?.0;
        return Ok(());
    }
    let parts: Vec<ObjectFields<'_>> = read_typed("content", content)?;
    for part in parts {
        let kind = part.lenient::<String>("type");
        match kind.as_deref() {
            None | Some("text" | "output_text") => {
                if let Some(text) = part.get("text")? {
                    words.content.extend(read_typed::<Wtf8>("text", text)?.0);
                }
            }
            Some("refusal") => words.is_refused = true,
            // Mistral writes thoughts and the places that it quotes as parts.
            Some("thinking" | "reasoning" | "reference") => {}
            Some(kind) => {
                let why = format!("it has content of the type `{}`, which is no text", escape::excerpt(kind));
                return Err(ReplyFault::Form(why));
            }
        }
    }
    Ok(())
}

/// Reads a value on which the answer depends.
fn read_typed<'a, T: Deserialize<'a>>(name: &str, value: &'a RawValue) -> Result<T, ReplyFault> {
    let read = serde_json::from_str(value.get());
    read.map_err(|error| ReplyFault::Form(format!("it is not a chat completion (`{name}`: {error})")))
}
