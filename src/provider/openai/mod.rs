//! The `openai` provider: chat completions of any compatible server.
//!
//! Structured output is negotiated: the schema is sent as `json_schema`; a server that refuses it is
//! asked again with `json_object`, and then with the prompt alone. What a server refused is
//! remembered for the run, and each reply records what held it, so that a weaker hold shows in the
//! result. The same goes for the two names of the token limit.

mod answer;
mod client;
mod info;
mod logprobs;
mod wire;

use std::cell::{Cell, OnceCell, RefCell};
use std::time::{Duration, Instant};

use backon::{ExponentialBuilder, Retryable};

pub use client::is_loopback;
pub use info::ServerInfo;

use super::launch::Lifeline;
use super::{Answer, OpenAiEndpoint, Progress, ProviderError, Quitting, Structured};
use crate::protocol::{Ask, ReplyShape};
use client::{Client, Form};

/// The longest that a server's Retry-After is obeyed.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(2);

/// Between two questions to a server that loads its model.
const LOADING_WAIT: Duration = Duration::from_secs(1);

/// An OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAi {
    client: Client,
    retries: u32,
    /// The strongest hold that the server has not refused.
    structured: Cell<Structured>,
    /// Whether the server wants `max_completion_tokens` in place of `max_tokens`.
    new_limit_name: Cell<bool>,
    /// Whether the server has not refused to tell probabilities.
    measures: Cell<bool>,
    /// Set if this program launched the server.
    lifeline: OnceCell<Lifeline>,
    /// Says when no call is to be made again any more.
    quitting: OnceCell<Quitting>,
}

impl OpenAi {
    /// Makes the client; connects to nothing yet.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Setup`].
    pub fn new(endpoint: OpenAiEndpoint) -> Result<Self, ProviderError> {
        let retries = endpoint.retries;
        Ok(Self {
            client: Client::new(endpoint)?,
            retries,
            structured: Cell::new(Structured::JsonSchema),
            new_limit_name: Cell::new(false),
            measures: Cell::new(true),
            lifeline: OnceCell::new(),
            quitting: OnceCell::new(),
        })
    }

    /// Never uses a stronger hold than this from here on.
    pub fn degrade_to(&self, structured: Structured) {
        self.structured.set(self.structured.get().max(structured));
    }

    /// Takes `lifeline` for its own if it belongs to this server.
    pub fn attach(&self, lifeline: &Lifeline) {
        if lifeline.serves(&self.client.base_url()) {
            // A second one would say the same.
            let _ = self.lifeline.set(lifeline.clone());
        }
    }

    /// Makes no call again once `quitting` says so.
    pub fn heed(&self, quitting: &Quitting) {
        // Set once, when the run begins.
        let _ = self.quitting.set(quitting.clone());
    }

    /// Calls the model; see [`super::Provider::ask`].
    ///
    /// A call that meets the end of a launched server is made again once the server is back, and one that meets a
    /// server which still loads its model, once that is loaded.
    ///
    /// # Errors
    ///
    /// [`ProviderError`].
    pub async fn ask(&self, ask: &Ask, progress: Progress<'_>) -> Result<Answer, ProviderError> {
        let mut attempts = 0;
        let Some(lifeline) = self.lifeline.get() else {
            return self.once_loaded(ask, progress, &mut attempts).await;
        };
        loop {
            let starts = lifeline.ready().await?;
            match self.negotiate(ask, progress, &mut attempts).await {
                Err(ProviderError::Unreachable { .. }) if lifeline.died_since(starts).await => {}
                other => return other,
            }
        }
    }

    /// Calls the model of a server that somebody else may have started a moment ago.
    async fn once_loaded(
        &self,
        ask: &Ask,
        progress: Progress<'_>,
        attempts: &mut u32,
    ) -> Result<Answer, ProviderError> {
        let patience = Instant::now() + Duration::from_millis(self.client.timeouts().ready_ms);
        let mut told = false;
        loop {
            match self.negotiate(ask, progress, attempts).await {
                Err(error) if error.is_loading() && Instant::now() < patience => {
                    if !told {
                        tracing::warn!("{error}; waiting until it is loaded");
                    }
                    told = true;
                    tokio::select! {
                        () = tokio::time::sleep(LOADING_WAIT) => {}
                        () = quit(self.quitting.get()) => return Err(error),
                    }
                }
                other => return other,
            }
        }
    }

