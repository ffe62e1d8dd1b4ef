//! The parameters of `pair`, as a roleset states them.

use serde::{Deserialize, Serialize};

use crate::protocol::contract::{Setup, Thinking};
use crate::text::{CanonicalKind, Constraint};

/// One run of `pair`.
pub type PairSetup = Setup<PairParams>;

/// Parameters of one `pair` run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PairParams {
    /// Rounds at most: the opening is one, each later turn is one. 1 to 200.
    pub max_rounds: u32,
    /// How many times in a row an agent may keep the floor by a plain WORKING.
    pub solo_turns: u32,
    /// How many times a refused reply is asked for again.
    pub max_repairs: u32,
    /// Further blind drafts from each agent when the first two differ.
    pub resample: u32,
    /// How a peer's text is taken over; without it as [`Adopt::for_kind`] says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adopt>,
    /// Where agents reason before they commit.
    pub thinking: Thinking,
    /// How an agent works that drafts a text alone, with [`Thinking::Free`].
    #[serde(skip_serializing_if = "Drafting::is_stepwise")]
    pub drafting: Drafting,
    /// Whether an agent compares a text with its own once more, without names and in both orders, before it gives its own up.
    #[serde(skip_serializing_if = "is_true")]
    pub weigh: bool,
    /// Rules of the task that code checks on every SOLVED text.
    pub constraints: Vec<Constraint>,
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Default for PairParams {
    fn default() -> Self {
        Self {
            max_rounds: 12,
            solo_turns: 2,
            max_repairs: 2,
            resample: 0,
            adopt: None,
            thinking: Thinking::Free,
            drafting: Drafting::Stepwise,
            weigh: true,
            constraints: Vec::new(),
        }
    }
}

impl PairSetup {
    /// Returns how an agent takes over its peer's text.
    #[must_use]
    pub fn adopt(&self) -> Adopt {
        self.params.adopt.unwrap_or_else(|| Adopt::for_kind(self.canonical.kind))
    }
}

impl PairParams {
    /// Returns the name of the first parameter that is out of its range, if one is.
    ///
    /// The ranges are those of the schema `roleset`; a journal is checked against them again, because
    /// nobody vouches for one.
    #[must_use]
    pub(super) fn fault(&self) -> Option<&'static str> {
        let ranges = [
            ("`max_rounds` is 1 to 200", self.max_rounds, 1, 200),
            ("`solo_turns` is 0 to 20", self.solo_turns, 0, 20),
            ("`max_repairs` is 0 to 10", self.max_repairs, 0, 10),
            ("`resample` is 0 to 20", self.resample, 0, 20),
        ];
        let wrong = ranges.iter().find(|(_, value, min, max)| !(min..=max).contains(&value));
        wrong.map(|(name, ..)| *name)
    }
}

/// How an agent works that drafts a text alone.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drafting {
    /// In steps, and the first of them says what is asked. For texts with conditions: of 16 drafts of short translations and JSON a 1.5B
    /// model got 8 right so, and 2 without.
    #[default]
    Stepwise,
    /// As the question needs it. For everyday questions: told to work in steps, the same model wrote about its steps when it was greeted.
    Direct,
}

impl Drafting {
    /// Returns true for the way that a roleset need not name.
    #[must_use]
    pub fn is_stepwise(&self) -> bool {
        *self == Self::Stepwise
    }
}

/// How an agent takes over its peer's text.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Adopt {
    /// By the proposal's handle, or by typing it.
    Handle,
    /// By typing it, word for word.
    Text,
    /// Not at all: no agent sees its peer's text. Who has the floor works the task out again from
    /// nothing, and changes its answer only to one that it has found itself.
    Never,
}

impl Adopt {
    /// Returns how texts of this kind are taken over where a roleset does not say.
    ///
    /// A number or a choice can be found again, and two who find the same on their own have said more
    /// than one who gives in: shown its peer's answer between its own steps and its envelope, a small model
    /// wrote that one in 4 to 11 of 14 cases, by how much else it was told. A text that can be said in many
    /// ways is never found again.
    #[must_use]
    pub fn for_kind(kind: CanonicalKind) -> Self {
        match kind {
            CanonicalKind::Number | CanonicalKind::Choice => Self::Never,
            CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Json | CanonicalKind::Verbatim => {
                Self::Handle
            }
        }
    }
}
