//! Where models are called: any OpenAI-compatible server, Amazon Bedrock, or a script.
//!
//! In: an [`Ask`]. Out: a [`Completion`] with what it took, or a [`ProviderError`] that says what to do.
//! Retries, time-outs, limits and the negotiation of structured output happen here and nowhere
//! else. Nothing here decides anything about agreement, and nothing here trusts a server: replies
//! are bounded in size and time, redirects are not followed, and keys never leave this module: a key
//! that a server repeats is taken out of errors, headers and replies.

mod bedrock;
mod clients;
mod completion;
mod error;
mod http;
pub mod launch;
mod load;
mod mock;
mod openai;
mod receipt;
mod retry;
mod retry_after;
mod secret;

pub use bedrock::Bedrock;
pub use clients::Clients;
pub use completion::{CallProgress, Completion, OnProgress, Quitting, TextSoFar};
pub use error::ProviderError;
pub use http::is_loopback;
pub use load::Flow;
pub use mock::{Mock, MockScript, ScriptError, agreeing};
pub use openai::{OpenAi, Probe, ServerInfo};

use crate::core::{Endpoint, Structured};
use crate::protocol::Ask;

/// A place where one agent's model is called.
#[derive(Debug)]
pub enum Provider {
    /// An OpenAI-compatible server.
    OpenAi(Box<OpenAi>),
    /// A model of Amazon Bedrock.
    Bedrock(Box<Bedrock>),
    /// A script.
    Mock(Mock),
}

impl Provider {
    /// Makes the provider for an endpoint, with the connections that are there for it; `agent` is the name of the agent that
    /// uses it.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Setup`] if the endpoint cannot be used at all: a key that is not set, a URL
    /// that is none.
    pub fn new(endpoint: &Endpoint, agent: &str, clients: &Clients) -> Result<Self, ProviderError> {
        Ok(match endpoint {
            Endpoint::OpenAi(endpoint) => {
                Self::OpenAi(Box::new(OpenAi::with_client(clients.openai(endpoint)?)))
            }
            Endpoint::Bedrock(endpoint) => {
                Self::Bedrock(Box::new(Bedrock::with_connection(clients.bedrock(endpoint)?)))
            }
            Endpoint::Mock(endpoint) => Self::Mock(Mock::new(endpoint, agent)?),
        })
    }

    /// Calls the model.
    ///
    /// # Errors
    ///
    /// [`ProviderError`], after the retries that its kind allows.
    pub async fn ask(&self, ask: &Ask, progress: OnProgress<'_>) -> Result<Completion, ProviderError> {
        match self {
            Self::OpenAi(server) => server.ask(ask, progress).await,
            Self::Bedrock(bedrock) => bedrock.ask(ask, progress).await,
            Self::Mock(mock) => mock.ask(ask).await,
        }
    }

    /// Tells the provider that its server was launched by this program, if `lifeline` is its own.
    pub fn attach(&self, lifeline: &launch::Lifeline) {
        match self {
            Self::OpenAi(server) => server.attach(lifeline),
            Self::Bedrock(_) | Self::Mock(_) => {}
        }
    }

    /// Makes no call again once `quitting` says so.
    pub fn watch_shutdown(&self, quitting: &Quitting) {
        match self {
            Self::OpenAi(server) => server.watch_shutdown(quitting),
            Self::Bedrock(bedrock) => bedrock.watch_shutdown(quitting),
            Self::Mock(_) => {}
        }
    }

    /// Starts from a weaker way of holding the server to a schema, as an earlier part of the run
    /// had to.
    pub fn degrade_to(&self, structured: Structured) {
        match self {
            Self::OpenAi(server) => server.degrade_to(structured),
            Self::Bedrock(bedrock) => bedrock.degrade_to(structured),
            Self::Mock(_) => {}
        }
    }
}
