//! The decision that a state of `pair` hands to the machine: how the run continues.
//!
//! The input is a state's decision. The output is the same decision as data, on which the machine alone acts. No state learns here which
//! other state follows.

use std::ops::Range;

use super::agent::{Answer, Floor};
use super::check::AcceptedEnvelope;
use crate::contract::{Action, NoAgreement, Outcome};

/// The consequence of a reply. `mover` is the agent that has the round.
pub(super) enum Transition {
    /// The present state continues.
    Stay(Vec<Action>),
    /// Both agents write the blind drafts with these numbers.
    Draft(Range<u32>),
    /// A round begins, in which this agent has the floor.
    Turn { mover: usize, floor: Floor },
    /// The agent compares two texts, before its envelope counts.
    Compare {
        mover: usize,
        /// The envelope, which gives up the agent's own text for the other one.
        accepted: Box<AcceptedEnvelope>,
        own: Answer,
        other: Answer,
    },
    /// The agent has compared the texts, and says its last word.
    LastWord(usize),
    /// The turn ends with a valid envelope.
    EndTurn { mover: usize, accepted: Box<AcceptedEnvelope> },
    /// The turn ends with an acceptance that its author's own comparison contradicts.
    KeepOwnText(usize),
    /// The turn ends without a valid envelope.
    FailTurn(usize),
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
