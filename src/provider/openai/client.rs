//! Chat completions: one request, and the reply put together from its answer.

use futures_util::StreamExt;
use reqwest::Response;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sse_stream::SseStream;

use super::answer::{Collected, Unusable};
use super::wire::{NamedSchema, Request, ResponseFormat, StreamOptions};
use crate::protocol::{Ask, ReplyShape};
use crate::provider::http::{Http, StreamFault, bearer};
use crate::provider::{Answer, OpenAiEndpoint, Progress, ProviderError, Structured, Timeouts};

/// The form of a request, as far as servers differ in it.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// How a reply is held to its schema; none, where free text is wanted.
    pub(super) structured: Option<Structured>,
    /// Whether `max_completion_tokens` stands in place of `max_tokens`.
    pub(super) new_limit_name: bool,
    /// The field whose probability is asked for.
    pub(super) measured: Option<&'static str>,
}

/// How many of the likeliest tokens are asked for where a word is measured; OpenAI allows 20, vLLM by default too.
const TOP_LOGPROBS: u32 = 10;

/// A connection to one server.
#[derive(Debug)]
pub(super) struct Client {
    http: Http,
    endpoint: OpenAiEndpoint,
}

impl Client {
    pub(super) fn new(endpoint: OpenAiEndpoint) -> Result<Self, ProviderError> {
        let mut headers = HeaderMap::new();
        let key = read_key(&endpoint)?;
        if let Some(key) = &key {
            headers.insert("authorization", bearer(key)?);
        }
        for (name, value) in &endpoint.dialect.headers {
            let (name, value) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(ProviderError::Setup("a header of the endpoint is not a valid one".to_owned()));
            };
            headers.entry(name).or_insert(value);
        }
        let denied = "; check the API key (OPENAI_API_KEY or `api_key_env`)";
        let http = Http::new(&endpoint.base_url, endpoint.timeouts, headers, key, denied)?;
        Ok(Self { http, endpoint })
    }

    /// Returns the base URL, for messages.
    pub(super) fn base_url(&self) -> String {
        self.endpoint.base_url.clone()
    }

    /// Returns how long to wait for what.
    pub(super) fn timeouts(&self) -> Timeouts {
        self.endpoint.timeouts
    }

    /// Returns the model's name.
    pub(super) fn model(&self) -> &str {
        &self.endpoint.model
    }

    /// Sends one chat completion.
    pub(super) async fn complete(
        &self,
        ask: &Ask,
        form: Form,
        progress: Progress<'_>,
    ) -> Result<Answer, ProviderError> {
        let request = Request {
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
        let sent = self.http.post(self.http.path(&["chat", "completions"])).json(&request);
        let read = async |response| self.collect(response, progress).await;
        let collected = self.http.exchange(sent, self.endpoint.stream, read).await?;
        collected.into_answer(ask, &self.endpoint.base_url)
    }

    /// Fetches a small JSON document below the server's root or below the base URL.
    pub(super) async fn get(&self, path: &str) -> Result<String, ProviderError> {
        self.http.get(path).await
    }

    /// Sends a JSON document below the server's root, and returns what comes back.
    pub(super) async fn post(&self, path: &str, body: &serde_json::Value) -> Result<String, ProviderError> {
        self.http.post_small(path, body).await
    }

    /// Reads a reply, streamed or whole; servers may answer either way whatever was asked.
    async fn collect(&self, response: Response, progress: Progress<'_>) -> Result<Collected, ProviderError> {
        let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or("");
        let mut collected = Collected::default();
        if !kind.starts_with("text/event-stream") {
            let body = self.http.body(response).await?;
            collected.add(&body).map_err(|why| self.unusable(why))?;
            return Ok(collected);
        }
        let mut events = SseStream::from_bytes_stream(Box::pin(self.http.parts(response)));
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| self.stream_error(&error))?;
            let Some(data) = event.data else { continue };
            if data.trim() == "[DONE]" {
                collected.done = true;
                break;
            }
            collected.add(&data).map_err(|why| self.unusable(why))?;
            progress(collected.parts);
        }
        if !collected.is_complete() {
            return Err(self
                .http
                .fault(&StreamFault::Broken("the stream ended in the middle of a reply".to_owned())));
        }
        Ok(collected)
    }

    fn stream_error(&self, error: &sse_stream::Error) -> ProviderError {
        let fault = match error {
            sse_stream::Error::Body(fault) => fault.downcast_ref::<StreamFault>(),
            sse_stream::Error::InvalidLine
            | sse_stream::Error::DuplicatedEventLine
            | sse_stream::Error::DuplicatedIdLine
            | sse_stream::Error::DuplicatedRetry
            | sse_stream::Error::Utf8Parse(_)
            | sse_stream::Error::IntParse(_) => None,
        };
        fault.map_or_else(|| self.http.bad(error.to_string()), |fault| self.http.fault(fault))
    }

    fn unusable(&self, why: Unusable) -> ProviderError {
        match why {
            Unusable::Form(why) => self.http.bad(why),
            Unusable::Status(status, message) => self.http.late_status(status, message),
        }
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
    if let Some(key) = endpoint.api_key_env.as_ref().and_then(|name| std::env::var(name).ok()) {
        return Ok(Some(key.trim().to_owned()).filter(|k| !k.is_empty()));
    }
    if let Some(name) = endpoint.api_key_env.as_ref().filter(|name| *name != "OPENAI_API_KEY") {
        tracing::warn!("`{name}` is not set, so {} is called without a key", endpoint.base_url);
    }
    let Some(path) = &endpoint.api_key_file else { return Ok(None) };
    let read = std::fs::read_to_string(path);
    let key = read.map_err(|e| ProviderError::Setup(format!("cannot read the key file `{path}`: {e}")))?;
    Ok(Some(key.trim().to_owned()))
}
