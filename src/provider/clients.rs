//! Connections that many runs share: one client for each endpoint, with its open connections.
//!
//! The input is an endpoint. The output is the client for it, with everything that it has learned about its server. A
//! client is created when it is first needed.

use std::cell::RefCell;
use std::rc::Rc;

use super::bank::Bank;
use super::{Flow, ProviderError, bedrock, openai};
use crate::core::{BankEndpoint, BedrockEndpoint, Endpoint, OpenAiEndpoint};

/// The clients, by endpoint.
#[derive(Debug, Default)]
pub struct Clients {
    flow: Option<Flow>,
    openai: RefCell<Vec<(OpenAiEndpoint, Rc<openai::Client>)>>,
    bedrock: RefCell<Vec<(BedrockEndpoint, Rc<bedrock::BedrockConnection>)>>,
    /// The banks, by their folders.
    banks: RefCell<Vec<(String, Rc<Bank>)>>,
    /// The batches whose replies are used again in place of calls.
    reused: Rc<[Bank]>,
}

impl Clients {
    /// Creates an empty set of clients. Each server receives at most as many requests at once as `flow` allows.
    #[must_use]
    pub fn new(flow: Flow) -> Self {
        Self { flow: Some(flow), ..Self::default() }
    }

    /// Uses the replies of these batches again: a request that one of them has on record is not sent.
    #[must_use]
    pub fn reusing(self, reused: Rc<[Bank]>) -> Self {
        Self { reused, ..self }
    }

    /// Returns the batches whose replies are used again.
    pub(super) fn reused(&self) -> Rc<[Bank]> {
        Rc::clone(&self.reused)
    }

    /// Returns the last fault of an endpoint's servers, if each was left out at least `outs` times since it last
    /// worked.
    #[must_use]
    pub fn lost(&self, endpoint: &Endpoint, outs: u32) -> Option<String> {
        match endpoint {
            Endpoint::OpenAi(endpoint) => {
                let known = self.openai.borrow();
                known.iter().find(|(of, _)| of == &**endpoint)?.1.admission()?.lost(outs)
            }
            Endpoint::Bedrock(endpoint) => {
                let known = self.bedrock.borrow();
                known.iter().find(|(of, _)| of == &**endpoint)?.1.admission()?.lost(outs)
            }
            Endpoint::Mock(_) | Endpoint::Bank(_) => None,
        }
    }

    /// Returns the client for an OpenAI-compatible endpoint.
    pub(super) fn openai(&self, endpoint: &OpenAiEndpoint) -> Result<Rc<openai::Client>, ProviderError> {
        shared(&self.openai, endpoint, |endpoint| openai::Client::new(endpoint, self.flow))
    }

    /// Returns the client for a model of Bedrock.
    pub(super) fn bedrock(
        &self,
        endpoint: &BedrockEndpoint,
    ) -> Result<Rc<bedrock::BedrockConnection>, ProviderError> {
        shared(&self.bedrock, endpoint, |endpoint| bedrock::BedrockConnection::new(endpoint, self.flow))
    }

    /// Returns the bank of an endpoint. It is read when it is first needed.
    pub(super) fn bank(&self, endpoint: &BankEndpoint) -> Result<Rc<Bank>, ProviderError> {
        shared(&self.banks, &endpoint.folder, |folder| Bank::open(folder.as_ref()))
    }
}

fn shared<E: Clone + PartialEq, C>(
    known: &RefCell<Vec<(E, Rc<C>)>>,
    endpoint: &E,
    make: impl FnOnce(E) -> Result<C, ProviderError>,
) -> Result<Rc<C>, ProviderError> {
    // A list is enough, because a batch has a handful of endpoints.
    if let Some((_, client)) = known.borrow().iter().find(|(of, _)| of == endpoint) {
        return Ok(Rc::clone(client));
    }
    let client = Rc::new(make(endpoint.clone())?);
    known.borrow_mut().push((endpoint.clone(), Rc::clone(&client)));
    Ok(client)
}
