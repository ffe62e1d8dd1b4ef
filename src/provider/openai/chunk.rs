//! One part of a reply as servers send it: a whole completion, or one chunk of a stream.
//!
//! The input is its JSON. The output is a [`ReplyPart`], or the reason why it cannot be used. A part is taken only
//! in the forms that are listed here. Fields of other names are ignored, because every server adds some, unless they
//! report an error.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::{Doubled, ObjectFields, Wtf8};
use super::logprobs::{Logprobs, Token};
use crate::provider::ending::finish;
use crate::provider::failure::{Failure, has_error, may_pass};
use crate::provider::secret::Secrets;
use protocol::Finish;
use protocol::text::escape;

/// A part of a reply.
#[derive(Default)]
pub(super) struct ReplyPart {
    pub(super) choice: Option<Choice>,
    pub(super) usage: Option<WireUsage>,
    pub(super) id: Option<String>,
    pub(super) system_fingerprint: Option<String>,
    /// The model that answers.
    pub(super) model: Option<String>,
    /// The time of creation, in seconds since 1970.
    pub(super) created: Option<u64>,
}

/// The first choice of a part. Only one is ever asked for.
#[derive(Default)]
pub(super) struct Choice {
    /// The message of a whole completion.
    pub(super) message: Option<Words>,
    /// The words that a chunk adds.
    pub(super) delta: Option<Words>,
    pub(super) finish: Option<Finish>,
    pub(super) tokens: Vec<Token>,
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

/// The reason why a part of a reply cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// The part has another form.
    Form(String),
    /// The part ends too early, or says two things.
    Damaged(String),
    /// The part is an error, inside an answer that began well.
    Failed(Failure),
}

/// Reads a whole completion or one chunk. Keys are removed from the excerpt of an unusable one.
pub(super) fn read(json: &str, secrets: &Secrets) -> Result<ReplyPart, Unusable> {
    // Some programs begin every text with this mark.
    let json = json.trim_start_matches('\u{FEFF}');
    let fields: ObjectFields<'_> = serde_json::from_str(json).map_err(|error| {
        let clean = secrets.in_message(json);
        if error.is_eof() {
            let excerpt = escape::excerpt(&clean);
            return Unusable::Damaged(format!("it is not a chat completion ({error}): `{excerpt}`"));
        }
        explain(&clean)
    })?;
    let failed = || Unusable::Failed(Failure::of_text(&secrets.in_message(json)));
    if reports_error(&fields) || !fields.has("choices") && !fields.has("usage") {
        return Err(failed());
    }
    let mut part = ReplyPart {
        choice: None,
        usage: fields.lenient("usage"),
        id: fields.lenient("id"),
        system_fingerprint: fields.lenient("system_fingerprint"),
        model: fields.lenient("model"),
        created: fields.lenient("created"),
    };
    let Some(choices) = fields.get("choices")? else { return Ok(part) };
    let choices: Vec<&RawValue> = typed("choices", choices)?;
    let Some(first) = choices.first() else { return Ok(part) };
    let choice: ObjectFields<'_> = typed("choices[0]", first)?;
    if reports_error(&choice) {
        return Err(failed());
    }
    let words = |name: &'static str| -> Result<Option<Words>, Unusable> {
        let Some(value) = choice.get(name)? else { return Ok(None) };
        let fields: ObjectFields<'_> = typed(name, value)?;
        if reports_error(&fields) {
            return Err(failed());
        }
        Ok(Some(read_words(&fields)?))
    };
    let logprobs: Option<Logprobs> = choice.lenient("logprobs");
    part.choice = Some(Choice {
        message: words("message")?,
        delta: words("delta")?,
        finish: read_finish(&choice)?,
        tokens: logprobs.and_then(|logprobs| logprobs.content).unwrap_or_default(),
    });
    Ok(part)
}

/// Returns what is wrong with a text that is no part of a reply: a server's or a gateway's error in any form.
pub(super) fn explain(text: &str) -> Unusable {
    // Older versions of llama.cpp name the field of an event `error`.
    let object = text.find('{').map_or("", |start| text[start..].lines().next().unwrap_or_default());
    if serde_json::from_str::<Value>(object).is_ok() {
        return Unusable::Failed(Failure::of_text(object));
    }
    if may_pass(text) {
        return Unusable::Failed(Failure::of_text(text));
    }
    Unusable::Form(format!("it is not a chat completion: `{}`", escape::excerpt(text)))
}

/// Returns true if an object says that something went wrong.
fn reports_error(fields: &ObjectFields<'_>) -> bool {
    has_error(|name| fields.lenient(name).unwrap_or_default())
}

/// Returns the reason for the end, if the reply ends here.
fn read_finish(choice: &ObjectFields<'_>) -> Result<Option<Finish>, Unusable> {
    let Some(value) = choice.get("finish_reason")? else { return Ok(None) };
    let value: Value = typed("finish_reason", value)?;
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
        return Err(Unusable::Failed(Failure { status: None, message, may_pass: true }));
    }
    Err(Unusable::Damaged(message))
}

/// Returns the words of a message or of a chunk.
fn read_words(fields: &ObjectFields<'_>) -> Result<Words, Unusable> {
    let mut words = Words::default();
    if let Some(content) = fields.get("content")? {
        read_content(content, &mut words)?;
    }
    // llama.cpp, DeepSeek and older vLLM use the first name; newer vLLM, OpenRouter and Ollama use the second.
    let reasoning =
        ["reasoning_content", "reasoning"].into_iter().find_map(|name| fields.lenient::<Wtf8>(name));
    words.reasoning.extend(reasoning.map(|text| text.0).unwrap_or_default());
    if let Some(refusal) = fields.get("refusal")? {
        words.is_refused |= !typed::<String>("refusal", refusal)?.is_empty();
    }
    Ok(words)
}

/// Reads the content of a message: a text, or parts, of which only the texts count.
fn read_content(content: &RawValue, words: &mut Words) -> Result<(), Unusable> {
    if content.get().starts_with('"') {
        words.content = typed::<Wtf8>("content", content)?.0;
        return Ok(());
    }
    let parts: Vec<ObjectFields<'_>> = typed("content", content)?;
    for part in parts {
        let kind = part.lenient::<String>("type");
        match kind.as_deref() {
            None | Some("text" | "output_text") => {
                if let Some(text) = part.get("text")? {
                    words.content.extend(typed::<Wtf8>("text", text)?.0);
                }
            }
            Some("refusal") => words.is_refused = true,
            // Mistral writes thoughts and the places that it quotes as parts.
            Some("thinking" | "reasoning" | "reference") => {}
            Some(kind) => {
                let why = format!("it has content of the type `{}`, which is no text", escape::excerpt(kind));
                return Err(Unusable::Form(why));
            }
        }
    }
    Ok(())
}

/// Reads a value on which the answer depends.
fn typed<'a, T: Deserialize<'a>>(name: &str, value: &'a RawValue) -> Result<T, Unusable> {
    let read = serde_json::from_str(value.get());
    read.map_err(|error| Unusable::Form(format!("it is not a chat completion (`{name}`: {error})")))
}

impl From<Doubled> for Unusable {
    fn from(doubled: Doubled) -> Self {
        Self::Damaged(doubled.to_string())
    }
}