    /// Calls the model with the strongest hold that the server takes.
    async fn negotiate(
        &self,
        ask: &Ask,
        progress: Progress<'_>,
        attempts: &mut u32,
    ) -> Result<Answer, ProviderError> {
        loop {
            let structured = match ask.shape {
                ReplyShape::Free => None,
                ReplyShape::Json { .. } => Some(self.structured.get()),
            };
            let form = Form {
                structured,
                new_limit_name: self.new_limit_name.get(),
                measured: ask.shape.measured().filter(|_| self.measures.get()),
            };
            let result = self.with_retries(ask, form, progress, attempts).await;
            match result {
                Ok(mut answer) => {
                    answer.attempts = *attempts;
                    answer.structured = structured;
                    return Ok(answer);
                }
                Err(error) if self.gives_way(&error, form) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends one form of the request, again after faults that may pass.
    async fn with_retries(
        &self,
        ask: &Ask,
        form: Form,
        progress: Progress<'_>,
        attempts: &mut u32,
    ) -> Result<Answer, ProviderError> {
        let sent = Cell::new(0);
        // The fault of the last attempt, while the next one is waited for.
        let failed = RefCell::new(None);
        let is_quitting = || self.quitting.get().is_some_and(|quitting| *quitting.borrow());
        let once = || {
            sent.set(sent.get() + 1);
            failed.take();
            self.client.complete(ask, form, progress)
        };
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(250))
            .with_max_delay(Duration::from_secs(30))
            .with_max_times(self.retries as usize)
            .with_jitter();
        let attempted = once
            .retry(backoff)
            .sleep(tokio::time::sleep)
            .when(|error: &ProviderError| error.is_retryable() && !is_quitting())
            .adjust(|error, planned| {
                let wait = error.retry_after().map(|wait| wait.min(RETRY_AFTER_MAX));
                planned.map(|planned| wait.unwrap_or(planned))
            })
            .notify(|error, wait| {
                tracing::warn!("{error}; next try in {wait:.1?}");
                failed.replace(Some(error.clone()));
            });
        let mut attempted = std::pin::pin!(attempted.into_future());
        let result = tokio::select! {
            result = &mut attempted => result,
            // A wait for the next attempt ends here; an attempt under way is awaited.
            () = quit(self.quitting.get()) => match failed.take() {
                Some(error) => Err(error),
                None => attempted.await,
            },
        };
        *attempts += sent.get();
        result
    }

    /// Weakens the request if the server refused its form; returns false if there is nothing left
    /// to give.
    fn gives_way(&self, error: &ProviderError, form: Form) -> bool {
        let ProviderError::Status { status: 400 | 403 | 422 | 501, message, .. } = error else {
            return false;
        };
        if message.to_ascii_lowercase().contains("logprob") && form.measured.is_some() {
            tracing::warn!("{error}; trying again without asking for probabilities");
            self.measures.set(false);
            return true;
        }
        if matches!(error, ProviderError::Status { status: 403, .. }) {
            return false;
        }
        if message.contains("max_completion_tokens") && !form.new_limit_name {
            self.new_limit_name.set(true);
            return true;
        }
        let weaker = match form.structured {
            Some(Structured::JsonSchema) => Structured::JsonObject,
            Some(Structured::JsonObject) => Structured::Prompt,
            Some(Structured::Prompt) | None => return false,
        };
        if !is_about_the_form(message) {
            return false;
        }
        tracing::warn!("{error}; trying again with a weaker hold on the reply's form");
        self.degrade_to(weaker);
        true
    }

    /// Asks the server what it is; see [`ServerInfo`].
    ///
    /// # Errors
    ///
    /// [`ProviderError`] if it cannot be reached or lists no models.
    pub async fn info(&self) -> Result<ServerInfo, ProviderError> {
        info::fetch(&self.client).await
    }
}

/// Resolves when no call is to be made again.
async fn quit(quitting: Option<&Quitting>) {
    if let Some(quitting) = quitting
        && quitting.clone().wait_for(|now| *now).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Finds out whether a server has come up.
#[derive(Debug)]
pub struct Probe(Client);

impl Probe {
    /// Makes a probe of the server at this base URL; connects to nothing yet.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Setup`].
    pub fn new(base_url: &str) -> Result<Self, ProviderError> {
        Ok(Self(Client::new(OpenAiEndpoint::bare(base_url))?))
    }

    /// Returns true if the server answers and has loaded its model.
    pub async fn is_ready(&self) -> bool {
        // llama.cpp lists its model while it still loads it, and says 503 here. Others have no such path.
        let health = self.0.get("/health").await;
        let is_loading = matches!(health, Err(ProviderError::Status { status: 503, .. }));
        !is_loading && info::fetch(&self.0).await.is_ok()
    }
}

/// Tells a refused response format from every other refusal: its message names the form, or nothing.
fn is_about_the_form(message: &str) -> bool {
    let lower = message.to_lowercase();
    let words = ["response_format", "schema", "grammar", "json", "structured", "guided", "(no message)"];
    words.iter().any(|word| lower.contains(word))
}
