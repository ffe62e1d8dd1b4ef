//! Chat completions: one request, and the reply that is built from its answer.

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use sse_stream::SseStream;

use super::answer::{CollectedChunks, Unusable};
use super::wire::{ChatRequest, NamedSchema, ResponseFormat, StreamOptions};
use crate::core::{OpenAiEndpoint, PRESETS, Structured, Timeouts};
use crate::files::{SMALL_BYTES_MAX, read_text};
use crate::protocol::{Ask, ReplyShape};
use crate::provider::completion::{CallProgress, Completion, OnProgress, TextSoFar};
use crate::provider::http::{Http, StreamFault, bearer};
use crate::provider::load::{Admission, Permit};
use crate::provider::receipt::Parts;
use crate::provider::{Flow, ProviderError};

/// The form of a request, so far as servers differ in it.
#[derive(Clone, Copy)]
pub(super) struct RequestForm {
    /// The form of structured output; `None` if free text is wanted.
    pub(super) structured: Option<Structured>,
    /// Whether `max_completion_tokens` takes the place of `max_tokens`.
    pub(super) new_limit_name: bool,
    /// The field whose probability is asked for.
    pub(super) measured: Option<&'static str>,
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
        let server = |url| Http::new(url, endpoint.timeouts, headers.clone(), key.clone(), denied);
        let servers = endpoint.base_urls().map(server).collect::<Result<Vec<Http>, ProviderError>>()?;
        let manners = Manners { structured: Structured::JsonSchema, new_limit_name: false, measures: true };
        Ok(Self { servers, admission, endpoint, manners: Mutex::new(manners) })
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
        form: RequestForm,
        progress: OnProgress<'_>,
        requests: &Cell<u32>,
        permit: Option<&Permit<'_>>,
    ) -> Result<Completion, ProviderError> {
        let http = &self.servers[permit.map_or(0, Permit::server)];
        let request = ChatRequest {
            model: &self.endpoint.model,
            messages: &ask.messages,
            temperature: ask.temperature,
            seed: ask.seed,
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
            stream_options: self.endpoint.stream.then_some(StreamOptions { include_usage: true }),
            further: &self.endpoint.dialect.body,
        };
        let post = http.post(http.path(&["chat", "completions"]));
        let post = post.header(CONTENT_TYPE, "application/json").body(request.body());
        let read = async |response| {
            permit.filter(|_| self.endpoint.stream).into_iter().for_each(Permit::answered);
            collect(http, response, progress).await
        };
        let collected = http.exchange(post, self.endpoint.stream, requests, read).await?;
        collected.into_answer(ask, &self.endpoint.base_url, &http.secrets())
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

/// Reads a reply, streamed or whole. A server may answer either way, whatever the request asked for.
async fn collect(
    http: &Http,
    response: Response,
    progress: OnProgress<'_>,
) -> Result<CollectedChunks, ProviderError> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    // The names of media types are case-insensitive (RFC 9110, section 8.3.1).
    let is_stream =
        kind.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("text/event-stream"));
    let mut collected = CollectedChunks::new(Parts::new(&response, REQUEST_ID));
    let secrets = http.secrets();
    if !is_stream {
        let body = http.body(response).await?;
        collected.add(&body, &secrets).map_err(|why| unusable(http, why))?;
        return Ok(collected);
    }
    let mut events = SseStream::from_bytes_stream(Box::pin(http.parts(response)));
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| stream_error(http, &error))?;
        let Some(data) = event.data else { continue };
        if data.trim() == "[DONE]" {
            collected.done = true;
            // A body that is not read to its end takes its connection with it.
            let rest = async { while events.next().await.is_some() {} };
            let _ = tokio::time::timeout(END_WAIT, rest).await;
            break;
        }
        collected.add(&data, &secrets).map_err(|why| unusable(http, why))?;
        let text = || collected.shown(&secrets);
        progress(CallProgress::Received { tokens: collected.parts, text: TextSoFar::new(&text, &secrets) });
    }
    if !collected.is_complete() {
        let why = "the stream ended in the middle of a reply".to_owned();
        return Err(http.fault(&StreamFault::Broken(why)));
    }
    Ok(collected)
}

fn stream_error(http: &Http, error: &sse_stream::Error) -> ProviderError {
    // Text that is not UTF-8 is not a fault of the connection.
    let sse_stream::Error::Body(fault) = error else { return http.damaged(error.to_string()) };
    fault.downcast_ref::<StreamFault>().map_or_else(|| http.bad(error.to_string()), |fault| http.fault(fault))
}

fn unusable(http: &Http, why: Unusable) -> ProviderError {
    match why {
        Unusable::Form(why) => http.bad(why),
        Unusable::Cut(why) => http.damaged(why),
        Unusable::Status(status, message) => http.late_status(status, message),
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
    let Some(path) = &endpoint.api_key_file else { return without_key(endpoint) };
    let read = read_text(Path::new(path), SMALL_BYTES_MAX);
    let key = read.map_err(|e| ProviderError::Setup(format!("cannot read the key file `{path}`: {e}")))?;
    Ok(Some(key.trim().to_owned()))
}

/// Refuses a server on the internet that is known to want a key. Other servers may do without one.
fn without_key(endpoint: &OpenAiEndpoint) -> Result<Option<String>, ProviderError> {
    let url = &endpoint.base_url;
    let wanted = PRESETS.iter().find(|preset| preset.base_url == url).and_then(|preset| preset.api_key_env);
    match (wanted, &endpoint.api_key_env) {
        (Some(wanted), named) => Err(ProviderError::Setup(format!(
            "{url} needs a key, and `{}` is not set; export it, or name a file with the key as `api_key_file`",
            named.as_deref().unwrap_or(wanted)
        ))),
        (None, Some(name)) if name != "OPENAI_API_KEY" => {
            tracing::warn!("`{name}` is not set, so {url} is called without a key");
            Ok(None)
        }
        (None, _) => Ok(None),
    }
}
