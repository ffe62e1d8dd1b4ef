//! The run that a request asks for, in whatever form the request came.
//!
//! The input is the messages of a conversation and the caller's wishes. The output is a task with its data, or the field that is to blame.
//! The last message of the user is the task. Earlier messages are data that the task may refer to, whatever their role: a caller's text
//! never becomes an instruction of the protocol.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::config::micro_usd;
use crate::journal::Limits;
use crate::serve::http::ApiError;
use crate::serve::runs::PREFIX;
use crypto::Digest;
use protocol::core::BasisPoints;
use protocol::text::{AnswerSchema, CanonicalKind, CanonicalRule, escape};
use protocol::{Document, OnDisagreement};

/// The name of the document with the earlier messages of a conversation.
const CONVERSATION: &str = "earlier in this conversation";

/// The name of the document with the caller's general instructions.
const SYSTEM: &str = "notes of the application";

/// The message about tools.
const TOOLS: &str = "agents that agree on a text call no tools; send `tools` to a single model, and its findings to this server";

/// The longest name of a model, in bytes.
const MODEL_BYTES_MAX: usize = 256;

/// The number of seeds. Larger numbers are not the same in every reader of JSON.
const SEEDS: i64 = 1 << 52;

/// The most choices of an answer.
const CHOICES_MAX: usize = 1000;

/// What a request asks for, before its roleset and its models are known.
#[derive(Clone, Debug, Default)]
pub(in crate::serve) struct RequestedRun {
    /// The name of the model: a roleset, and where it says so its model.
    pub(in crate::serve) model: String,
    /// Whether the task is to review a change.
    pub(in crate::serve) is_review: bool,
    pub(in crate::serve) prompt: String,
    /// The data of the task.
    pub(in crate::serve) documents: Vec<Document>,
    /// The rule for which differences between texts do not count, if it is not that of the roleset.
    pub(in crate::serve) canonical: Option<CanonicalRule>,
    /// The answer of a vote that does not settle, if it is not that of the roleset.
    pub(in crate::serve) on_disagreement: Option<OnDisagreement>,
    /// Whether rules that the task states in plain words are left unchecked.
    pub(in crate::serve) no_demands: bool,
    /// The least confidence of an answer that is given, if the caller asks for one.
    pub(in crate::serve) min_confidence: Option<BasisPoints>,
    /// The most that the run may use.
    pub(in crate::serve) limits: Limits,
    /// The schema of the answer, if the caller gives one.
    pub(in crate::serve) schema: Option<AnswerSchema>,
    pub(in crate::serve) seed: Option<u64>,
    /// The most tokens of one reply.
    pub(in crate::serve) reply_tokens: Option<u32>,
}

/// The wishes that only this server understands. A mistake in them is not ignored.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(in crate::serve) struct Extension {
    /// The allowed answers.
    #[serde(default)]
    #[schema(min_items = 1)]
    choices: Option<Vec<String>>,
    /// The kind of the answer, which says which differences between texts do not count.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "number")]
    canonical: Option<CanonicalKind>,
    /// The answer of a vote that does not settle: `abstain` for none, or `leader`.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "leader")]
    on_disagreement: Option<OnDisagreement>,
    /// Whether rules that the task states in plain words, such as "in three sentences", are checked; true if absent.
    #[serde(default)]
    inferred_constraints: Option<bool>,
    /// The least confidence of an answer that is given, 0 to 1, where the server has a calibration.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    min_confidence: Option<f64>,
    /// The most that the run may use, within the limits of the server.
    #[serde(default)]
    budget: Option<GivenBudget>,
}

/// The most that a run may use.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(super) struct GivenBudget {
    /// The tokens of all calls, of prompts and replies.
    #[serde(default)]
    tokens: Option<u64>,
    /// The cost of all calls, in US dollars.
    #[serde(default)]
    usd: Option<f64>,
}

