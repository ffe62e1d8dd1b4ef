//! The phase that a model call belongs to, in the words of its protocol, so that tokens can be counted by phase.
//!
//! The input is the setup and a call. The output is the phase of the call. Blind drafts are the same phase in all protocols, so that
//! protocols can be compared: the plain vote over these drafts costs no more than that phase.

use super::contract::{CallId, Step};
use super::registry::{Params, RunSetup};
use super::review::CONFIRMATION;

/// The phase of a call.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CallPhase {
    /// A piece of a long document is read.
    Pieces,
    /// An agent drafts without seeing a word of the others.
    Blind,
    /// Agents see the texts of the others.
    Talk,
    /// A member judges the answers of the others.
    Ballots,
    /// An agent compares two texts without their names.
    Compare,
    /// The arbiter chooses.
    Arbiter,
}

impl CallPhase {
    /// Returns the phase of a call.
    pub fn of(setup: &RunSetup, call: CallId) -> Self {
        match call.step {
            _ if call.part > 0 => Self::Pieces,
            Step::Choose => Self::Arbiter,
            Step::Weigh => Self::Compare,
            Step::Think | Step::Sample | Step::Envelope => match setup.params {
                _ if setup.is_sample(call) => Self::Blind,
                Params::Panel(_) if call.round.is_multiple_of(2) => Self::Ballots,
                Params::Pair(_) | Params::Panel(_) if call.round == 1 => Self::Blind,
                Params::Council(_) if call.round == 0 => Self::Blind,
                Params::Approval(_) if call.draft == CONFIRMATION => Self::Ballots,
                Params::Approval(_) | Params::Vote(_) => Self::Blind,
                Params::Pair(_) | Params::Panel(_) | Params::Council(_) => Self::Talk,
            },
        }
    }

    /// Returns the name of the phase.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pieces => "pieces",
            Self::Blind => "blind",
            Self::Talk => "talk",
            Self::Ballots => "ballots",
            Self::Compare => "compare",
            Self::Arbiter => "arbiter",
        }
    }
}
