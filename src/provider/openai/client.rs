//! Chat completions: one request, and the reply that is built from its answer.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use sse_stream::SseStream;

use super::answer::CollectedChunks;
use super::chunk;
use super::fields::ReplyFault;
use super::wire::{ChatRequest, NamedSchema, ResponseFormat};
use crate::files::{SMALL_BYTES_MAX, read_text};
use crate::provider::completion::{CallProgress, Completion, OnProgress, PartialText};
use crate::provider::failure::ServerFailure;
use crate::provider::http::{Http, StreamFault, bearer};
use crate::provider::load::{Admission, Permit};
use crate::provider::receipt::ReceiptParts;
use crate::provider::{Flow, ProviderError};
use protocol::core::{OpenAiEndpoint, OptionalParameter, PRESETS, Structured, Timeouts};
use protocol::{Ask, ReplyShape};

/// The parts of a request in which servers differ.
#[derive(Clone, Copy)]
pub(super) struct RequestForm<'a> {
    /// The form of structured output; `None` if free text is wanted.
    pub(super) structured: Option<Structured>,
    /// Whether `max_completion_tokens` takes the place of `max_tokens`.
    pub(super) new_limit_name: bool,
    /// The field whose probability is asked for.
    pub(super) measured: Option<&'static str>,
    /// The parameters that are left out.
    pub(super) left_out: &'a BTreeSet<OptionalParameter>,
}

/// The known behaviour of a server. A form that it refuses is not tried again, by any run that shares the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// The strongest form of structured output that the server has not refused.
    pub(super) structured: Structured,
    /// Whether the server wants `max_completion_tokens` in place of `max_tokens`.
    pub(super) new_limit_name: bool,
    /// Whether the server has not refused to report probabilities.
    pub(super) measures: bool,
}

/// The number of likeliest tokens to ask for where a word is measured. OpenAI allows 20, and so does vLLM by default.
const TOP_LOGPROBS: u32 = 10;

/// The header in which servers name a request.
const REQUEST_ID: &str = "x-request-id";

/// The most bytes of an answer in no known form that are looked at for an error.
const FIRST_BYTES_MAX: usize = 2048;

/// The time that a body has to end once its content is over. The end mostly comes with the content, or right behind it.
const END_WAIT: Duration = Duration::from_millis(100);

/// Returns the admission to the servers of an endpoint, if there is anything to decide.
pub(in crate::provider) fn admission(endpoint: &OpenAiEndpoint, flow: Option<Flow>) -> Option<Admission> {
    Admission::new(endpoint.base_urls(), flow, endpoint.calls_at_once)
}

/// A connection to one server.
#[derive(Debug)]
pub(in crate::provider) struct Client {
    /// The servers, of which the first is asked about itself.
    servers: Vec<Http>,
    admission: Arc<Option<Admission>>,
    endpoint: OpenAiEndpoint,
    manners: Mutex<Manners>,
    /// The parameters that the server has refused, with its words.
    refusals: Mutex<BTreeMap<OptionalParameter, String>>,
}

impl Client {
    /// Creates a client that shares nothing with others.
    pub(super) fn alone(endpoint: OpenAiEndpoint) -> Result<Self, ProviderError> {
        let admission = Arc::new(admission(&endpoint, None));
        Self::new(endpoint, admission)
    }