/// The form that the answer is to have.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::serve) enum AnswerFormat {
    /// Any text.
    Text,
    /// A JSON object.
    JsonObject,
    /// JSON that a schema accepts.
    JsonSchema {
        /// The schema with its name, in requests for a chat completion.
        #[serde(default)]
        json_schema: Option<GivenSchema>,
        /// The name of the schema, in requests for a response.
        #[serde(default)]
        name: Option<String>,
        /// The schema, in requests for a response.
        #[serde(default)]
        #[schema(value_type = Option<Object>)]
        schema: Option<Value>,
    },
}

/// A schema with its name, which does not matter.
#[derive(Deserialize, ToSchema)]
pub(in crate::serve) struct GivenSchema {
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
}

/// The speaker of a message.
#[derive(Clone, Copy, Deserialize, Eq, PartialEq, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::serve) enum Speaker {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
}

/// The content of a message.
#[derive(Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a text or a list of parts")]
pub(in crate::serve) enum GivenContent {
    Whole(String),
    Parts(Vec<ContentPart>),
}

/// A part of a message.
#[derive(Deserialize, ToSchema)]
#[schema(as = Part)]
pub(in crate::serve) struct ContentPart {
    /// The type of the part: `text`, `input_text`, `output_text` or `refusal`.
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

/// A message of a conversation.
pub(in crate::serve) struct SpokenMessage {
    pub(in crate::serve) role: Speaker,
    pub(in crate::serve) text: String,
}

/// The settings that requests of each form have.
pub(in crate::serve) struct RunSettings<'a> {
    pub(in crate::serve) model: String,
    pub(in crate::serve) seed: Option<i64>,
    /// The most tokens of one reply.
    pub(in crate::serve) reply_tokens: Option<u32>,
    /// The name of the field with the most tokens.
    pub(in crate::serve) tokens_field: &'a str,
    /// The form of the answer.
    pub(in crate::serve) format: Option<AnswerFormat>,
    /// The name of the field with the form.
    pub(in crate::serve) format_field: &'a str,
    pub(in crate::serve) tools: Option<Vec<IgnoredAny>>,
    pub(in crate::serve) extension: Option<Extension>,
}

impl RequestedRun {
    /// Makes a run of settings and of a conversation, whose field in the request has this name.
    pub(in crate::serve) fn new(
        settings: RunSettings<'_>,
        messages: Vec<SpokenMessage>,
        field: &str,
    ) -> Result<Self, ApiError> {
        let RunSettings { model, seed, reply_tokens, tokens_field, format, format_field, tools, extension } =
            settings;
        require_name(&model, "model")?;
        if tools.is_some_and(|tools| !tools.is_empty()) {
            return Err(ApiError::field("tools", TOOLS));
        }
        if reply_tokens == Some(0) {
            return Err(ApiError::field(tokens_field, "a reply of no tokens is no reply"));
        }
        let kind = format.as_ref().and_then(AnswerFormat::kind);
        let Extension {
            choices,
            canonical: asked_kind,
            on_disagreement,
            inferred_constraints,
            min_confidence,
            budget,
        } = extension.unwrap_or_default();
        if choices.as_ref().is_some_and(Vec::is_empty) {
            return Err(ApiError::field("consensus.choices", "name the choices, or leave the field out"));
        }
        let canonical = canonical(kind, format_field, choices.unwrap_or_default(), asked_kind)?;
        let schema = format.map(|format| format.schema(format_field)).transpose()?.flatten();
        let (prompt, documents) = split_conversation(messages, field)?;
        let seed = seed.map(|seed| seed.rem_euclid(SEEDS).unsigned_abs());
        let min_confidence = min_confidence.map(BasisPoints::exactly).transpose();
        let min_confidence =
            min_confidence.map_err(|why| ApiError::field("consensus.min_confidence", why))?;
        Ok(Self {
            model,
            is_review: false,
            prompt,
            documents,
            canonical,
            on_disagreement,
            no_demands: inferred_constraints == Some(false),
            min_confidence,
            limits: budget.unwrap_or_default().limits()?,
            schema,
            seed,
            reply_tokens,
        })
    }

