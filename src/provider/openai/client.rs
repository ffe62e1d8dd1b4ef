//! HTTP: one request, bounded in time and size.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Response, Url};
use sse_stream::SseStream;

use super::answer::{Collected, Unusable};
use super::wire::{self, NamedSchema, Request, ResponseFormat, StreamOptions};
use crate::protocol::{Ask, ReplyShape};
use crate::provider::{Answer, OpenAiEndpoint, Progress, ProviderError, Structured, Timeouts};

/// The most bytes of one HTTP answer: a reply of 1 MiB escaped as JSON, and its frame.
pub(super) const BODY_BYTES_MAX: usize = 8 << 20;

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

/// Servers close idle connections after as little as five seconds; ours goes first, so that a
/// request never meets a connection that is being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// How many of the likeliest tokens are asked for where a word is measured; OpenAI allows 20, vLLM by default too.
const TOP_LOGPROBS: u32 = 10;

/// A connection to one server.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    /// The key, to be taken out of whatever the server says.
    key: Option<String>,
    endpoint: OpenAiEndpoint,
    url: Url,
}

impl Client {
    pub(super) fn new(endpoint: OpenAiEndpoint) -> Result<Self, ProviderError> {
        let setup = |why: String| ProviderError::Setup(format!("base URL `{}`: {why}", endpoint.base_url));
        let url = Url::parse(&endpoint.base_url).map_err(|e| setup(e.to_string()))?;
        let mut headers = HeaderMap::new();
        let key = read_key(&endpoint)?;
        if let Some(key) = &key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
                ProviderError::Setup("the API key has characters that no header allows".to_owned())
            })?;
            value.set_sensitive(true);
            headers.insert("authorization", value);
        }
        for (name, value) in &endpoint.dialect.headers {
            let (name, value) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(ProviderError::Setup("a header of the endpoint is not a valid one".to_owned()));
            };
            headers.entry(name).or_insert(value);
        }
        let mut builder = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(Duration::from_millis(endpoint.timeouts.connect_ms))
            .pool_idle_timeout(POOL_IDLE)
            .redirect(reqwest::redirect::Policy::none())
            .http1_only();
        builder = if url.scheme() == "https" {
            install_crypto();
            builder
        } else {
            // Plain HTTP needs no certificates; loading the system's costs more than a run.
            builder.tls_backend_preconfigured(no_certificates())
        };
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|e| setup(e.to_string()))?;
        Ok(Self { http, key, endpoint, url })
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
        let timeouts = self.endpoint.timeouts;
        let work = async {
            let sent = self.http.post(self.path("chat/completions")).json(&request).send();
            // Without streaming nothing comes before the whole reply is there.
            let first_byte = if self.endpoint.stream { timeouts.first_byte_ms } else { timeouts.total_ms };
            let response = self.within(first_byte, "first byte", "first_byte_ms", sent).await?;
            let response = self.check_status(response.map_err(|e| self.unreachable(&e))?).await?;
            self.collect(response, progress).await
        };
        let collected = self.within(timeouts.total_ms, "complete reply", "total_ms", work).await??;
        collected.into_answer(ask, &self.endpoint.base_url)
    }

    /// Fetches a small JSON document below the server's root or below the base URL.
    pub(super) async fn get(&self, path: &str) -> Result<String, ProviderError> {
        let url = match path.strip_prefix('/') {
            Some(_) => self.url.join(path).map_err(|e| ProviderError::Setup(e.to_string()))?,
            None => self.path(path),
        };
        let limit = self.endpoint.timeouts.connect_ms;
        let work = async {
            let sent = self.http.get(url).send().await.map_err(|e| self.unreachable(&e))?;
            let response = self.check_status(sent).await?;
            self.body(response).await
        };
        self.within(limit, "answer", "connect_ms", work).await?
    }

    fn path(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path.split('/'));
        }
        url
    }

    async fn within<T>(
        &self,
        limit_ms: u64,
        what: &'static str,
        setting: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, ProviderError> {
        let after = Duration::from_millis(limit_ms);
        let timed_out = |_| ProviderError::TimedOut { url: self.base_url(), what, setting, after };
        tokio::time::timeout(after, work).await.map_err(timed_out)
    }

    fn unreachable(&self, error: &reqwest::Error) -> ProviderError {
        if error.is_timeout() && error.is_connect() {
            let after = Duration::from_millis(self.endpoint.timeouts.connect_ms);
            return ProviderError::TimedOut {
                url: self.base_url(),
                what: "connection",
                setting: "connect_ms",
                after,
            };
        }
        ProviderError::Unreachable { url: self.base_url(), why: innermost(error) }
    }

    async fn check_status(&self, response: Response) -> Result<Response, ProviderError> {
        let status = response.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let body = self.body(response).await.unwrap_or_default();
        let message = self.redact(wire::error_message(&body));
        let url = self.base_url();
        if status == 400 && is_overflow(&body) {
            return Err(ProviderError::Overflow { url, message });
        }
        let hint = match status {
            300..=399 => {
                "; redirects are not followed, so that a key cannot go astray: set the final base URL"
            }
            401 | 403 => "; check the API key (OPENAI_API_KEY or `api_key_env`)",
            400 | 422 if message.to_ascii_lowercase().contains("stream") => {
                "; if the server cannot stream, use --no-stream"
            }
            404 => "; check the base URL (it usually ends in /v1) and the model's name",
            _ => "",
        };
        Err(ProviderError::Status { url, status, message, hint, retry_after })
    }

    /// Reads a whole body within the limits.
    async fn body(&self, response: Response) -> Result<String, ProviderError> {
        let mut parts = std::pin::pin!(self.parts(response));
        let mut bytes = Vec::new();
        while let Some(part) = parts.next().await {
            bytes.extend_from_slice(&part.map_err(|fault| self.fault(&fault))?);
        }
        String::from_utf8(bytes).map_err(|_| self.bad("it is not UTF-8".to_owned()))
    }

    /// Reads a reply, streamed or whole; servers may answer either way whatever was asked.
    async fn collect(&self, response: Response, progress: Progress<'_>) -> Result<Collected, ProviderError> {
        let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or("");
        let mut collected = Collected::default();
        if !kind.starts_with("text/event-stream") {
            let body = self.body(response).await?;
            collected.add(&body).map_err(|why| self.unusable(why))?;
            return Ok(collected);
        }
        let mut events = SseStream::from_bytes_stream(Box::pin(self.parts(response)));
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
            return Err(
                self.fault(&StreamFault::Broken("the stream ended in the middle of a reply".to_owned()))
            );
        }
        Ok(collected)
    }

    /// Returns the bytes of a response as they come, bounded in number and in the time between two
    /// parts. Any byte counts as a sign of life, also those of a stream's keep-alive comments.
    fn parts(&self, response: Response) -> impl Stream<Item = Result<Bytes, StreamFault>> + use<> {
        let timeouts = self.endpoint.timeouts;
        stream::unfold(Some((response, 0)), move |state| async move {
            let (mut response, received) = state?;
            // Some servers send their headers at once and compute the prompt after that.
            let (limit_ms, fault) = match received {
                0 => (timeouts.first_byte_ms.max(timeouts.idle_ms), StreamFault::Silent),
                _ => (timeouts.idle_ms, StreamFault::Idle),
            };
            let part = match tokio::time::timeout(Duration::from_millis(limit_ms), response.chunk()).await {
                Err(_) => Err(fault),
                Ok(Err(error)) => Err(StreamFault::Broken(innermost(&error))),
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(part))) if received + part.len() > BODY_BYTES_MAX => Err(StreamFault::TooLarge),
                Ok(Ok(Some(part))) => Ok(part),
            };
            let next = part.as_ref().ok().map(|part| received + part.len()).map(|sum| (response, sum));
            Some((part, next))
        })
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
        fault.map_or_else(|| self.bad(error.to_string()), |fault| self.fault(fault))
    }

    fn fault(&self, fault: &StreamFault) -> ProviderError {
        let url = self.base_url();
        match fault {
            StreamFault::TooLarge => ProviderError::TooLarge { url, max: BODY_BYTES_MAX },
            StreamFault::Broken(why) => ProviderError::Unreachable { url, why: why.clone() },
            StreamFault::Silent => {
                let after = Duration::from_millis(self.endpoint.timeouts.first_byte_ms);
                ProviderError::TimedOut { url, what: "first byte", setting: "first_byte_ms", after }
            }
            StreamFault::Idle => {
                let after = Duration::from_millis(self.endpoint.timeouts.idle_ms);
                let what = "further part of the reply";
                ProviderError::TimedOut { url, what, setting: "idle_ms", after }
            }
        }
    }

    /// Takes this client's key out of a text that a server made.
    fn redact(&self, text: String) -> String {
        match &self.key {
            Some(key) if !key.is_empty() => text.replace(key.as_str(), "[key]"),
            Some(_) | None => text,
        }
    }

    fn unusable(&self, why: Unusable) -> ProviderError {
        match why {
            Unusable::Form(why) => self.bad(why),
            Unusable::Status(status, message) => ProviderError::Status {
                url: self.base_url(),
                status,
                message: self.redact(message),
                hint: "",
                retry_after: None,
            },
        }
    }

    fn bad(&self, why: String) -> ProviderError {
        ProviderError::BadAnswer { url: self.base_url(), why: self.redact(why) }
    }
}

/// What can go wrong inside a stream of bytes.
#[derive(Debug, thiserror::Error)]
enum StreamFault {
    #[error("the reply is too large")]
    TooLarge,
    #[error("{0}")]
    Broken(String),
    #[error("nothing came at all")]
    Silent,
    #[error("nothing came for too long")]
    Idle,
}

/// Returns the innermost cause, the one that says something: "connection refused".
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
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

/// Returns true if the URL's host is this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let bare = host.trim_matches(['[', ']']);
            bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        None => false,
    }
}

/// The overflow of a context is told in a code by llama.cpp and OpenAI, in words by vLLM.
fn is_overflow(body: &str) -> bool {
    let lower = body.to_lowercase();
    [
        "exceed_context_size",
        "context_length_exceeded",
        "maximum context length",
        "context window",
        "max_model_len",
    ]
    .iter()
    .any(|sign| lower.contains(sign))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    // The other form, an HTTP date, is rare among model servers and falls back to our own delay.
    text.trim().parse().ok().map(Duration::from_secs)
}

fn install_crypto() {
    // A second installation fails, and the first one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn no_certificates() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}
