//! A protocol as a state machine.

use thiserror::Error;

use super::action::Action;
use super::call_id::CallId;
use super::event::Event;
use super::report::Report;

/// A state machine that turns events into actions.
pub trait Protocol {
    /// What a report of this protocol has and no other.
    type Section: Clone;

    /// Takes one event and returns what must follow from it, in order.
    ///
    /// # Errors
    ///
    /// [`Unexpected`] if the event cannot be one of this run: the machine did not ask for it.
    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected>;

    /// Returns what is known so far: blind vote, standing answers, dissent.
    ///
    /// Valid at any moment, so that an interrupted or unaffordable run still has a result.
    fn report(&self) -> Report<Self::Section>;

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
