//! The `bedrock` provider: Amazon Bedrock's Converse interface, with whole replies and streamed ones.
//!
//! Requests are signed with the credentials that AWS tools would find, or carry Bedrock's own key. Structured output is
//! negotiated as with other servers. The schema is the form of the output or, for models without such a form, the input
//! of a tool that must be called. The last resort is the prompt alone. Converse supports neither seeds nor the
//! probabilities of tokens.

mod answer;
mod sign;
mod stream;
mod wire;

use std::cell::Cell;
use std::sync::Arc;

use answer::ConverseReply;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, Url};
use sign::SigV4Signer;

use super::completion::{Completion, OnProgress, Quitting};
use super::http::{Http, bearer, unusable_url};
use super::load::{Admission, Home, Permit};
use super::receipt::ReceiptParts;
use super::retry::RetryPolicy;
use super::{Flow, ProviderError};
use protocol::core::{BedrockEndpoint, Structured};
use protocol::{Ask, ReplyShape};

/// The characters to encode in a segment of a path. AWS tools encode the same ones, and so does the signature.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The variable with Bedrock's own key, which comes before all other credentials.
const KEY: &str = "AWS_BEARER_TOKEN_BEDROCK";

/// The type of a streamed reply.
const EVENT_STREAM: &str = "application/vnd.amazon.eventstream";

/// A model of Amazon Bedrock.
#[derive(Debug)]
pub struct Bedrock {
    client: Arc<BedrockConnection>,
    retry: RetryPolicy,
    /// The strongest form of structured output that the model has not refused.
    structured: Cell<Structured>,
    home: Home,
}

/// A connection to one model.
#[derive(Debug)]
pub(super) struct BedrockConnection {
    http: Http,
    endpoint: BedrockEndpoint,
    /// The signer of requests; `None` if a key takes the place of a signature.
    signer: Option<SigV4Signer>,
    url: Url,
    admission: Option<Admission>,
}

impl BedrockConnection {
    /// Returns the admission to the service, if there is anything to decide.
    pub(super) fn admission(&self) -> Option<&Admission> {
        self.admission.as_ref()
    }

    /// Creates the client, without connecting to anything yet.
    pub(super) fn new(endpoint: BedrockEndpoint, flow: Option<Flow>) -> Result<Self, ProviderError> {
        let key = std::env::var(KEY).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        let mut headers = HeaderMap::new();
        if let Some(key) = &key {
            headers.insert("authorization", bearer(key)?);
        }
        let signer = match key {
            Some(_) => None,
            None => Some(SigV4Signer::new(&endpoint.region, endpoint.profile.as_deref())),
        };
        let denied = "; check the AWS credentials, and that the account may use this model in this Region";
        let http = Http::new(&endpoint.base_url, endpoint.timeouts, headers, key, denied)?;
        let model = utf8_percent_encode(&endpoint.model, SEGMENT);
        let action = if endpoint.stream { "converse-stream" } else { "converse" };
        let url = Url::parse(&format!("{}/model/{model}/{action}", endpoint.base_url))
            .map_err(|why| unusable_url(&endpoint.base_url, &why))?;
        let admission = Admission::new([&endpoint.base_url].into_iter(), flow, endpoint.calls_at_once);
        Ok(Self { http, endpoint, signer, url, admission })
    }

    /// Returns the error of a request that was never sent, because the run is being ended.
    fn given_up(&self) -> ProviderError {
        ProviderError::given_up(&self.endpoint.base_url)
    }