    /// Creates a client that shares the admission to its servers with the clients of other models on them.
    pub(in crate::provider) fn new(
        endpoint: OpenAiEndpoint,
        admission: Arc<Option<Admission>>,
    ) -> Result<Self, ProviderError> {
        let mut headers = HeaderMap::new();
        let key = read_key(&endpoint)?;
        if let Some(key) = &key {
            headers.insert("authorization", bearer(key)?);
        }
        for (name, value) in &endpoint.dialect.headers {
            let (name, value) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(ProviderError::Setup("one of the endpoint's headers is not valid".to_owned()));
            };
            headers.entry(name).or_insert(value);
        }
        let denied = "; check the API key (OPENAI_API_KEY or `api_key_env`)";
        let mut servers = Vec::new();
        for url in endpoint.base_urls() {
            servers.push(Http::new(url, endpoint.timeouts, headers.clone(), key.clone(), denied)?);
        }
        let manners = Manners { structured: Structured::JsonSchema, new_limit_name: false, measures: true };
        Ok(Self { servers, admission, endpoint, manners: Mutex::new(manners), refusals: Mutex::default() })
    }

    /// Returns the base URL, for messages.
    pub(super) fn base_url(&self) -> String {
        self.endpoint.base_url.clone()
    }

    /// Returns the number of times that a request is repeated after a fault that may pass.
    pub(super) fn retries(&self) -> u32 {
        self.endpoint.retries
    }

    /// Returns whether a refused connection ends a call at once.
    pub(super) fn is_refused_at_once(&self) -> bool {
        self.endpoint.refused_at_once
    }

    /// Returns the time-outs.
    pub(super) fn timeouts(&self) -> Timeouts {
        self.endpoint.timeouts
    }

    /// Returns the name of the model.
    pub(super) fn model(&self) -> &str {
        &self.endpoint.model
    }

    /// Returns the known behaviour of the server.
    pub(super) fn manners(&self) -> Manners {
        *self.manners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records new behaviour of the server.
    pub(super) fn learn(&self, note: impl FnOnce(&mut Manners)) {
        note(&mut self.manners.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns true if a request of this form has the parameter.
    pub(super) fn sends(&self, parameter: OptionalParameter, form: RequestForm<'_>) -> bool {
        let is_there = match parameter {
            OptionalParameter::Temperature | OptionalParameter::Seed => true,
            OptionalParameter::TopP => self.endpoint.dialect.body.contains_key(parameter.name()),
            OptionalParameter::StreamOptions => self.endpoint.stream,
            OptionalParameter::Logprobs => form.measured.is_some(),
            OptionalParameter::ResponseFormat => {
                form.structured.is_some_and(|structured| structured != Structured::Prompt)
            }
        };
        is_there && !form.left_out.contains(&parameter)
    }

    /// Returns the parameters that the settings leave out.
    pub(super) fn left_out(&self) -> BTreeSet<OptionalParameter> {
        self.endpoint.dialect.leave_out.clone()
    }

    /// Returns the parameters that the server has refused, with its words.
    pub(super) fn refusals(&self) -> Vec<(OptionalParameter, String)> {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.iter().map(|(parameter, message)| (*parameter, message.clone())).collect()
    }

    /// Records that the server refuses a parameter. Returns true if that is new.
    pub(super) fn learn_refusal(&self, parameter: OptionalParameter, message: &str) -> bool {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.insert(parameter, message.to_owned()).is_none()
    }

    /// Returns the admission to the servers, if there is anything to decide.
    pub(in crate::provider) fn admission(&self) -> Option<&Admission> {
        self.admission.as_ref().as_ref()
    }

    /// Returns the error of a request that was never sent, because the run is being ended.
    pub(super) fn given_up(&self) -> ProviderError {
        ProviderError::given_up(&self.endpoint.base_url)
    }

    /// Sends one chat completion, and counts the requests that it took.
    pub(super) async fn complete(
        &self,
        ask: &Ask,
        form: RequestForm<'_>,
        progress: OnProgress<'_>,
        requests: &Cell<u32>,
        permit: Option<&Permit<'_>>,
    ) -> Result<Completion, ProviderError> {
        use OptionalParameter::{Seed, StreamOptions, Temperature, TopP};
        let http = &self.servers[permit.map_or(0, Permit::server)];
        let mut further = Cow::Borrowed(&self.endpoint.dialect.body);
        if form.left_out.contains(&TopP) && further.contains_key(TopP.name()) {
            further.to_mut().shift_remove(TopP.name());
        }
        let request = ChatRequest {
            model: &self.endpoint.model,
            messages: &ask.messages,
            temperature: self.sends(Temperature, form).then_some(ask.temperature),
            seed: self.sends(Seed, form).then_some(ask.seed),
            max_tokens: (!form.new_limit_name).then_some(ask.max_tokens),
            max_completion_tokens: form.new_limit_name.then_some(ask.max_tokens),
            response_format: response_format(
                &ask.shape,
                form.structured,
                !self.endpoint.dialect.lenient_schema,
            ),
            logprobs: form.measured.is_some(),
            top_logprobs: form.measured.map(|_| TOP_LOGPROBS),
            stream: self.endpoint.stream,
            stream_options: self.sends(StreamOptions, form).then(|| json!({"include_usage": true})),
            further: &further,
        };
        let post = http.post(http.path(&["chat", "completions"]));
        let post = post.header(CONTENT_TYPE, "application/json").body(request.body());
        let read = async |response| {
            if let Some(permit) = permit
                && self.endpoint.stream
            {
                permit.mark_answered();
            }
            collect(http, response, progress).await
        };
        let collected = http.exchange(post, self.endpoint.stream, requests, read).await?;
        collected.into_answer(ask, &http.secrets()).map_err(|why| unusable(http, why))
    }

    /// Fetches a small JSON document below the server's root or below the base URL.
    pub(super) async fn get(&self, path: &str) -> Result<String, ProviderError> {
        self.servers[0].get(path).await
    }

    /// Sends a JSON document to a path below the server's root, and returns the answer.
    pub(super) async fn post(&self, path: &str, body: &serde_json::Value) -> Result<String, ProviderError> {
        self.servers[0].post_small(path, body).await
    }
}

/// Reads a reply, streamed or whole. A server may answer either way, whatever the request asked for, and it may name the
/// other form or none as the media type. So the first character decides: no stream of events begins with a bracket.
async fn collect(
    http: &Http,
    response: Response,
    progress: OnProgress<'_>,
) -> Result<CollectedChunks, ProviderError> {
    let mut collected = CollectedChunks::new(ReceiptParts::new(&response, REQUEST_ID));
    let mut parts = Box::pin(http.parts(response).fuse());
    let mut beginning = BytesMut::new();
    while !has_visible(&beginning) {
        match parts.next().await {
            Some(part) => beginning.extend_from_slice(&part.map_err(|fault| http.stream_error(&fault))?),
            None => break,
        }
    }
    let is_json = is_json(&beginning);
    let first = RefCell::new(Vec::new());
    let all = stream::iter([Ok(beginning.freeze())]).chain(parts).inspect(|part| {
        if let Ok(part) = part {
            let mut first = first.borrow_mut();
            let room = FIRST_BYTES_MAX.saturating_sub(first.len()).min(part.len());
            first.extend_from_slice(&part[..room]);
        }
    });
    if is_json {
        let body = http.text(all).await?;
        let part = chunk::read(&body, &http.secrets()).map_err(|why| unusable(http, why))?;
        collected.add(part).map_err(|why| unusable(http, why))?;
        if collected.has_begun() && !collected.is_complete() {
            return Err(http.damaged_answer("it gives no reason for its end (`finish_reason`)".to_owned()));
        }
        return Ok(collected);
    }
    let has_parts = read_events(http, all, &mut collected, progress).await?;
    if has_parts && collected.is_complete() {
        return Ok(collected);
    }
    if !has_parts {
        let first = first.borrow();
        let text = String::from_utf8_lossy(&first);
        return Err(unusable(http, chunk::explain(&http.secrets().in_message(&text))));
    }
    let why = "the stream ended in the middle of a reply".to_owned();
    Err(http.stream_error(&StreamFault::Broken(why)))
}

/// Reads the events of a stream, up to its mark or its end. Returns whether one of them was a part of a reply.
async fn read_events(
    http: &Http,
    bytes: impl Stream<Item = Result<Bytes, StreamFault>>,
    collected: &mut CollectedChunks,
    progress: OnProgress<'_>,
) -> Result<bool, ProviderError> {
    let mut has_parts = false;
    let mut events = SseStream::from_bytes_stream(Box::pin(bytes));
    let secrets = http.secrets();
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| sse_error(http, &error))?;
        let data = event.data.unwrap_or_default();
        if event.event.as_deref() == Some("error") {
            let failure = ServerFailure::of_text(&secrets.in_message(&data));
            return Err(unusable(http, ReplyFault::Failed(failure)));
        }
        // An event without data is a sign of life.
        if data.trim().is_empty() {
            continue;
        }
        if data.trim() == "[DONE]" {
            collected.is_done = true;
            // A body that is not read to its end takes its connection with it.
            let rest = async { while events.next().await.is_some() {} };
            let _ = tokio::time::timeout(END_WAIT, rest).await;
            break;
        }
        let added = chunk::read(&data, &secrets).and_then(|part| collected.add(part));
        added.map_err(|why| unusable(http, why))?;
        has_parts = true;
        progress(CallProgress::Received {
            tokens: collected.parts,
            text: PartialText::new(&|| collected.visible_text(&secrets), &secrets),
        });
    }
    Ok(has_parts)
}

