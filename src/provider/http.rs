//! One HTTP exchange, bounded in time and in size.
//!
//! The input is a request to one server. The output is its answer, or a [`ProviderError`] with a remedy. Redirects are
//! not followed, bodies are cut off at [`BODY_BYTES_MAX`], and every wait has a limit with a name. This server's keys
//! are removed from its errors before anything is cut; the reader of a reply uses [`Http::secrets`]. The meaning of the
//! bytes is not known here.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;

use super::ProviderError;
use super::failure::{ServerFailure, is_overflow};
use super::retry_after::retry_after;
use super::secret::Secrets;
use protocol::core::Timeouts;

/// The most bytes of one HTTP answer: a reply of 1 MiB escaped as JSON, and its frame.
pub(super) const BODY_BYTES_MAX: usize = 8 << 20;

/// The time after which idle connections are closed. Servers close them after as little as five seconds. This side
/// closes first, so that a request never meets a connection that is being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// The time that the machine's metadata service has to accept a connection. AWS tools give it a second, too.
const METADATA_CONNECT: Duration = Duration::from_secs(1);

/// The statuses of a request that a server refuses for what is in it.
const REFUSALS: [u16; 3] = [400, 413, 422];

/// The most credentials that are remembered besides the key. They change about once an hour, three at a time.
const HIDDEN_MAX: usize = 64;

/// The texts that are removed from a server's words.
struct Hidden {
    /// The key, if there is one.
    key: Option<String>,
    /// The credentials of requests, oldest first.
    further: VecDeque<String>,
    /// The key and the credentials, ready for use.
    secrets: Arc<Secrets>,
}

impl Hidden {
    fn new(key: Option<String>, further: VecDeque<String>) -> Self {
        let secrets = Arc::new(Secrets::new(key.iter().chain(&further).map(String::as_str)));
        Self { key, further, secrets }
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hidden").finish_non_exhaustive()
    }
}

/// A connection to one server.
#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    /// A client that keeps no connection, created when it is needed.
    fresh: OnceLock<Client>,
    headers: HeaderMap,
    base_url: String,
    url: Url,
    timeouts: Timeouts,
    /// The keys and the like that are removed from the server's words.
    hidden: Mutex<Hidden>,
    /// The remedy if the server refuses the caller, ready to append.
    denied: &'static str,
}

impl Http {
    /// Creates the client, without connecting to anything yet.
    pub(super) fn new(
        base_url: &str,
        timeouts: Timeouts,
        headers: HeaderMap,
        key: Option<String>,
        denied: &'static str,
    ) -> Result<Self, ProviderError> {
        let url = Url::parse(base_url).map_err(|why| unusable_url(base_url, &why))?;
        let client = client(&url, timeouts, headers.clone(), usize::MAX)
            .map_err(|why| unusable_url(base_url, &why))?;
        let hidden = Mutex::new(Hidden::new(key, VecDeque::new()));
        let (base_url, fresh) = (base_url.to_owned(), OnceLock::new());
        Ok(Self { client, fresh, headers, base_url, url, timeouts, hidden, denied })
    }

    /// Starts a request.
    pub(super) fn post(&self, url: Url) -> RequestBuilder {
        self.client.post(url)
    }

