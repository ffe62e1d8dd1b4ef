//! The machine of a protocol that has two forms.
//!
//! The input is the events of a run. The output is what the machine of the form that runs makes of them. Nothing is decided here.

use super::action::Action;
use super::event::Event;
use super::executions::Executions;
use super::machine::{Protocol, Unexpected};
use super::report::Report;

/// The machine of a run whose parameters choose one of two forms.
#[derive(Clone, Debug)]
pub enum EitherMachine<A, B> {
    Left(Box<A>),
    Right(Box<B>),
}

impl<A: AsMut<Executions>, B: AsMut<Executions>> AsMut<Executions> for EitherMachine<A, B> {
    fn as_mut(&mut self) -> &mut Executions {
        match self {
            Self::Left(machine) => (**machine).as_mut(),
            Self::Right(machine) => (**machine).as_mut(),
        }
    }
}

impl<A: Protocol, B: Protocol<Section = A::Section>> Protocol for EitherMachine<A, B> {
    type Section = A::Section;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        match self {
            Self::Left(machine) => machine.step(event),
            Self::Right(machine) => machine.step(event),
        }
    }

    fn report(&self) -> Report<A::Section> {
        match self {
            Self::Left(machine) => machine.report(),
            Self::Right(machine) => machine.report(),
        }
    }

    fn remark(&self) -> Option<&'static str> {
        match self {
            Self::Left(machine) => machine.remark(),
            Self::Right(machine) => machine.remark(),
        }
    }
}
