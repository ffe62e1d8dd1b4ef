//! The `openai` provider: chat completions of any compatible server.
//!
//! Structured output is negotiated. The schema is sent as `json_schema`. A server that refuses it is asked again with
//! `json_object`, and then with the prompt alone. A refusal is remembered as long as the client exists. Each reply
//! records the form that was used, so that a weaker form shows in the result. The same goes for the two names of the
//! token limit. A parameter that a server refuses and that may be left out ends the call, since the request without it
//! must be on record before it is made.

mod answer;
mod chunk;
mod client;
mod fields;
mod info;
mod logprobs;
mod wire;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::RequestForm;

use super::ProviderError;
use super::completion::{Completion, OnProgress, Quitting};
use super::launch::Lifeline;
use super::load::{Home, Permit};
use super::retry::RetryPolicy;
use protocol::core::{OpenAiEndpoint, OptionalParameter, Structured};
use protocol::{Ask, ReplyShape};

pub use info::ServerInfo;

pub(super) use client::{Client, admission};

/// The wait between two questions to a server that is loading its model.
const LOADING_WAIT: Duration = Duration::from_secs(1);

/// An OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAi {
    client: Arc<Client>,
    retry: RetryPolicy,
    /// The strongest form of structured output that may be used.
    structured: Cell<Structured>,
    /// The parameters that are left out of each request.
    left_out: RefCell<BTreeSet<OptionalParameter>>,
    /// The lifeline of the server, set if this program launched it.
    lifeline: OnceCell<Lifeline>,
    home: Home,
}

impl OpenAi {
    /// Creates the client, without connecting to anything yet.
    pub fn new(endpoint: OpenAiEndpoint) -> Result<Self, ProviderError> {
        Ok(Self::with_client(Arc::new(Client::alone(endpoint)?)))
    }

    /// Creates a provider that calls a server over shared connections.
    pub(super) fn with_client(client: Arc<Client>) -> Self {
        Self {
            retry: RetryPolicy::new(client.retries(), client.is_refused_at_once()),
            structured: Cell::new(Structured::JsonSchema),
            left_out: RefCell::new(client.left_out()),
            lifeline: OnceCell::new(),
            home: Home::default(),
            client,
        }
    }

    /// Leaves out a parameter of each request from now on.
    pub fn leave_out(&self, parameter: OptionalParameter) {
        self.left_out.borrow_mut().insert(parameter);
    }

    /// Returns the parameters that the server has refused to any run, with its words, and that are not left out yet.
    pub fn known_refusals(&self) -> Vec<(OptionalParameter, String)> {
        let mut refusals = self.client.refusals();
        refusals.retain(|(parameter, _)| !self.left_out.borrow().contains(parameter));
        refusals
    }

    /// Uses no stronger form of structured output than this from now on.
    pub fn degrade_to(&self, structured: Structured) {
        self.structured.set(self.structured.get().max(structured));
    }

    /// Takes `lifeline` as its own if it belongs to this server.
    pub fn attach(&self, lifeline: &Lifeline) {
        if lifeline.serves(&self.client.base_url()) {
            // A second lifeline would say the same.
            let _ = self.lifeline.set(lifeline.clone());
        }
    }

    /// Makes no further call once `quitting` is true.
    pub fn watch_shutdown(&self, quitting: &Quitting) {
        self.retry.watch_shutdown(quitting);
    }

    /// Calls the model; see [`super::Provider::ask`].
    ///
    /// A call that meets the end of a launched server is made again once the server is back. A call that meets a server
    /// which is still loading its model is made again once the model is loaded.
    pub async fn ask(&self, ask: &Ask, progress: OnProgress<'_>) -> Result<Completion, ProviderError> {
        let requests = Cell::new(0);
        let Some(lifeline) = self.lifeline.get() else {
            return self.ask_once_loaded(ask, progress, &requests).await;
        };
        loop {
            let starts = lifeline.ready().await?;
            match self.negotiate(ask, progress, &requests).await {
                Err(ProviderError::Unreachable { .. }) if lifeline.died_since(starts).await => {}
                other => return other,
            }
        }
    }

    /// Calls the model of a server that another program may have started a moment ago.
    async fn ask_once_loaded(
        &self,
        ask: &Ask,
        progress: OnProgress<'_>,
        requests: &Cell<u32>,
    ) -> Result<Completion, ProviderError> {
        let deadline = Instant::now() + Duration::from_millis(self.client.timeouts().ready_ms);
        let mut has_warned = false;
        loop {
            match self.negotiate(ask, progress, requests).await {
                Err(error) if error.is_loading() && Instant::now() < deadline => {
                    if !has_warned {
                        tracing::warn!("{error}; waiting until the model is loaded");
                    }
                    has_warned = true;
                    tokio::select! {
                        () = tokio::time::sleep(LOADING_WAIT) => {}
                        () = self.retry.quit() => return Err(error),
                    }
                }
                other => return other,
            }
        }
    }

