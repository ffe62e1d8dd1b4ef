//! The decision that a state of `pair` hands to the machine: how the run continues.
//!
//! The input is a state's decision. The output is the same decision as data, on which the machine alone acts. No state learns here which
//! other state follows.

use std::ops::Range;

use super::agent::{Answer, Floor};
use super::check::Accepted;
use super::turn_end::TurnEnd;
use crate::contract::{Action, NoAgreement, Outcome};

/// The consequence of a reply.
pub(super) enum Transition {
    /// The present state continues.
    Stay(Vec<Action>),
    /// Both agents write the blind drafts with these numbers.
    Draft(Range<u32>),
    /// A round begins, in which this agent has the floor.
    Turn { mover: usize, floor: Floor },
    /// The agent that has the round compares two texts, before its envelope counts.
    Compare { mover: usize, accepted: Box<Accepted>, own: Answer, other: Answer },
    /// The agent that has the round has compared the texts, and says its last word.
    LastWord(usize),
    /// The turn of the agent that has the round is over.
    EndTurn { mover: usize, ended: TurnEnd },
    /// An arbiter, if there is one, chooses one of these proposals.
    Arbitrate(Vec<usize>),
    /// The run ends.
    Finish(Outcome),
}

impl Transition {
    /// Ends the run without agreement.
    pub(super) fn without_agreement(reason: NoAgreement) -> Self {
        Self::Finish(Outcome::NoAgreement { reason })
    }
}
