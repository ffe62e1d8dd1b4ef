//! Protocols: pure state machines that decide what is asked next and when a run ends.
//!
//! ```text
//!               event: Started, Replied, Found
//!   engine  ────────────────────────────►  machine
//!  (async)  ◄────────────────────────────  (pure)
//!               action: Ask, Search, Finish
//! ```
//!
//! # The contract
//!
//! > **A machine changes only inside [`Protocol::step`]. The engine makes an event durable in the
//! > journal, steps the machine with it, performs every action returned, and only then takes the
//! > next event.**
//!
//! A machine knows no clock, network, file, randomness or `async`. Seeds and call ids are computed,
//! so the same events always give the same actions, byte for byte: that is what lets a run be
//! resumed, replayed and verified from its journal alone. Bad model output is an ordinary event and
//! never an error; an error of [`Protocol::step`] means that the events are not those of this run.

mod action;
mod answer;
pub mod approval;
mod arbiter;
mod conversation;
pub mod council;
mod draft;
mod event;
pub mod map_reduce;
mod mark;
mod outcome;
pub mod pair;
pub mod panel;
mod plan;
pub mod review;
mod rules_version;
mod setup;

pub use action::{Action, Ask, CallId, ReplyShape, Search, Step};
pub use arbiter::ArbiterChoice;
pub use conversation::{Conversation, Message, Role};
pub use draft::REFUSED;
pub use event::{Event, Finish, PASSAGE_CHARS_MAX, PASSAGES_MAX, Passage, Reply};
pub use outcome::{
    AgentReport, BlindVote, Degraded, Dissent, How, NoAgreement, Outcome, Report, Section, Tally,
};
pub use plan::WorstCase;
pub use rules_version::RulesVersion;
pub(crate) use rules_version::{Opening, UsageRule};
pub use setup::{AgentSetup, BadSetup, Document, Params, Setup, Task, Thinking};

use thiserror::Error;

/// A state machine that turns events into actions.
pub trait Protocol {
    /// Takes one event and returns what must follow from it, in order.
    ///
    /// # Errors
    ///
    /// [`Unexpected`] if the event cannot be one of this run: the machine did not ask for it.
    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected>;

    /// Returns what is known so far: blind vote, standing answers, dissent.
    ///
    /// Valid at any moment, so that an interrupted or unaffordable run still has a result.
    fn report(&self) -> Report;

    /// Returns what became of a turn that the last reply ended, where its envelope alone does not say.
    fn remark(&self) -> Option<&'static str>;
}

/// An event that does not belong to the run that the machine is in.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Unexpected {
    /// A second start.
    #[error("the run has already started")]
    StartedTwice,
    /// A reply to a call that is not open.
    #[error("nothing was asked under call {0}")]
    NotAsked(CallId),
    /// Passages that nobody searched for.
    #[error("nothing was searched for in round {0}")]
    NotSearched(u32),
}
