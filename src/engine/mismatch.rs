//! What is wrong with a journal whose records are whole and do not fit together.

use thiserror::Error;

use crate::core::PROGRAM;
use crate::protocol::{BadSetup, CallId, Unexpected};

/// A journal that is not that of a run, and where.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("the journal's line {line} does not verify: {why}")]
pub struct ReplayError {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub why: Mismatch,
}

/// A record that cannot be one of this run.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The first record is not the opening, or a later one is.
    #[error("a journal begins with one `opened` record and has no other")]
    NotOpened,
    /// The opening cannot be one that this program wrote.
    #[error("the opening is not usable: {0}")]
    BadOpening(#[from] BadSetup),
    /// More or fewer endpoints than agents.
    #[error("there must be one endpoint for each agent")]
    Endpoints,
    /// A call that the protocol did not ask for.
    #[error("call {0} was recorded, but the protocol did not ask for it")]
    NotOwed(CallId),
    /// A prompt that the protocol did not issue.
    #[error(
        "call {call} was sent with a prompt or settings that the protocol did not issue (journal written by `{program}`, read by `{PROGRAM}`)"
    )]
    PromptDiffers {
        /// The call.
        call: CallId,
        /// Who wrote the journal.
        program: String,
    },
    /// The recorded reserve is not what the call may use.
    #[error("call {call} was recorded with a reserve of {found} tokens; it is {expected}")]
    ReserveDiffers {
        /// The call.
        call: CallId,
        /// What the record says.
        found: u64,
        /// What it must be.
        expected: u64,
    },
    /// A call was made that the budget did not allow.
    #[error("call {call} was made although {why}")]
    OverBudget {
        /// The call.
        call: CallId,
        /// Which limit.
        why: String,
    },
    /// A call that was made again although it was in the air.
    #[error("call {0} was recorded as made twice")]
    AskedTwice(CallId),
    /// A reply to a call that was not recorded as made.
    #[error("a reply to call {0} was recorded, but not that it was asked")]
    NotAsked(CallId),
    /// Passages that no search can have brought.
    #[error("passages were recorded for round {0} that no search of this run can have found")]
    Passages(u32),
    /// An end that the events do not lead to.
    #[error("the run was recorded as `{found}`, but its events lead to `{expected}`")]
    OutcomeDiffers {
        /// What the record says.
        found: String,
        /// What the events lead to.
        expected: String,
    },
    /// Something after the end.
    #[error("there is a record after the run's end")]
    AfterTheEnd,
    /// An event that the protocol cannot take.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
}
