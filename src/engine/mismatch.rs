//! The errors of a journal whose records are whole but do not fit together.

use thiserror::Error;

use crypto::Digest;
use protocol::{BadSetup, CallId, Unexpected};

/// A journal that no run of this program can have written, with the first line that shows it.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("the journal's line {line} does not verify: {why}")]
pub struct ReplayError {
    /// The number of the line, from 1.
    pub line: u64,
    pub why: Mismatch,
}

/// A record that cannot belong to this run.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The first record is not an opening, or a later one is.
    #[error("a journal begins with one `opened` record and has no other")]
    NotOpened,
    /// The opening cannot have been written by this program.
    #[error("the opening record cannot be used: {0}")]
    BadOpening(#[from] BadSetup),
    /// The opening names another program, in a form that no build writes.
    #[error("it names `{0}` as the program that wrote it, and no program writes so")]
    OtherProgram(String),
    /// The number of endpoints differs from the number of agents.
    #[error("there must be one endpoint for each agent")]
    Endpoints,
    /// The protocol did not ask for this call.
    #[error("call {0} was recorded, but the protocol did not ask for it")]
    NotOwed(CallId),
    /// The protocol did not issue this prompt.
    #[error("call {0} was sent with a prompt or settings that the protocol did not issue")]
    PromptDiffers(CallId),
    /// The recorded reserve differs from the most that the call may use.
    #[error("call {call} was recorded with a reserve of {found} tokens; it must be {expected}")]
    ReserveDiffers {
        call: CallId,
        /// The recorded reserve, in tokens.
        found: u64,
        /// The correct reserve, in tokens.
        expected: u64,
    },
    /// The budget did not allow this call.
    #[error("call {call} was made although {why}")]
    OverBudget {
        call: CallId,
        /// The limit that was exceeded, in words.
        why: String,
    },
    /// A call was made again while it was still in the air.
    #[error("call {0} was recorded as made twice")]
    AskedTwice(CallId),
    /// A reply was recorded for a call that was not.
    #[error("a reply to call {0} was recorded, but the call itself was not")]
    NotAsked(CallId),
    /// A loss was recorded for a call that was not.
    #[error("the loss of call {0} was recorded, but the call itself was not")]
    LostUnasked(CallId),
    /// The run cannot have continued after this loss.
    #[error("call {0} was recorded as lost, but the protocol does not continue without its agent")]
    NeededAgent(CallId),
    /// No search can have found these passages.
    #[error("the passages recorded for round {0} cannot come from a search of this run")]
    Passages(u32),
    /// No execution of this run can have had this result.
    #[error("the execution {0} was recorded with another command, or with more output than is kept")]
    Execution(Digest),
    /// The run itself contradicts this permit.
    #[error(
        "a permit for round {0} was recorded, and the certainty or the tokens of the run and its earlier permits contradict it"
    )]
    Permit(u32),
    /// The run itself contradicts the end of its permits.
    #[error(
        "its permits were recorded to end after {0} tokens, and the run alone or an earlier permit has more"
    )]
    BudgetEnd(u64),
    /// The events do not lead to this end.
    #[error("the run was recorded as `{found}`, but its events lead to `{expected}`")]
    OutcomeDiffers {
        found: String,
        /// The outcome that the events lead to.
        expected: String,
    },
    /// A record follows the end of the run.
    #[error("there is a record after the run's end")]
    AfterTheEnd,
    /// The protocol cannot take this event.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
}
