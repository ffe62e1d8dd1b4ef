//! A protocol as a state machine.

use thiserror::Error;

use super::action::Action;
use super::call_id::CallId;
use super::event::Event;
use super::report::Report;
use crypto::Digest;

/// A state machine that turns events into actions.
pub trait Protocol {
    /// The part of a report that only this protocol has.
    type Section: Clone;

    /// Takes one event and returns the actions that must follow from it, in order.
    ///
    /// # Errors
    ///
    /// [`Unexpected`] if the event cannot belong to this run, because the machine did not ask for it.
    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected>;

    /// Returns the state of the run: the blind vote, the current answers and the dissent.
    ///
    /// The report is valid at any moment, so that an interrupted or unaffordable run still has a result.
    fn report(&self) -> Report<Self::Section>;

    /// Returns a remark on the turn that the last reply ended, where its envelope alone does not show the result.
    fn remark(&self) -> Option<&'static str>;
}

/// An event that does not belong to the machine's run.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Unexpected {
    /// A second start.
    #[error("the run has already started")]
    StartedTwice,
    /// A reply to a call that is not open.
    #[error("nothing was asked under call {0}")]
    NotAsked(CallId),
    /// Passages that no search asked for.
    #[error("nothing was searched for in round {0}")]
    NotSearched(u32),
    /// The result of an execution that was not asked for.
    #[error("nothing was to be executed under {0}")]
    NotExecuted(Digest),
    /// A permit, or the end of permits, that the run does not wait for.
    #[error("the run does not wait for a permit")]
    NotAwaited,
}

impl From<&Event> for Unexpected {
    /// The error of a machine that does not wait for this event.
    fn from(event: &Event) -> Self {
        match event {
            Event::Started => Self::StartedTwice,
            Event::Replied { call, .. } | Event::Lost { call, .. } => Self::NotAsked(*call),
            Event::Found { round, .. } => Self::NotSearched(*round),
            Event::Executed { key, .. } => Self::NotExecuted(*key),
            Event::Permitted | Event::Closed => Self::NotAwaited,
        }
    }
}

impl<M: Protocol + ?Sized> Protocol for Box<M> {
    type Section = M::Section;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        (**self).step(event)
    }

    fn report(&self) -> Report<M::Section> {
        (**self).report()
    }

    fn remark(&self) -> Option<&'static str> {
        (**self).remark()
    }
}
