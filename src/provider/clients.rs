//! Connections that many runs share: one client for each endpoint, with its open connections.
//!
//! The input is an endpoint. The output is the client for it, with everything that it has learned about its server. A
//! client is created when it is first needed. Runs on several threads share it: a server on a person's own machine
//! serves few connections, and does not wait for one thread to give one up.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::bank::Bank;
use super::load::Admission;
use super::{Flow, ProviderError, ReusedReplies, bedrock, openai};
use protocol::core::{BedrockEndpoint, Endpoint, OpenAiEndpoint};

/// Things by what each was made for. A list is enough, because a batch has a handful of endpoints.
type ByEndpoint<E, C> = Mutex<Vec<(E, Arc<C>)>>;

/// The addresses of servers with the same models, and the limit of requests that their configuration sets.
type Servers = (Vec<String>, Option<NonZeroU32>);

/// The clients, by endpoint.
#[derive(Debug, Default)]
pub struct Clients {
    flow: Option<Flow>,
    openai: ByEndpoint<OpenAiEndpoint, openai::Client>,
    /// The admissions to servers. All models on the same servers share one.
    admissions: ByEndpoint<Servers, Option<Admission>>,
    bedrock: ByEndpoint<BedrockEndpoint, bedrock::BedrockConnection>,
    /// The banks, by their folders.
    banks: ByEndpoint<String, Bank>,
    /// The batches whose replies are used again in place of calls.
    reused: Arc<ReusedReplies>,
}

impl Clients {
    /// Creates an empty set of clients. Each server receives at most as many requests at once as `flow` allows.
    pub fn new(flow: Flow) -> Self {
        Self { flow: Some(flow), ..Self::default() }
    }

    /// Uses the replies of these batches again: a request that one of them has on record is not sent.
    pub fn reusing(self, reused: Arc<ReusedReplies>) -> Self {
        Self { reused, ..self }
    }

    /// Returns the batches whose replies are used again.
    pub(super) fn reused_replies(&self) -> Arc<ReusedReplies> {
        Arc::clone(&self.reused)
    }

    /// Returns the last fault of an endpoint's servers, if each was left out at least `outs` times since it last
    /// worked.
    pub fn last_fault(&self, endpoint: &Endpoint, outs: u32) -> Option<String> {
        self.of_servers(endpoint, |servers| servers.last_fault(outs))
    }

    /// Returns the time after which one of an endpoint's servers is tried again, if all are gone at present. A new call
    /// would only wait for that.
    pub fn outage(&self, endpoint: &Endpoint) -> Option<Duration> {
        self.of_servers(endpoint, Admission::outage)
    }

    /// Returns what is known of an endpoint's servers, if any was called.
    fn of_servers<T>(&self, endpoint: &Endpoint, known: impl FnOnce(&Admission) -> Option<T>) -> Option<T> {
        match endpoint {
            Endpoint::OpenAi(endpoint) => {
                let (admissions, servers) = (lock(&self.admissions), servers(endpoint));
                known(admissions.iter().find(|(of, _)| *of == servers)?.1.as_ref().as_ref()?)
            }
            Endpoint::Bedrock(endpoint) => {
                let clients = lock(&self.bedrock);
                known(clients.iter().find(|(of, _)| of == &**endpoint)?.1.admission()?)
            }
            Endpoint::Mock { .. } | Endpoint::Bank { .. } => None,
        }
    }

    /// Returns the client for an OpenAI-compatible endpoint.
    pub(super) fn openai(&self, endpoint: &OpenAiEndpoint) -> Result<Arc<openai::Client>, ProviderError> {
        find_or_make(&self.openai, endpoint, |endpoint| {
            let admission = find_or_make(&self.admissions, &servers(&endpoint), |_| {
                Ok(openai::admission(&endpoint, self.flow))
            })?;
            openai::Client::new(endpoint, admission)
        })
    }

    /// Returns the client for a model of Bedrock.
    pub(super) fn bedrock(
        &self,
        endpoint: &BedrockEndpoint,
    ) -> Result<Arc<bedrock::BedrockConnection>, ProviderError> {
        find_or_make(&self.bedrock, endpoint, |endpoint| bedrock::BedrockConnection::new(endpoint, self.flow))
    }

    /// Returns the bank in a folder. It is read when it is first needed.
    pub(super) fn bank(&self, folder: &str) -> Result<Arc<Bank>, ProviderError> {
        find_or_make(&self.banks, &folder.to_owned(), |folder| Bank::open(folder.as_ref()))
    }
}

/// Returns the servers of an endpoint, whatever its model.
fn servers(endpoint: &OpenAiEndpoint) -> Servers {
    (endpoint.base_urls().map(str::to_owned).collect(), endpoint.calls_at_once)
}

fn find_or_make<E: Clone + PartialEq, C>(
    known: &ByEndpoint<E, C>,
    endpoint: &E,
    make: impl FnOnce(E) -> Result<C, ProviderError>,
) -> Result<Arc<C>, ProviderError> {
    // The lock is held meanwhile, so that two threads do not both read a bank.
    let mut known = lock(known);
    if let Some((_, client)) = known.iter().find(|(of, _)| of == endpoint) {
        return Ok(Arc::clone(client));
    }
    let client = Arc::new(make(endpoint.clone())?);
    known.push((endpoint.clone(), Arc::clone(&client)));
    Ok(client)
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock was held has added nothing.
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
