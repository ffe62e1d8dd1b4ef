//! What a call of a run is for, in the words of its protocol: tokens are told apart by it.
//!
//! In: the parameters and a call. Out: its phase. What agents draft before any talk is the same in all protocols, so that they can be
//! compared: the plain vote over these drafts costs no more than that.

use super::contract::{CallId, Step};
use super::registry::Params;

/// What a call is for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CallPhase {
    /// A piece of a long document is read.
    Pieces,
    /// An agent drafts without a word of the others.
    Blind,
    /// Agents see what the others wrote.
    Talk,
    /// A member judges the answers of the others.
    Ballots,
    /// An agent compares two texts without names.
    Compare,
    /// The arbiter chooses.
    Arbiter,
}

impl CallPhase {
    /// The phase of a call.
    #[must_use]
    pub fn of(params: &Params, call: CallId) -> Self {
        match call.step {
            _ if call.part > 0 => Self::Pieces,
            Step::Choose => Self::Arbiter,
            Step::Weigh => Self::Compare,
            Step::Think | Step::Envelope => match params {
                Params::Panel(_) if call.round.is_multiple_of(2) => Self::Ballots,
                Params::Pair(_) | Params::Panel(_) if call.round == 1 => Self::Blind,
                Params::Council(_) if call.round == 0 => Self::Blind,
                Params::Approval(_) => Self::Blind,
                Params::Pair(_) | Params::Panel(_) | Params::Council(_) => Self::Talk,
            },
        }
    }

    /// Its name.
    #[must_use]
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
