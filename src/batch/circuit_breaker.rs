//! Whether it is of any use to call an endpoint.
//!
//! In: calls that were answered and calls that failed, as they come. Out: why an endpoint is called in vain, if it is. One that
//! answers again is as good as new. No clock is read here.

use crate::core::Endpoint;
use crate::provider::{Clients, ProviderError};

/// When it is said that all further calls would fail too: after what has gone wrong without an answer in between.
struct Patience {
    /// So many calls, for reasons that all others share; each was repeated for a while.
    of_all: usize,
    /// So many, for whatever reason.
    any: usize,
    /// So many times every server was left out, each time for longer.
    outs: u32,
}

/// Where there was no answer yet: the address may be wrong, or a key.
const AT_FIRST: Patience = Patience { of_all: 4, any: 16, outs: 3 };

/// Where there was one: a server may come back.
const LATER: Patience = Patience { of_all: 16, any: 64, outs: 10 };

/// What has become of calls, by endpoint. A batch has a handful of them.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker(Vec<(Endpoint, Calls)>);

/// Calls that have failed one after another.
#[derive(Debug, Default)]
struct Calls {
    of_all: usize,
    any: usize,
    was_answered: bool,
    /// Why the last one failed.
    why: String,
}

impl CircuitBreaker {
    /// A call was answered.
    pub(super) fn answered(&mut self, endpoint: &Endpoint) {
        *self.calls(endpoint) = Calls { was_answered: true, ..Calls::default() };
    }

    /// A call has failed, however often it was repeated.
    pub(super) fn failed(&mut self, endpoint: &Endpoint, error: &ProviderError) {
        let calls = self.calls(endpoint);
        calls.of_all += usize::from(error.is_of_all());
        calls.any += 1;
        calls.why = error.to_string();
    }

    /// Why a run that needs all of these endpoints would fail, if it would.
    pub(super) fn verdict(&self, endpoints: &[Endpoint], clients: &Clients) -> Option<String> {
        endpoints.iter().find_map(|endpoint| {
            let calls = self.0.iter().find(|(of, _)| of == endpoint).map(|(_, calls)| calls);
            let patience = if calls.is_some_and(|calls| calls.was_answered) { LATER } else { AT_FIRST };
            let enough = |calls: &&Calls| calls.of_all >= patience.of_all || calls.any >= patience.any;
            // One that this program has launched is waited for while it is started again.
            let lost = || if endpoint.is_launched() { None } else { clients.lost(endpoint, patience.outs) };
            calls.filter(enough).map(|calls| calls.why.clone()).or_else(lost)
        })
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