/// Returns true if there is a character besides white space and the mark that some programs begin every text with.
fn has_visible(bytes: &[u8]) -> bool {
    first_visible(bytes).is_some()
}

/// Returns true if a body that begins like this is JSON and no stream of events.
fn is_json(bytes: &[u8]) -> bool {
    matches!(first_visible(bytes), Some(b'{' | b'['))
}

fn first_visible(bytes: &[u8]) -> Option<u8> {
    let mut bytes = bytes.iter().copied();
    bytes.find(|byte| !byte.is_ascii_whitespace() && !b"\xEF\xBB\xBF".contains(byte))
}

fn sse_error(http: &Http, error: &sse_stream::Error) -> ProviderError {
    // Text that is not UTF-8 is not a fault of the connection.
    let sse_stream::Error::Body(fault) = error else { return http.damaged_answer(error.to_string()) };
    match fault.downcast_ref::<StreamFault>() {
        Some(fault) => http.stream_error(fault),
        None => http.bad_answer(error.to_string()),
    }
}

fn unusable(http: &Http, why: ReplyFault) -> ProviderError {
    match why {
        ReplyFault::Form(why) => http.bad_answer(why),
        ReplyFault::Damaged(why) => http.damaged_answer(why),
        ReplyFault::Failed(failure) => http.failure_error(failure),
    }
}