    /// Calls the model with the strongest form of structured output that the server accepts.
    async fn negotiate(
        &self,
        ask: &Ask,
        progress: OnProgress<'_>,
        requests: &Cell<u32>,
    ) -> Result<Completion, ProviderError> {
        loop {
            let manners = self.client.manners();
            let left_out = self.left_out.borrow().clone();
            let structured = match ask.shape {
                ReplyShape::Free => None,
                ReplyShape::Json { .. } if left_out.contains(&OptionalParameter::ResponseFormat) => {
                    Some(Structured::Prompt)
                }
                ReplyShape::Json { .. } => Some(self.structured.get().max(manners.structured)),
            };
            let is_measured = manners.measures && !left_out.contains(&OptionalParameter::Logprobs);
            let form = RequestForm {
                structured,
                new_limit_name: manners.new_limit_name,
                measured: if is_measured { ask.shape.measured() } else { None },
                left_out: &left_out,
            };
            match self.retry.run(|| self.send_once(ask, form, progress, requests), progress).await {
                Ok(mut answer) => {
                    answer.attempts = requests.get();
                    answer.structured = structured;
                    return Ok(answer);
                }
                Err(error) => {
                    if let Some(refused) = self.refused_parameter(&error, form) {
                        return Err(refused);
                    }
                    if !self.weaken(&error, form) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Sends one form of the request once its turn has come.
    async fn send_once(
        &self,
        ask: &Ask,
        form: RequestForm<'_>,
        progress: OnProgress<'_>,
        requests: &Cell<u32>,
    ) -> Result<Completion, ProviderError> {
        let send = async |permit: Option<&Permit<'_>>| {
            self.client.complete(ask, form, progress, requests, permit).await
        };
        let done = self.home.send(self.client.admission(), self.retry.quit(), send).await;
        done.unwrap_or_else(|| Err(self.client.given_up()))
    }

    /// Returns the error for a parameter that the server refused and that may be left out, if it is still sent.
    fn refused_parameter(&self, error: &ProviderError, form: RequestForm<'_>) -> Option<ProviderError> {
        let ProviderError::Status { status: 400 | 422, message, url, .. } = error else { return None };
        let parameter = OptionalParameter::ALL.into_iter().find(|&parameter| {
            let is_negotiated =
                matches!(parameter, OptionalParameter::Logprobs | OptionalParameter::ResponseFormat);
            !is_negotiated && self.client.sends(parameter, form) && has_word(message, parameter.name())
        })?;
        if self.client.learn_refusal(parameter, message) {
            tracing::warn!("{error}; trying again without `{parameter}`");
        }
        Some(ProviderError::Parameter { url: url.clone(), parameter, message: message.clone() })
    }

    /// Weakens the request if the server refused its form. Returns false if there is nothing left to weaken.
    fn weaken(&self, error: &ProviderError, form: RequestForm<'_>) -> bool {
        let ProviderError::Status { status: 400 | 403 | 422 | 501, message, .. } = error else {
            return false;
        };
        if message.to_ascii_lowercase().contains("logprob") && form.measured.is_some() {
            tracing::warn!("{error}; trying again without asking for probabilities");
            self.client.learn(|manners| manners.measures = false);
            return true;
        }
        if matches!(error, ProviderError::Status { status: 403, .. }) {
            return false;
        }
        if wants_new_limit_name(message) && !form.new_limit_name {
            self.client.learn(|manners| manners.new_limit_name = true);
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
        tracing::warn!("{error}; trying again with weaker structured output");
        self.client.learn(|manners| manners.structured = manners.structured.max(weaker));
        true
    }

    /// Asks the server about itself; see [`ServerInfo`].
    ///
    /// Returns [`ProviderError`] if it cannot be reached or lists no models.
    pub async fn info(&self) -> Result<ServerInfo, ProviderError> {
        info::fetch(&self.client).await
    }

    /// Asks as [`Self::info`] does, and also for the version of the server's program.
    pub async fn describe(&self) -> Result<ServerInfo, ProviderError> {
        info::describe(&self.client).await
    }

    /// Returns the number of tokens in a text by the server's own count, or nothing if the server does not count for
    /// others (llama.cpp and vLLM do).
    pub async fn count_tokens(&self, text: &str) -> Option<u64> {
        info::count_tokens(&self.client, text).await
    }
}

/// A probe that finds out whether a server has come up.
#[derive(Debug)]
pub struct Probe(Client);

impl Probe {
    /// Creates a probe of the server at this base URL, without connecting to anything yet.
    pub fn new(base_url: &str) -> Result<Self, ProviderError> {
        Ok(Self(Client::alone(OpenAiEndpoint::bare(base_url))?))
    }

    /// Returns true if the server answers and has loaded its model.
    pub async fn is_ready(&self) -> bool {
        // llama.cpp lists its model while it is still loading it, and returns 503 here. Other servers have no such
        // path.
        let health = self.0.get("/health").await;
        let is_loading = matches!(health, Err(ProviderError::Status { status: 503, .. }));
        !is_loading && info::fetch(&self.0).await.is_ok()
    }
}

/// Returns true if a message has this name as a word of its own.
fn has_word(message: &str, name: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}

/// Returns true if a refusal says that the limit of tokens has another name.
fn wants_new_limit_name(message: &str) -> bool {
    let unknown = ["unsupported", "not supported", "unknown", "unrecognized", "not permitted", "deprecated"];
    let lower = message.to_ascii_lowercase();
    lower.contains("max_completion_tokens")
        || has_word(message, "max_tokens") && unknown.iter().any(|word| lower.contains(word))
}

/// Returns true if a refusal is about the response format: its message names the form, or there is no message.
fn is_about_the_form(message: &str) -> bool {
    let lower = message.to_lowercase();
    let words = ["response_format", "schema", "grammar", "json", "structured", "guided", "(no message)"];
    words.iter().any(|word| lower.contains(word))
}