    /// Returns the URL of a path below the base URL, with its segments encoded.
    pub(super) fn path(&self, path: &[&str]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// Sends a request and reads its answer, within the time for a whole reply.
    ///
    /// `streams` says whether the server was asked to send the reply in parts. `requests` counts the requests that are
    /// sent.
    pub(super) async fn exchange<T>(
        &self,
        request: RequestBuilder,
        streams: bool,
        requests: &Cell<u32>,
        read: impl AsyncFnOnce(Response) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let timeouts = self.timeouts;
        let work = async {
            // Without streaming, nothing arrives before the whole reply is ready.
            let first_byte = if streams { timeouts.first_byte_ms } else { timeouts.total_ms };
            let send = self.send(request, requests);
            let response = self.within(first_byte, "first byte", "first_byte_ms", send).await?;
            read(self.check_status(response.map_err(|e| self.unreachable(&e))?).await?).await
        };
        self.within(timeouts.total_ms, "complete reply", "total_ms", work).await?
    }

    /// Sends a request. If its connection ends before the answer begins, the request is sent again at once on a new
    /// connection.
    ///
    /// Such a connection has mostly served before. llama.cpp's server closes it after a streamed reply without notice,
    /// and the next request may be on its way by then.
    async fn send(&self, request: RequestBuilder, requests: &Cell<u32>) -> reqwest::Result<Response> {
        let (client, request) = request.build_split();
        let request = request?;
        // The body is in memory, and both requests share it.
        let again = request.try_clone();
        let (began, place) = (Instant::now(), request.url().path().to_owned());
        requests.set(requests.get() + 1);
        let done = match (client.execute(request).await, again) {
            (Err(error), Some(again)) if is_hung_up(&error) => {
                requests.set(requests.get() + 1);
                self.fresh()?.execute(again).await
            }
            (done, _) => done,
        };
        // Only the host and the path are logged: the other parts of the URL may be secret.
        let host = self.url.host_str().unwrap_or_default();
        let milliseconds = began.elapsed().as_millis();
        // The status is missing if the request has failed.
        let status = done.as_ref().map(|response| response.status().as_u16()).ok();
        tracing::info!(%host, path = %place, status, milliseconds, "a request was made");
        done
    }

    fn fresh(&self) -> reqwest::Result<&Client> {
        if let Some(fresh) = self.fresh.get() {
            return Ok(fresh);
        }
        let fresh = client(&self.url, self.timeouts, self.headers.clone(), 0)?;
        Ok(self.fresh.get_or_init(|| fresh))
    }

    /// Fetches a small JSON document below the server's root or below the base URL.
    pub(super) async fn get(&self, path: &str) -> Result<String, ProviderError> {
        let url = match path.strip_prefix('/') {
            Some(_) => self.url.join(path).map_err(|e| ProviderError::Setup(e.to_string()))?,
            None => self.path(&[path]),
        };
        self.small(self.client.get(url)).await
    }

    /// Sends a JSON document to a path below the server's root, and returns the small document that comes back.
    pub(super) async fn post_small(&self, path: &str, body: &Value) -> Result<String, ProviderError> {
        let url = self.url.join(path).map_err(|e| ProviderError::Setup(e.to_string()))?;
        self.small(self.client.post(url).json(body)).await
    }

    async fn small(&self, request: RequestBuilder) -> Result<String, ProviderError> {
        let work = async {
            let sent = request.send().await.map_err(|e| self.unreachable(&e))?;
            let response = self.check_status(sent).await?;
            let body = self.body(response).await?;
            Ok(self.secrets().in_reply(&body).into_owned())
        };
        self.within(self.timeouts.connect_ms, "answer", "connect_ms", work).await?
    }

    async fn within<T>(
        &self,
        limit_ms: u64,
        what: &'static str,
        setting: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, ProviderError> {
        let after = Duration::from_millis(limit_ms);
        tokio::time::timeout(after, work).await.map_err(|_| ProviderError::TimedOut {
            url: self.base_url.clone(),
            what,
            setting,
            after,
        })
    }

    fn unreachable(&self, error: &reqwest::Error) -> ProviderError {
        if error.is_timeout() && error.is_connect() {
            let after = Duration::from_millis(self.timeouts.connect_ms);
            return ProviderError::TimedOut {
                url: self.base_url.clone(),
                what: "connection",
                setting: "connect_ms",
                after,
            };
        }
        let (why, is_refused) = innermost(error);
        ProviderError::Unreachable { url: self.base_url.clone(), why: self.redact(why), is_refused }
    }

    async fn check_status(&self, response: Response) -> Result<Response, ProviderError> {
        let status = response.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let body = self.body(response).await.unwrap_or_default();
        let message = self.redact(ServerFailure::of_text(&self.secrets().in_message(&body)).message);
        let url = self.base_url.clone();
        if REFUSALS.contains(&status) && is_overflow(&body) {
            return Err(ProviderError::Overflow { url, message });
        }
        let hint = match status {
            300..=399 => {
                "; redirects are not followed, so that the key stays with this server; set the final base URL"
            }
            401 | 403 => self.denied,
            400 | 422 if message.to_ascii_lowercase().contains("stream") => {
                "; if the server cannot stream, use --no-stream"
            }
            404 => "; check the base URL (it usually ends in /v1) and the model's name",
            _ => "",
        };
        Err(ProviderError::Status { url, status, message, hint, retry_after })
    }

    /// Reads a whole body within the limits.
    pub(super) async fn body(&self, response: Response) -> Result<String, ProviderError> {
        self.text(self.parts(response)).await
    }

    /// Reads the whole text of a body.
    pub(super) async fn text(
        &self,
        parts: impl Stream<Item = Result<Bytes, StreamFault>>,
    ) -> Result<String, ProviderError> {
        let mut parts = std::pin::pin!(parts);
        let mut bytes = Vec::new();
        while let Some(part) = parts.next().await {
            bytes.extend_from_slice(&part.map_err(|fault| self.stream_error(&fault))?);
        }
        String::from_utf8(bytes).map_err(|_| self.damaged_answer("it is not UTF-8".to_owned()))
    }

    /// Returns the bytes of a response as they arrive, bounded in number and in the time between two parts. Any byte
    /// counts as a sign of life, including the keep-alive comments of a stream.
    pub(super) fn parts(&self, response: Response) -> impl Stream<Item = Result<Bytes, StreamFault>> + use<> {
        let timeouts = self.timeouts;
        stream::unfold(Some((response, 0)), move |state| async move {
            let (mut response, received) = state?;
            // Some servers send their headers at once, and compute the prompt after that.
            let (limit_ms, fault) = match received {
                0 => (timeouts.first_byte_ms.max(timeouts.idle_ms), StreamFault::Silent),
                _ => (timeouts.idle_ms, StreamFault::Idle),
            };
            let part = match tokio::time::timeout(Duration::from_millis(limit_ms), response.chunk()).await {
                Err(_) => Err(fault),
                Ok(Err(error)) => Err(StreamFault::Broken(innermost(&error).0)),
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(part))) if received + part.len() > BODY_BYTES_MAX => Err(StreamFault::TooLarge),
                Ok(Ok(Some(part))) => Ok(part),
            };
            let next = match &part {
                Ok(part) => Some((response, received + part.len())),
                Err(_) => None,
            };
            Some((part, next))
        })
    }