fn response_format(
    shape: &ReplyShape,
    structured: Option<Structured>,
    strict: bool,
) -> Option<ResponseFormat<'_>> {
    match (shape, structured?) {
        (ReplyShape::Json { name, schema, .. }, Structured::JsonSchema) => {
            Some(ResponseFormat::JsonSchema { json_schema: NamedSchema { name, strict, schema } })
        }
        (ReplyShape::Json { .. }, Structured::JsonObject) => Some(ResponseFormat::JsonObject),
        (ReplyShape::Json { .. }, Structured::Prompt) | (ReplyShape::Free, _) => None,
    }
}

fn read_key(endpoint: &OpenAiEndpoint) -> Result<Option<String>, ProviderError> {
    let key = endpoint.api_key_env.as_ref().and_then(|name| std::env::var(name).ok());
    // A job without the secret has the variable all the same, with nothing in it.
    if let Some(key) = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()) {
        return Ok(Some(key));
    }
    let Some(path) = &endpoint.api_key_file else {
        require_keyless(endpoint)?;
        return Ok(None);
    };
    let read = read_text(Path::new(path), SMALL_BYTES_MAX);
    let key = read.map_err(|e| ProviderError::Setup(format!("cannot read the key file `{path}`: {e}")))?;
    Ok(Some(key.trim().to_owned()))
}

/// Refuses a server on the internet that is known to want a key. Other servers may do without one.
fn require_keyless(endpoint: &OpenAiEndpoint) -> Result<(), ProviderError> {
    let url = &endpoint.base_url;
    let known = PRESETS.iter().find(|preset| preset.base_url == url).and_then(|preset| preset.api_key_env);
    match (known, &endpoint.api_key_env) {
        (Some(known), named) => Err(ProviderError::Setup(format!(
            "{url} needs a key, and `{}` is not set; export it, or name a file with the key as `api_key_file`",
            named.as_deref().unwrap_or(known)
        ))),
        (None, Some(name)) if name != "OPENAI_API_KEY" => {
            tracing::warn!("`{name}` is not set, so {url} is called without a key");
            Ok(())
        }
        (None, _) => Ok(()),
    }
}
