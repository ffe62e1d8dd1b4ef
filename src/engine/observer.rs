//! Telling the outside what a run is doing, as it does it.

use std::time::Duration;

use crate::core::Usage;
use crate::journal::{Record, Replied};
use crate::protocol::{Ask, CallId};
use crate::provider::{ProviderError, TextSoFar};

/// Something that happens in a run.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// A record is about to be written.
    Writing,
    /// A record has been written.
    Written(&'a Record),
    /// A model is about to be called.
    Calling {
        /// The agent's name.
        agent: &'a str,
        /// The call.
        ask: &'a Ask,
    },
    /// A reply is streaming in.
    Streaming {
        /// The call.
        call: CallId,
        /// Parts received so far, about one a token.
        tokens: u64,
        /// The text so far.
        text: TextSoFar<'a>,
    },
    /// A request has failed, and is made again.
    Again {
        /// The call.
        call: CallId,
        /// Why it has failed.
        error: &'a ProviderError,
        /// How long it is waited for.
        wait: Duration,
    },
    /// A model has answered; nothing is recorded yet.
    Answered {
        /// The agent's name.
        agent: &'a str,
        /// The reply and what it took.
        replied: &'a Replied,
        /// What it is charged at.
        usage: Usage,
        /// How long it took.
        took: Duration,
    },
    /// A reply has ended a turn, and its envelope alone does not say how.
    Remarked {
        /// The agent's name.
        agent: &'a str,
        /// What became of the turn.
        remark: &'a str,
    },
    /// A call has failed for good.
    Failed {
        /// The call.
        call: CallId,
        /// Why.
        error: &'a ProviderError,
    },
    /// A call in the air is given up, since nothing depends on it any more.
    Cancelled {
        /// The agent's name.
        agent: &'a str,
        /// The call.
        call: CallId,
    },
    /// A stop was asked for.
    Stopping {
        /// Whether the open calls are given up; else they are awaited.
        at_once: bool,
    },
}

/// An onlooker of a run.
pub trait Observer {
    /// Takes each event, in order.
    fn on_event(&self, event: RunEvent<'_>);
}

/// An onlooker that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn on_event(&self, _event: RunEvent<'_>) {}
}
