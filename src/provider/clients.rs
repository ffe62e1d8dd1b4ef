//! Connections that many runs share: one client for each endpoint, with its open connections.
//!
//! In: an endpoint. Out: the client for it, made when it is wanted for the first time, and what it has learned of its server.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Flow, ProviderError, bedrock, openai};
use crate::core::{BedrockEndpoint, Endpoint, OpenAiEndpoint};

/// Clients by endpoint.
#[derive(Debug, Default)]
pub struct Clients {
    flow: Option<Flow>,
    openai: RefCell<Vec<(OpenAiEndpoint, Rc<openai::Client>)>>,
    bedrock: RefCell<Vec<(BedrockEndpoint, Rc<bedrock::BedrockConnection>)>>,
}

impl Clients {
    /// None yet; each server will be given so many requests at once.
    #[must_use]
    pub fn new(flow: Flow) -> Self {
        Self { flow: Some(flow), ..Self::default() }
    }

    /// What is wrong with the servers of an endpoint, if each was left out so many times since it was last well.
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
            Endpoint::Mock(_) => None,
        }
    }

    /// The client for an OpenAI-compatible endpoint.
    pub(super) fn openai(&self, endpoint: &OpenAiEndpoint) -> Result<Rc<openai::Client>, ProviderError> {
        shared(&self.openai, endpoint, |endpoint| openai::Client::new(endpoint, self.flow))
    }

    /// The client for a model of Bedrock.
    pub(super) fn bedrock(
        &self,
        endpoint: &BedrockEndpoint,
    ) -> Result<Rc<bedrock::BedrockConnection>, ProviderError> {
        shared(&self.bedrock, endpoint, |endpoint| bedrock::BedrockConnection::new(endpoint, self.flow))
    }
}

fn shared<E: Clone + PartialEq, C>(
    known: &RefCell<Vec<(E, Rc<C>)>>,
    endpoint: &E,
    make: impl FnOnce(E) -> Result<C, ProviderError>,
) -> Result<Rc<C>, ProviderError> {
    // A batch has a handful of endpoints.
    if let Some((_, client)) = known.borrow().iter().find(|(of, _)| of == endpoint) {
        return Ok(Rc::clone(client));
    }
    let client = Rc::new(make(endpoint.clone())?);
    known.borrow_mut().push((endpoint.clone(), Rc::clone(&client)));
    Ok(client)
}