    /// Returns the SHA-256 of what decides about the run. Whether its answer is streamed does not.
    pub(in crate::serve) fn digest(&self) -> Digest {
        let Self {
            model,
            is_review,
            prompt,
            documents,
            canonical,
            on_disagreement,
            no_demands,
            min_confidence,
            limits,
            schema,
            seed,
            reply_tokens,
        } = self;
        let model = model.strip_prefix(PREFIX).unwrap_or(model);
        let mut of = vec![
            json!(model),
            json!(prompt),
            json!(documents),
            json!(canonical),
            json!(seed),
            json!(reply_tokens),
        ];
        of.extend(schema.as_ref().map(|schema| json!(schema)));
        if *is_review {
            of.push(json!("review"));
        }
        of.extend(on_disagreement.map(|answer| json!(["on_disagreement", answer])));
        if *no_demands {
            of.push(json!("no inferred constraints"));
        }
        of.extend(min_confidence.map(|least| json!(["min_confidence", least])));
        if *limits != Limits::default() {
            of.push(json!(["limits", limits]));
        }
        Digest::new(json!(of).to_string().as_bytes())
    }
}

impl GivenBudget {
    /// Returns the budget as limits of a run.
    fn limits(self) -> Result<Limits, ApiError> {
        let Self { tokens, usd } = self;
        let cost_micro_usd_max = usd.and_then(micro_usd);
        if usd.is_some() && cost_micro_usd_max.is_none() {
            let why = "a cost is a number of US dollars from 0 to 1e9";
            return Err(ApiError::field("consensus.budget.usd", why));
        }
        Ok(Limits { tokens_total_max: tokens, cost_micro_usd_max, deadline_ms: None })
    }
}

impl AnswerFormat {
    /// Returns the kind of the answer, if this says one.
    fn kind(&self) -> Option<CanonicalKind> {
        match self {
            Self::Text => None,
            Self::JsonObject | Self::JsonSchema { .. } => Some(CanonicalKind::Json),
        }
    }

    /// Returns the format as a response repeats it.
    pub(in crate::serve) fn to_json(&self) -> Value {
        match self {
            Self::Text => json!({"type": "text"}),
            Self::JsonObject => json!({"type": "json_object"}),
            Self::JsonSchema { name, schema, .. } => {
                json!({"type": "json_schema", "name": name.as_deref().unwrap_or("answer"), "schema": schema})
            }
        }
    }

    /// Returns the schema of the answer, if this gives one.
    fn schema(self, field: &str) -> Result<Option<AnswerSchema>, ApiError> {
        let schema = match self {
            Self::Text => return Ok(None),
            Self::JsonObject => Some(json!({"type": "object"})),
            Self::JsonSchema { json_schema, schema, .. } => {
                schema.or(json_schema.and_then(|named| named.schema))
            }
        };
        let why = "the type `json_schema` needs a `schema`";
        let schema = schema.ok_or_else(|| ApiError::field(field, why))?;
        AnswerSchema::try_from(schema).map(Some).map_err(|why| ApiError::field(field, why))
    }
}

/// Refuses a name that no model has.
pub(in crate::serve) fn require_name(model: &str, field: &str) -> Result<(), ApiError> {
    if model.len() > MODEL_BYTES_MAX || model.contains(char::is_control) {
        let why = "the name of a model has 256 bytes at most, all of them visible";
        return Err(ApiError::field(field, why));
    }
    Ok(())
}

/// Reads the body of a request. The error names the field that is to blame.
pub(in crate::serve) fn read_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let read = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(body));
    read.map_err(|why: serde_path_to_error::Error<serde_json::Error>| {
        let (field, inner) = (why.path().to_string(), why.inner());
        let is_form = inner.is_data() && field != ".";
        let what = format!("the request cannot be read: {inner}");
        if is_form { ApiError::field(&field, what) } else { ApiError::bad("invalid_json", what) }
    })
}