    /// Returns the error of a call for a fault inside its stream.
    pub(super) fn stream_error(&self, fault: &StreamFault) -> ProviderError {
        let url = self.base_url.clone();
        match fault {
            StreamFault::TooLarge => ProviderError::TooLarge { url, max: BODY_BYTES_MAX },
            StreamFault::Broken(why) => {
                ProviderError::Unreachable { url, why: self.redact(why.clone()), is_refused: false }
            }
            StreamFault::Silent => {
                let after = Duration::from_millis(self.timeouts.first_byte_ms);
                ProviderError::TimedOut { url, what: "first byte", setting: "first_byte_ms", after }
            }
            StreamFault::Idle => {
                let after = Duration::from_millis(self.timeouts.idle_ms);
                let what = "further part of the reply";
                ProviderError::TimedOut { url, what, setting: "idle_ms", after }
            }
        }
    }

    /// Returns the error of an answer that breaks the promises of the interface.
    pub(super) fn bad_answer(&self, why: String) -> ProviderError {
        ProviderError::BadAnswer { url: self.base_url.clone(), why: self.redact(why) }
    }

    /// Returns the error of an answer that was cut off or altered on its way.
    pub(super) fn damaged_answer(&self, why: String) -> ProviderError {
        ProviderError::Damaged { url: self.base_url.clone(), why: self.redact(why) }
    }

    /// Returns the error of a failure inside an answer that began well.
    pub(super) fn failure_error(&self, failure: ServerFailure) -> ProviderError {
        let (url, message) = (self.base_url.clone(), self.redact(failure.message));
        if failure.status.is_none_or(|status| REFUSALS.contains(&status)) && is_overflow(&message) {
            return ProviderError::Overflow { url, message };
        }
        match failure.status {
            Some(status) => ProviderError::Status { url, status, message, hint: "", retry_after: None },
            None => ProviderError::Failed { url, message, may_pass: failure.may_pass },
        }
    }

