//! The agents of a run that are at work, and the words that they have written.
//!
//! The input is the events of a run. The output is its open calls, in order. A call is removed once its reply is recorded. The words of a
//! reply are read only while a page shows them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::RunEvent;
use crate::journal::Entry;
use protocol::{CallId, Step};

/// The time between two looks at the words of a reply.
pub(in crate::serve) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The open calls and executions of a run.
#[derive(Debug, Default)]
pub(in crate::serve) struct OpenCalls {
    calls: BTreeMap<CallId, AgentCall>,
    /// The number of checks and programs that are running.
    executions: usize,
}

/// A call whose reply is awaited.
#[derive(Clone, Debug)]
pub(in crate::serve) struct AgentCall {
    pub(in crate::serve) agent: String,
    /// The number of parts received, about one per token.
    pub(in crate::serve) tokens: u64,
    /// The words received, up to the last whole one.
    pub(in crate::serve) words: Arc<str>,
    step: Step,
    /// Whether the last request failed, and another one has brought nothing yet.
    has_failed: bool,
    /// The time of the last look at the words.
    looked_at: Option<Instant>,
}

impl OpenCalls {
    /// Returns the open calls, and the number of checks and programs that are running.
    pub(in crate::serve) fn snapshot(&self) -> (Vec<AgentCall>, usize) {
        (self.calls.values().cloned().collect(), self.executions)
    }

    /// Returns whether it is time for another look at the words of a call.
    pub(super) fn is_due(&self, call: CallId) -> bool {
        let open = self.calls.get(&call);
        open.is_some_and(|open| open.looked_at.is_none_or(|at| at.elapsed() >= LOOK_EVERY))
    }

    /// Takes the words of a reply that is arriving.
    pub(super) fn set_words(&mut self, call: CallId, tokens: u64, words: Arc<str>) {
        let Some(open) = self.calls.get_mut(&call) else { return };
        (open.tokens, open.words, open.has_failed) = (tokens, words, false);
        open.looked_at = Some(Instant::now());
    }

    /// Takes any other event of the run. Returns whether it made a difference.
    pub(super) fn on_event(&mut self, event: &RunEvent<'_>) -> bool {
        match event {
            RunEvent::Calling { agent, ask } => {
                self.calls.insert(ask.call, AgentCall::new(agent, ask.call.step));
                true
            }
            RunEvent::Again { call, .. } => {
                if let Some(open) = self.calls.get_mut(call) {
                    (open.tokens, open.words, open.has_failed) = (0, "".into(), true);
                }
                true
            }
            RunEvent::Failed { call, .. } | RunEvent::Cancelled { call, .. } => {
                self.calls.remove(call).is_some()
            }
            RunEvent::Written(record) => match &record.event {
                Entry::Replied(replied) => self.calls.remove(&replied.call).is_some(),
                Entry::Opened(_)
                | Entry::Asked(_)
                | Entry::Lost(_)
                | Entry::Found(_)
                | Entry::Executed(_)
                | Entry::LeftOut(_)
                | Entry::Permitted(_)
                | Entry::Closed(_)
                | Entry::Stopped { .. }
                | Entry::Resumed { .. } => false,
            },
            RunEvent::Executing { .. } => {
                self.executions += 1;
                true
            }
            RunEvent::Executed { .. } => {
                self.executions = self.executions.saturating_sub(1);
                true
            }
            RunEvent::Writing
            | RunEvent::Streaming { .. }
            | RunEvent::Answered { .. }
            | RunEvent::Remarked { .. }
            | RunEvent::Lost { .. }
            | RunEvent::Stopping { .. } => false,
        }
    }
}

impl AgentCall {
    fn new(agent: &str, step: Step) -> Self {
        let agent = agent.to_owned();
        Self { agent, tokens: 0, words: "".into(), step, has_failed: false, looked_at: None }
    }

    /// Returns the activity of the agent in words.
    pub(in crate::serve) fn activity(&self) -> &'static str {
        if self.has_failed {
            return "is asked again after a fault";
        }
        match self.step {
            Step::Think => "thinks",
            Step::Sample => "gives a sample",
            Step::Envelope => "writes",
            Step::Choose => "chooses",
            Step::Weigh => "compares two texts",
        }
    }
}
