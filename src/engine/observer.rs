//! The events by which a run reports its progress.

use std::time::Duration;

use crate::journal::{Executed, LostCall, Record, Replied};
use crate::provider::{PartialText, ProviderError};
use protocol::core::Usage;
use protocol::{Ask, CallId, Execution};

/// An event in a run.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// A record is about to be written.
    Writing,
    /// A record has been written.
    Written(&'a Record),
    /// A model is about to be called.
    Calling { agent: &'a str, ask: &'a Ask },
    /// A reply is streaming in.
    Streaming {
        call: CallId,
        /// The number of parts received, about one per token.
        tokens: u64,
        text: PartialText<'a>,
    },
    /// A request failed and will be repeated.
    Again {
        call: CallId,
        /// The reason for the failure.
        error: &'a ProviderError,
        /// The wait before the repetition.
        wait: Duration,
    },
    /// A model answered; nothing is recorded yet.
    Answered {
        agent: &'a str,
        /// The reply and its usage.
        replied: &'a Replied,
        /// The usage that is charged.
        usage: Usage,
        /// The duration of the call.
        took: Duration,
    },
    /// A reply ended a turn, and its envelope alone does not say how.
    Remarked {
        agent: &'a str,
        /// The remark on how the turn ended.
        remark: &'a str,
    },
    /// A call failed for good.
    Failed { call: CallId, error: &'a ProviderError },
    /// The run continues without an agent whose call failed for good; nothing is recorded yet.
    Lost {
        agent: &'a str,
        /// The call and the failure.
        lost: &'a LostCall,
    },
    /// A call in the air was cancelled, because nothing depends on it any more.
    Cancelled { agent: &'a str, call: CallId },
    /// The user's check is about to be run, or a program.
    Executing { execution: &'a Execution },
    /// An execution has ended; nothing is recorded yet.
    Executed {
        /// Its record.
        executed: &'a Executed,
        execution: &'a Execution,
    },
    Stopping {
        /// Whether the open calls are cancelled; otherwise they are awaited.
        at_once: bool,
    },
}

/// An observer of a run.
pub trait RunObserver {
    /// Takes an event. Events come in order.
    fn on_event(&self, event: RunEvent<'_>);
}

/// No observer: events are ignored.
impl RunObserver for () {
    fn on_event(&self, _event: RunEvent<'_>) {}
}