/// Returns the text of the content of a field.
pub(in crate::serve) fn read_text(content: Option<GivenContent>, field: &str) -> Result<String, ApiError> {
    let parts = match content {
        None => return Ok(String::new()),
        Some(GivenContent::Whole(text)) => return Ok(text),
        Some(GivenContent::Parts(parts)) => parts,
    };
    let mut texts = Vec::new();
    for ContentPart { kind, text, refusal } in parts {
        if !["text", "input_text", "output_text", "refusal"].contains(&kind.as_str()) {
            let why = format!("a part of the type `{}` cannot be read; send text", escape::excerpt(&kind));
            return Err(ApiError::field(field, why));
        }
        texts.push(text.or(refusal).unwrap_or_default());
    }
    Ok(texts.join("\n"))
}

/// Returns the rule for which differences between texts do not count, if the request has one.
fn canonical(
    kind: Option<CanonicalKind>,
    field: &str,
    choices: Vec<String>,
    canonical: Option<CanonicalKind>,
) -> Result<Option<CanonicalRule>, ApiError> {
    match kind {
        Some(kind) if choices.is_empty() && canonical.is_none() => Ok(Some(kind.into())),
        Some(_) => {
            Err(ApiError::field("consensus", format!("`{field}` already says what form the answer has")))
        }
        None => canonical_of(choices, canonical, "consensus."),
    }
}

/// Returns the rule of these choices, or of this kind. `of` is the place of both fields in the request.
pub(in crate::serve) fn canonical_of(
    choices: Vec<String>,
    canonical: Option<CanonicalKind>,
    of: &str,
) -> Result<Option<CanonicalRule>, ApiError> {
    let field = format!("{of}choices");
    if choices.len() > CHOICES_MAX
        || choices
            .iter()
            .enumerate()
            .any(|(at, choice)| choices[..at].contains(choice) || choice.trim().is_empty())
    {
        let why = format!("the choices are {CHOICES_MAX} different texts at most, none of them empty");
        return Err(ApiError::field(&field, why));
    }
    let why = match (canonical, choices.is_empty()) {
        (None | Some(CanonicalKind::Choice), false) => {
            return Ok(Some(CanonicalRule { kind: CanonicalKind::Choice, choices, decimal: None }));
        }
        (Some(CanonicalKind::Choice), true) => "an answer of kind `choice` needs `choices`",
        (Some(_), false) => "leave the kind of the answer out when you give `choices`",
        (canonical, true) => return Ok(canonical.map(Into::into)),
    };
    Err(ApiError::field(&field, why))
}

/// Returns the task of a conversation, and its data.
fn split_conversation(
    mut messages: Vec<SpokenMessage>,
    field: &str,
) -> Result<(String, Vec<Document>), ApiError> {
    let Some(SpokenMessage { role: Speaker::User, text: prompt }) = messages.pop() else {
        return Err(ApiError::field(field, "the last message is to be the user's, which is the task"));
    };
    if prompt.trim().is_empty() {
        return Err(ApiError::field(field, "the last message of the user is empty"));
    }
    let (mut general, mut earlier) = (Vec::new(), Vec::new());
    for SpokenMessage { role, text } in messages {
        match role {
            Speaker::System | Speaker::Developer => general.push(text),
            Speaker::User => earlier.push(format!("User: {text}")),
            Speaker::Assistant => earlier.push(format!("Assistant: {text}")),
            Speaker::Tool | Speaker::Function => earlier.push(format!("Tool: {text}")),
        }
    }
    let mut documents = Vec::new();
    for (name, texts) in [(SYSTEM, general), (CONVERSATION, earlier)] {
        let text = texts.join("\n\n");
        if !text.trim().is_empty() {
            documents.push(Document { name: name.to_owned(), text: text.into(), redacted: false });
        }
    }
    Ok((prompt, documents))
}
