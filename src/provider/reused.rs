//! Replies that earlier batches have on record, used again in place of calls.
//!
//! The input is the batches, and then each request. The output is the reply on record, if there is one, and at the end the number of
//! requests that had one. Nothing is called here: a request without such a reply goes on to the model.

use std::sync::atomic::{AtomicU64, Ordering};

use super::bank::{Bank, CalledModel};
use super::completion::Completion;
use protocol::Ask;

/// Earlier batches, and how many requests they have answered.
#[derive(Debug, Default)]
pub struct Reused {
    banks: Vec<Bank>,
    found: AtomicU64,
    missed: AtomicU64,
}

impl Reused {
    /// Uses the replies of these batches.
    pub fn new(banks: Vec<Bank>) -> Self {
        Self { banks, ..Self::default() }
    }

    /// Returns true if there is no batch.
    pub(super) fn is_empty(&self) -> bool {
        self.banks.is_empty()
    }

    /// Returns the reply that the first batch which has one has on record for this request from this model.
    pub(super) fn answer(&self, model: &CalledModel, ask: &Ask) -> Option<Completion> {
        let answer = self.banks.iter().find_map(|bank| bank.first(model, ask));
        let count = if answer.is_some() { &self.found } else { &self.missed };
        count.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Returns the number of requests that had a reply on record, and the number of all requests.
    pub fn counts(&self) -> (u64, u64) {
        let found = self.found.load(Ordering::Relaxed);
        (found, found + self.missed.load(Ordering::Relaxed))
    }
}
