//! A request for a chat completion, as clients of OpenAI's interface write it.
//!
//! The input is the body of a request. The output is a task and how it is to be answered, or the field that is to blame. The last message
//! of the user is the task. Earlier messages are data that the task may refer to, whatever their role: a caller's text never becomes an
//! instruction of the protocol. Settings of one sample, such as the temperature, belong to the roleset, and are ignored.

use serde::Deserialize;
use serde_json::{Value, json};

use super::api_error::ApiError;
use crate::crypto::Digest;
use crate::protocol::Document;
use crate::text::{CanonicalKind, CanonicalRule};

/// The name of the document with the earlier messages of a conversation.
const CONVERSATION: &str = "earlier in this conversation";

/// The name of the document with the caller's general instructions.
const SYSTEM: &str = "notes of the application";

/// The end of a message about a field that this server has no use for.
const TOOLS: &str = "agents that agree on a text call no tools; send `tools` to a single model, and its findings to this server";

/// The beginning of the name of each model.
pub(super) const PREFIX: &str = "consensus/";

/// The longest name of a model, in bytes.
const MODEL_BYTES_MAX: usize = 256;

/// The number of seeds. Larger numbers are not the same in every reader of JSON.
const SEEDS: i64 = 1 << 52;

/// The most choices of an answer.
const CHOICES_MAX: usize = 1000;

/// A task, and how it is to be answered.
#[derive(Clone, Debug)]
pub(super) struct ChatCompletionRequest {
    /// The name of the model: a roleset, and where it says so its model.
    pub(super) model: String,
    /// The task.
    pub(super) prompt: String,
    /// The data of the task.
    pub(super) documents: Vec<Document>,
    /// The rule for which differences between texts do not count, if it is not that of the roleset.
    pub(super) canonical: Option<CanonicalRule>,
    /// The seed.
    pub(super) seed: Option<u64>,
    /// The most tokens of one reply.
    pub(super) reply_tokens: Option<u32>,
    /// Whether the answer is sent as a stream.
    pub(super) stream: bool,
    /// Whether a stream ends with the usage.
    pub(super) include_usage: bool,
}

/// The body, as it is written. Clients send many fields that mean nothing here, and servers ignore fields that they do not know.
#[derive(Deserialize)]
struct Body {
    model: String,
    messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    max_completion_tokens: Option<u32>,
    #[serde(default)]
    n: Option<u32>,
    #[serde(default)]
    logprobs: Option<bool>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    functions: Option<Vec<Value>>,
    #[serde(default)]
    response_format: Option<ResponseFormat>,
    #[serde(default)]
    consensus: Option<Extension>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema,
}

/// The wishes that only this server understands. A mistake in them is not ignored.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extension {
    #[serde(default)]
    choices: Vec<String>,
    #[serde(default)]
    canonical: Option<CanonicalKind>,
}