    /// Sends one form of the request.
    async fn converse(
        &self,
        ask: &Ask,
        structured: Option<Structured>,
        progress: OnProgress<'_>,
        requests: &Cell<u32>,
        permit: Option<&Permit<'_>>,
    ) -> Result<Completion, ProviderError> {
        let request = wire::ConverseRequest::new(ask, structured);
        let body = serde_json::to_vec(&request)
            .map_err(|e| ProviderError::Setup(format!("the request cannot be written as JSON: {e}")))?;
        let mut request = self.http.post(self.url.clone()).header(CONTENT_TYPE, sign::JSON);
        if let Some(signer) = &self.signer {
            // Each attempt has its own signature, because a signature expires within minutes.
            let signed = signer.sign(&self.url, &body).await;
            // A service may repeat the credentials that it refuses.
            self.http.hide(signer.take_found());
            request = request.headers(signed?);
        }
        let read = async |response| {
            if let Some(permit) = permit
                && self.endpoint.stream
            {
                permit.mark_answered();
            }
            self.collect(response, progress).await
        };
        let collected = self.http.exchange(request.body(body), self.endpoint.stream, requests, read).await?;
        collected.into_answer(ask, &self.http.secrets()).map_err(|why| self.http.damaged_answer(why))
    }

    async fn collect(
        &self,
        response: Response,
        progress: OnProgress<'_>,
    ) -> Result<ConverseReply, ProviderError> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
        if kind.starts_with(EVENT_STREAM) {
            return stream::collect(&self.http, response, progress).await;
        }
        let receipt = ReceiptParts::new(&response, stream::REQUEST_ID);
        let body = self.http.body(response).await?;
        ConverseReply::read_whole(&body, receipt, &self.http.secrets())
            .map_err(|why| self.http.bad_answer(why))
    }
}

impl Bedrock {
    /// Creates the client, without connecting to anything yet.
    pub fn new(endpoint: BedrockEndpoint) -> Result<Self, ProviderError> {
        Ok(Self::with_connection(Arc::new(BedrockConnection::new(endpoint, None)?)))
    }

    /// Creates a provider that calls a model over shared connections.
    pub(super) fn with_connection(client: Arc<BedrockConnection>) -> Self {
        let retry = RetryPolicy::new(client.endpoint.retries, false);
        let structured = Cell::new(Structured::JsonSchema);
        Self { client, retry, structured, home: Home::default() }
    }

    /// Uses no stronger form of structured output than this from now on.
    pub fn degrade_to(&self, structured: Structured) {
        self.structured.set(self.structured.get().max(structured));
    }

    /// Makes no further call once `quitting` is true.
    pub fn watch_shutdown(&self, quitting: &Quitting) {
        self.retry.watch_shutdown(quitting);
    }

    /// Calls the model; see [`super::Provider::ask`].
    pub async fn ask(&self, ask: &Ask, progress: OnProgress<'_>) -> Result<Completion, ProviderError> {
        let requests = Cell::new(0);
        loop {
            let structured = match ask.shape {
                ReplyShape::Free => None,
                ReplyShape::Json { .. } => Some(self.structured.get()),
            };
            let attempt = self.retry.run(|| self.send_once(ask, structured, progress, &requests), progress);
            match attempt.await {
                Ok(answer) => return Ok(Completion { structured, attempts: requests.get(), ..answer }),
                Err(error) if self.weaken(&error, structured) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends one form of the request once its turn has come.
    async fn send_once(
        &self,
        ask: &Ask,
        structured: Option<Structured>,
        progress: OnProgress<'_>,
        requests: &Cell<u32>,
    ) -> Result<Completion, ProviderError> {
        let client = &self.client;
        let send = async |permit: Option<&Permit<'_>>| {
            client.converse(ask, structured, progress, requests, permit).await
        };
        let done = self.home.send(client.admission(), self.retry.quit(), send).await;
        done.unwrap_or_else(|| Err(client.given_up()))
    }

    /// Weakens the structured output if the model refused it. Returns false if there is no weaker form.
    fn weaken(&self, error: &ProviderError, structured: Option<Structured>) -> bool {
        let ProviderError::Status { status: 400, message, .. } = error else { return false };
        let weaker = match structured {
            Some(Structured::JsonSchema) => Structured::JsonObject,
            Some(Structured::JsonObject) => Structured::Prompt,
            Some(Structured::Prompt) | None => return false,
        };
        let message = message.to_lowercase();
        let form = ["outputconfig", "output_config", "textformat", "structured", "schema", "tool", "json"];
        if !form.iter().any(|word| message.contains(word)) {
            return false;
        }
        tracing::warn!("{error}; trying again with weaker structured output");
        self.degrade_to(weaker);
        true
    }
}