    /// Removes these credentials from the server's words from now on.
    pub(super) fn hide(&self, words: impl IntoIterator<Item = String>) {
        let mut hidden = self.hidden();
        let new: Vec<String> = words.into_iter().filter(|word| !hidden.further.contains(word)).collect();
        if new.is_empty() {
            return;
        }
        let mut further = std::mem::take(&mut hidden.further);
        further.extend(new);
        // The credentials of requests that ended long ago have expired.
        let many = further.len().saturating_sub(HIDDEN_MAX);
        further.drain(..many);
        *hidden = Hidden::new(hidden.key.take(), further);
    }

    /// Returns the keys that are to be removed from the server's words.
    pub(super) fn secrets(&self) -> Arc<Secrets> {
        Arc::clone(&self.hidden().secrets)
    }

    /// Removes keys from an error that the server made.
    fn redact(&self, text: String) -> String {
        match self.secrets().in_message(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    fn hidden(&self) -> MutexGuard<'_, Hidden> {
        // The list is whole even if the last holder of the lock panicked.
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The faults inside a stream of bytes.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamFault {
    #[error("the reply is too large")]
    TooLarge,
    #[error("{0}")]
    Broken(String),
    #[error("no data arrived")]
    Silent,
    #[error("no data arrived for too long")]
    Idle,
}

/// Creates a client that leaves at most `idle_max` connections open for further requests.
fn client(url: &Url, timeouts: Timeouts, headers: HeaderMap, idle_max: usize) -> reqwest::Result<Client> {
    let mut builder = Client::builder()
        .default_headers(headers)
        .connect_timeout(Duration::from_millis(timeouts.connect_ms))
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(idle_max)
        .redirect(reqwest::redirect::Policy::none())
        // Requests that are sent again are counted here.
        .retry(reqwest::retry::never().max_retries_per_request(0))
        .http1_only();
    builder = if url.scheme() == "https" {
        install_crypto();
        builder
    } else {
        // Plain HTTP needs no certificates; loading the system's costs more than a run.
        builder.tls_backend_preconfigured(no_certificates())
    };
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Returns true if a connection ended before an answer began.
fn is_hung_up(error: &reqwest::Error) -> bool {
    if error.is_connect() {
        return false;
    }
    let first: &dyn std::error::Error = error;
    let mut causes = std::iter::successors(Some(first), |error| error.source());
    causes.any(|cause| {
        let broken = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(broken, Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe))
            || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
    })
}

/// Returns the innermost cause, which is the informative one, and whether it is "connection refused".
fn innermost(error: &reqwest::Error) -> (String, bool) {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let refusal = cause.downcast_ref::<std::io::Error>();
    (cause.to_string(), refusal.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused))
}

/// Returns the error of a base URL that cannot be used.
pub(super) fn unusable_url(base_url: &str, why: &dyn std::fmt::Display) -> ProviderError {
    ProviderError::Setup(format!("cannot use base URL `{base_url}`: {why}"))
}

/// Returns the header that carries a key.
pub(super) fn bearer(key: &str) -> Result<HeaderValue, ProviderError> {
    let value = HeaderValue::from_str(&format!("Bearer {key}"));
    let mut value = value
        .map_err(|_| ProviderError::Setup("the API key has characters that no header allows".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns true if the URL's host is this machine.
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

/// Returns a client for a service that is no model server. It follows no redirects.
///
/// Returns [`reqwest::Error`] if the certificates of the system cannot be used.
pub fn plain_client(wait: Duration) -> reqwest::Result<Client> {
    install_crypto();
    Client::builder().timeout(wait).redirect(reqwest::redirect::Policy::none()).build()
}

/// Returns a client for a service that hands out credentials.
pub(super) fn for_credentials(host: &str, wait: Duration) -> reqwest::Result<Client> {
    install_crypto();
    let builder = Client::builder().timeout(wait).redirect(reqwest::redirect::Policy::none());
    // A machine's own metadata does not go through a proxy, and on most machines there is no such service.
    let is_near = host.parse::<std::net::IpAddr>().is_ok();
    if is_near { builder.no_proxy().connect_timeout(METADATA_CONNECT) } else { builder }.build()
}

fn install_crypto() {
    // A second installation fails, and the first one remains.
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