#[derive(Deserialize)]
struct Message {
    role: Role,
    #[serde(default)]
    content: Option<Content>,
    /// The reason that an earlier answer gave in place of a text.
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Whole(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl ChatCompletionRequest {
    /// Returns the SHA-256 of what decides about the run. Whether its answer is streamed does not.
    pub(super) fn digest(&self) -> Digest {
        let Self { model, prompt, documents, canonical, seed, reply_tokens, stream: _, include_usage: _ } =
            self;
        let model = model.strip_prefix(PREFIX).unwrap_or(model);
        Digest::new(json!([model, prompt, documents, canonical, seed, reply_tokens]).to_string().as_bytes())
    }

    /// Reads the body of a request.
    pub(super) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body: Body = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(body))
            .map_err(|why| unreadable(&why))?;
        if body.model.len() > MODEL_BYTES_MAX || body.model.contains(char::is_control) {
            return Err(ApiError::field(
                "model",
                "the name of a model has 256 bytes at most, all of them visible",
            ));
        }
        let is_list = |list: &Option<Vec<Value>>| list.as_ref().is_some_and(|list| !list.is_empty());
        for (field, list) in [("tools", &body.tools), ("functions", &body.functions)] {
            if is_list(list) {
                return Err(ApiError::field(field, TOOLS));
            }
        }
        if body.n.is_some_and(|n| n != 1) {
            return Err(ApiError::field("n", "an agreement is one answer; leave `n` out"));
        }
        if body.logprobs == Some(true) {
            return Err(ApiError::field(
                "logprobs",
                "an agreement has no token probabilities; leave `logprobs` out",
            ));
        }
        let canonical = canonical(body.response_format.as_ref(), body.consensus.unwrap_or_default())?;
        let reply_tokens = body.max_completion_tokens.or(body.max_tokens);
        if reply_tokens == Some(0) {
            return Err(ApiError::field("max_completion_tokens", "a reply of no tokens is no reply"));
        }
        let (prompt, documents) = conversation(body.messages)?;
        Ok(Self {
            model: body.model,
            prompt,
            documents,
            canonical,
            seed: body.seed.map(|seed| seed.rem_euclid(SEEDS).unsigned_abs()),
            reply_tokens,
            stream: body.stream.unwrap_or_default(),
            include_usage: body.stream_options.is_some_and(|options| options.include_usage),
        })
    }
}

/// Returns the error for a body that cannot be read, with the field that is to blame.
fn unreadable(why: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let (field, inner) = (why.path().to_string(), why.inner());
    let is_form = inner.is_data() && field != ".";
    let what = format!("the request cannot be read: {inner}");
    if is_form { ApiError::field(&field, what) } else { ApiError::bad("invalid_json", what) }
}

/// Returns the rule for which differences between texts do not count, if the request has one.
fn canonical(
    format: Option<&ResponseFormat>,
    Extension { choices, canonical }: Extension,
) -> Result<Option<CanonicalRule>, ApiError> {
    let kind = match format {
        Some(ResponseFormat::JsonSchema) => {
            let why = "agents cannot be held to a schema of the caller yet; use `json_object`, and describe the form in the task";
            return Err(ApiError::field("response_format", why));
        }
        Some(ResponseFormat::JsonObject) => Some(CanonicalKind::Json),
        Some(ResponseFormat::Text) | None => None,
    };
    let is_twice =
        |(at, choice): (usize, &String)| choices[..at].contains(choice) || choice.trim().is_empty();
    if choices.len() > CHOICES_MAX || choices.iter().enumerate().any(is_twice) {
        let why = format!("the choices are {CHOICES_MAX} different texts at most, none of them empty");
        return Err(ApiError::field("consensus.choices", why));
    }
    match (kind, canonical, choices.is_empty()) {
        (Some(_), None, true) => Ok(kind.map(Into::into)),
        (Some(_), ..) => {
            Err(ApiError::field("consensus", "`response_format` already says what form the answer has"))
        }
        (None, None | Some(CanonicalKind::Choice), false) => {
            Ok(Some(CanonicalRule { kind: CanonicalKind::Choice, choices, decimal: None }))
        }
        (None, Some(CanonicalKind::Choice), true) => {
            Err(ApiError::field("consensus.choices", "an answer of kind `choice` needs `choices`"))
        }
        (None, Some(_), false) => {
            Err(ApiError::field("consensus.choices", "`choices` go with the kind `choice` alone"))
        }
        (None, canonical, true) => Ok(canonical.map(Into::into)),
    }
}

