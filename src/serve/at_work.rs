//! The agents of a run that are at work, and the words that they have written.
//!
//! The input is the events of a run. The output is its open calls, in order. Nothing of it is kept: once a reply is on record, its call is
//! not here any more. The words of a reply are taken only while a page looks on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::RunEvent;
use crate::protocol::{CallId, Step};

/// The time between two looks at the words of a reply.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The open calls and executions of a run.
#[derive(Debug, Default)]
pub(super) struct AtWork {
    pub(super) calls: BTreeMap<CallId, OpenCall>,
    /// The number of checks and programs that are running.
    pub(super) executions: usize,
}

/// A call whose reply is awaited.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) agent: String,
    /// The number of parts received, about one per token.
    pub(super) tokens: u64,
    /// The words received, up to the last whole one.
    pub(super) words: String,
    /// Whether the last request failed, and another one has brought nothing yet.
    has_failed: bool,
    looked: Option<Instant>,
}

impl AtWork {
    /// Takes an event of the run. Returns whether anything is different.
    pub(super) fn take(&mut self, event: &RunEvent<'_>) -> bool {
        match event {
            RunEvent::Calling { agent, ask } => {
                let agent = (*agent).to_owned();
                let call =
                    OpenCall { agent, tokens: 0, words: String::new(), has_failed: false, looked: None };
                self.calls.insert(ask.call, call);
                true
            }
            RunEvent::Streaming { call, tokens, text } => {
                let is_due = |open: &&mut OpenCall| open.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
                let Some(open) = self.calls.get_mut(call).filter(is_due) else { return false };
                (open.tokens, open.words, open.has_failed) = (*tokens, text.whole_words(), false);
                open.looked = Some(Instant::now());
                true
            }
            RunEvent::Again { call, .. } => {
                if let Some(open) = self.calls.get_mut(call) {
                    (open.tokens, open.words, open.has_failed) = (0, String::new(), true);
                }
                true
            }
            RunEvent::Answered { replied, .. } => self.calls.remove(&replied.call).is_some(),
            RunEvent::Failed { call, .. } | RunEvent::Cancelled { call, .. } => {
                self.calls.remove(call).is_some()
            }
            RunEvent::Executing { .. } => {
                self.executions += 1;
                true
            }
            RunEvent::Executed { .. } => {
                self.executions = self.executions.saturating_sub(1);
                true
            }
            RunEvent::Writing
            | RunEvent::Written(_)
            | RunEvent::Remarked { .. }
            | RunEvent::Stopping { .. } => false,
        }
    }
}

impl OpenCall {
    /// Returns what the author of this call is doing, in words. `step` is the step of the call.
    pub(super) fn doing(&self, step: Step) -> &'static str {
        match step {
            _ if self.has_failed => "is asked again after a fault",
            Step::Think => "thinks",
            Step::Sample => "gives a sample",
            Step::Envelope => "writes",
            Step::Choose => "chooses",
            Step::Weigh => "compares two texts",
        }
    }
}
