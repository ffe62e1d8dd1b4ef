//! Calls models on any OpenAI-compatible server or on Amazon Bedrock. A script or a bank of earlier replies can take their place.
//!
//! The input is an [`Ask`]. The output is a [`Completion`] with its cost, or a [`ProviderError`] with a remedy.
//! Retries, time-outs, limits and the negotiation of structured output happen here and nowhere else. Nothing here
//! decides anything about agreement, and nothing here trusts a server: replies are bounded in size and time, and
//! redirects are not followed. Keys never leave this module. A key that a server repeats is removed from errors,
//! headers and replies.

mod bank;
mod bedrock;
mod clients;
mod completion;
mod ending;
mod error;
mod failure;
mod http;
pub mod launch;
mod load;
mod mock;
mod openai;
mod receipt;
mod retry;
mod retry_after;
mod secret;

pub use bank::{Bank, CalledModel, ReusedReplies};
pub use bedrock::Bedrock;
pub use clients::Clients;
pub use completion::{CallProgress, Completion, OnProgress, PartialText, Quitting};
pub use error::ProviderError;
pub use http::{is_loopback, plain_client};
pub use load::Flow;
pub use mock::{Mock, MockScript, agreeing};
pub use openai::{OpenAi, Probe, ServerInfo};

use std::sync::Arc;

use crate::journal::Executed;
use crypto::Digest;
use protocol::Ask;
use protocol::core::{Endpoint, OptionalParameter, Structured};

/// A place where one agent's model is called.
#[derive(Debug)]
pub enum Provider {
    /// An OpenAI-compatible server.
    OpenAi(Box<OpenAi>),
    /// A model of Amazon Bedrock.
    Bedrock(Box<Bedrock>),
    Mock(Mock),
    /// A bank of earlier replies.
    Bank {
        bank: Arc<Bank>,
        /// The model whose replies are given.
        model: String,
    },
    /// A model some of whose replies are on record.
    Reusing {
        /// The batches that have them.
        reused: Arc<ReusedReplies>,
        model: CalledModel,
        /// The provider of that model, for all other requests.
        inner: Box<Provider>,
    },
}

impl Provider {
    /// Creates the provider for an endpoint, with the connections that exist for it. `agent` is the name of the agent
    /// that uses it.
    ///
    /// Returns [`ProviderError::Setup`] if the endpoint cannot be used at all, because a key is not set or a URL is not valid.
    pub fn new(endpoint: &Endpoint, agent: &str, clients: &Clients) -> Result<Self, ProviderError> {
        let reused = clients.reused_replies();
        let provider = match endpoint {
            Endpoint::OpenAi(endpoint) => {
                Self::OpenAi(Box::new(OpenAi::with_client(clients.openai(endpoint)?)))
            }
            Endpoint::Bedrock(endpoint) => {
                Self::Bedrock(Box::new(Bedrock::with_connection(clients.bedrock(endpoint)?)))
            }
            Endpoint::Mock { script } => Self::Mock(Mock::new(script, agent)?),
            Endpoint::Bank { folder, model, .. } => {
                return Ok(Self::Bank { bank: clients.bank(folder)?, model: model.clone() });
            }
        };
        if reused.is_empty() {
            return Ok(provider);
        }
        Ok(Self::Reusing { reused, model: CalledModel::new(endpoint), inner: Box::new(provider) })
    }

    /// Calls the model.
    ///
    /// Returns [`ProviderError`], after the retries that its kind allows. After [`ProviderError::Parameter`] the caller records
    /// the finding, calls [`Self::leave_out`], and asks again.
    pub async fn ask(&self, ask: &Ask, progress: OnProgress<'_>) -> Result<Completion, ProviderError> {
        match self {
            Self::OpenAi(server) => server.ask(ask, progress).await,
            Self::Bedrock(bedrock) => bedrock.ask(ask, progress).await,
            Self::Mock(mock) => mock.ask(ask).await,
            Self::Bank { bank, model } => bank.answer(model, ask),
            Self::Reusing { reused, model, inner } => match reused.answer(model, ask) {
                Some(known) => Ok(known),
                None => Box::pin(inner.ask(ask, progress)).await,
            },
        }
    }

    /// Returns the result that a bank has on record for a program with this key, if the provider is a bank.
    pub fn recorded_result(&self, key: Digest) -> Option<Executed> {
        match self {
            Self::Bank { bank, .. } => bank.recorded_result(key),
            Self::OpenAi(_) | Self::Bedrock(_) | Self::Mock(_) | Self::Reusing { .. } => None,
        }
    }

    /// Tells the provider that this program launched its server, if `lifeline` belongs to that server.
    pub fn attach(&self, lifeline: &launch::Lifeline) {
        match self {
            Self::OpenAi(server) => server.attach(lifeline),
            Self::Reusing { inner, .. } => inner.attach(lifeline),
            Self::Bedrock(_) | Self::Mock(_) | Self::Bank { .. } => {}
        }
    }

    /// Makes no further call once `quitting` is true.
    pub fn watch_shutdown(&self, quitting: &Quitting) {
        match self {
            Self::OpenAi(server) => server.watch_shutdown(quitting),
            Self::Bedrock(bedrock) => bedrock.watch_shutdown(quitting),
            Self::Reusing { inner, .. } => inner.watch_shutdown(quitting),
            Self::Mock(_) | Self::Bank { .. } => {}
        }
    }

    /// Leaves out a parameter of each request from now on.
    pub fn leave_out(&self, parameter: OptionalParameter) {
        match self {
            Self::OpenAi(server) => server.leave_out(parameter),
            Self::Reusing { inner, .. } => inner.leave_out(parameter),
            Self::Bedrock(_) | Self::Mock(_) | Self::Bank { .. } => {}
        }
    }

    /// Returns the parameters that the server has refused to any run of this process, with its words, and that this
    /// provider does not leave out yet.
    pub fn known_refusals(&self) -> Vec<(OptionalParameter, String)> {
        match self {
            Self::OpenAi(server) => server.known_refusals(),
            Self::Reusing { inner, .. } => inner.known_refusals(),
            Self::Bedrock(_) | Self::Mock(_) | Self::Bank { .. } => Vec::new(),
        }
    }

    /// Starts from a weaker form of structured output, as an earlier part of the run had to.
    pub fn degrade_to(&self, structured: Structured) {
        match self {
            Self::OpenAi(server) => server.degrade_to(structured),
            Self::Bedrock(bedrock) => bedrock.degrade_to(structured),
            Self::Reusing { inner, .. } => inner.degrade_to(structured),
            Self::Mock(_) | Self::Bank { .. } => {}
        }
    }
}