/// Returns the task of a conversation, and its data.
fn conversation(messages: Vec<Message>) -> Result<(String, Vec<Document>), ApiError> {
    let mut texts = Vec::new();
    for (at, Message { role, content, refusal }) in messages.into_iter().enumerate() {
        let said = text(at, content)?;
        texts.push((role, if said.is_empty() { refusal.unwrap_or_default() } else { said }));
    }
    let Some((Role::User, prompt)) = texts.pop() else {
        return Err(ApiError::field("messages", "the last message is to be the user's, which is the task"));
    };
    if prompt.trim().is_empty() {
        return Err(ApiError::field("messages", "the last message of the user is empty"));
    }
    let is_general = |role: Role| matches!(role, Role::System | Role::Developer);
    let general: Vec<&str> =
        texts.iter().filter(|(role, _)| is_general(*role)).map(|(_, text)| text.as_str()).collect();
    let earlier = texts.iter().filter(|(role, _)| !is_general(*role));
    let earlier: Vec<String> = earlier.map(|(role, text)| format!("{}: {text}", speaker(*role))).collect();
    let document =
        |name: &str, text: String| Document { name: name.to_owned(), text: text.into(), redacted: false };
    let parts = [(SYSTEM, general.join("\n\n")), (CONVERSATION, earlier.join("\n\n"))];
    let documents = parts.into_iter().filter(|(_, text)| !text.trim().is_empty());
    Ok((prompt, documents.map(|(name, text)| document(name, text)).collect()))
}

fn speaker(role: Role) -> &'static str {
    match role {
        Role::System | Role::Developer => "Application",
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::Tool | Role::Function => "Tool",
    }
}

/// Returns the text of a message.
fn text(at: usize, content: Option<Content>) -> Result<String, ApiError> {
    let parts = match content {
        None => return Ok(String::new()),
        Some(Content::Whole(text)) => return Ok(text),
        Some(Content::Parts(parts)) => parts,
    };
    let text = |part: Part| match part {
        Part { kind, text, refusal } if kind == "text" || kind == "refusal" => {
            Ok(text.or(refusal).unwrap_or_default())
        }
        Part { kind, .. } => {
            let why = format!(
                "a part of the type `{}` cannot be read; send text",
                crate::text::escape::excerpt(&kind)
            );
            Err(ApiError::field(&format!("messages[{at}].content"), why))
        }
    };
    parts.into_iter().map(text).collect::<Result<Vec<String>, ApiError>>().map(|texts| texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &Value) -> Result<ChatCompletionRequest, ApiError> {
        ChatCompletionRequest::parse(body.to_string().as_bytes())
    }

    #[test]
    fn the_last_message_is_the_task_and_all_others_are_data() {
        let request = parse(&json!({"model": "m", "temperature": 2, "user": "u", "tools": [], "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
            {"role": "assistant", "content": "Hi"},
            {"role": "user", "content": "2+2?"},
        ]}));
        let request = request.unwrap();
        assert_eq!(request.prompt, "2+2?");
        let documents: Vec<(&str, &str)> =
            request.documents.iter().map(|document| (document.name.as_str(), &*document.text)).collect();
        assert_eq!(documents, [(SYSTEM, "Be brief."), (CONVERSATION, "User: Hello\n\nAssistant: Hi")]);
    }

    #[test]
    fn a_field_that_cannot_be_honoured_is_refused_by_its_name() {
        let ask = json!([{"role": "user", "content": "2+2?"}]);
        for (field, body) in [
            ("tools", json!({"model": "m", "messages": ask, "tools": [{"type": "function"}]})),
            ("n", json!({"model": "m", "messages": ask, "n": 2})),
            ("logprobs", json!({"model": "m", "messages": ask, "logprobs": true})),
            ("max_completion_tokens", json!({"model": "m", "messages": ask, "max_tokens": 0})),
            (
                "response_format",
                json!({"model": "m", "messages": ask, "response_format": {"type": "json_schema"}}),
            ),
            ("messages", json!({"model": "m", "messages": []})),
            ("messages", json!({"model": "m", "messages": [{"role": "assistant", "content": "4"}]})),
            (
                "messages[0].content",
                json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            ),
            (
                "consensus.choices",
                json!({"model": "m", "messages": ask, "consensus": {"canonical": "choice"}}),
            ),
        ] {
            let why = parse(&body).expect_err(field).to_json();
            assert_eq!(why["error"]["param"], field, "{why}");
        }
        let why =
            parse(&json!({"model": "m", "messages": ask, "consensus": {"choises": ["A"]}})).unwrap_err();
        assert!(why.to_string().contains("choises"), "{why}");
    }
}
