//! A circuit breaker per endpoint: stops a batch when further calls would fail.
//!
//! The input is answered and failed calls, as they come. The output is the reason why further calls to an endpoint would fail, if
//! they would. An endpoint that answers again has a clean record. No clock is read here.

use crate::provider::{Clients, ProviderError};
use protocol::core::Endpoint;

/// The number of failures without an answer in between before the breaker opens.
struct FailureLimits {
    /// The failed calls whose reasons all other calls share; each call was repeated for a while.
    of_all: usize,
    /// The failed calls, for any reason.
    any: usize,
    /// The number of times that every server was left out, each time for longer.
    outs: u32,
}

/// The limits before the first answer: the address or a key may be wrong.
const AT_FIRST: FailureLimits = FailureLimits { of_all: 4, any: 16, outs: 3 };

/// The limits after an answer: a server may come back.
const LATER: FailureLimits = FailureLimits { of_all: 16, any: 64, outs: 10 };

/// The record of calls, by endpoint. A batch has a handful of endpoints.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker(Vec<(Endpoint, Calls)>);

/// Calls that have failed one after another.
#[derive(Debug, Default)]
struct Calls {
    of_all: usize,
    any: usize,
    was_answered: bool,
    /// The reason for the last failure.
    why: String,
}

impl CircuitBreaker {
    /// Records an answered call.
    pub(super) fn record_answer(&mut self, endpoint: &Endpoint) {
        *self.calls(endpoint) = Calls { was_answered: true, ..Calls::default() };
    }

    /// Records a failed call, once, however often it was repeated.
    pub(super) fn record_failure(&mut self, endpoint: &Endpoint, error: &ProviderError) {
        let calls = self.calls(endpoint);
        calls.of_all += usize::from(error.is_of_all());
        calls.any += 1;
        calls.why = error.to_string();
    }

    /// Returns why a run that needs all of these endpoints would fail, if it would.
    pub(super) fn predict_failure(&self, endpoints: &[Endpoint], clients: &Clients) -> Option<String> {
        for endpoint in endpoints {
            let calls = self.0.iter().find(|(of, _)| of == endpoint).map(|(_, calls)| calls);
            let limits = if calls.is_some_and(|calls| calls.was_answered) { LATER } else { AT_FIRST };
            if let Some(calls) = calls
                && (calls.of_all >= limits.of_all || calls.any >= limits.any)
            {
                return Some(calls.why.clone());
            }
            // A server that this program has launched is waited for while it restarts.
            if !endpoint.is_launched()
                && let Some(why) = clients.last_fault(endpoint, limits.outs)
            {
                return Some(why);
            }
        }
        None
    }

    fn calls(&mut self, endpoint: &Endpoint) -> &mut Calls {
        let known = self.0.iter().position(|(of, _)| of == endpoint);
        let at = known.unwrap_or_else(|| {
            self.0.push((endpoint.clone(), Calls::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}
