//! The parameters of `pair`, as a roleset states them.

use serde::{Deserialize, Serialize};

use crate::contract::{OnDisagreement, Setup, TalkForm, Thinking};
use crate::text::{CanonicalKind, Constraint};

/// Parameters of one `pair` run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PairParams {
    /// The maximum number of rounds, 1 to 200. The opening is one round, and each later turn is one.
    pub max_rounds: u32,
    /// The number of times in a row that an agent may keep the floor by a plain WORKING, 0 to 20.
    pub solo_turns: u32,
    /// The number of times that a refused reply is asked for again, 0 to 10.
    pub max_repairs: u32,
    /// The number of further blind drafts from each agent when the first two differ, 0 to 20.
    pub resample: u32,
    /// The way in which a peer's text is taken over; if absent, [`Adopt::for_kind`] decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adopt>,
    /// The place where agents reason before they commit.
    pub thinking: Thinking,
    /// The way in which an agent drafts a text alone, with [`Thinking::Free`].
    #[serde(skip_serializing_if = "Drafting::is_stepwise")]
    pub drafting: Drafting,
    /// Whether an agent compares a text with its own once more before it gives its own up. The texts are shown without names and in both
    /// orders.
    #[serde(skip_serializing_if = "is_true")]
    pub weigh: bool,
    /// Whether the agents talk in any case, or their blind answers are counted first.
    #[serde(skip_serializing_if = "TalkForm::is_always")]
    pub talk: TalkForm,
    /// The answer of a run whose counted answers do not settle. It needs [`TalkForm::Differing`].
    #[serde(skip_serializing_if = "OnDisagreement::is_abstain")]
    pub on_disagreement: OnDisagreement,
    /// The rules of the task that code checks on every SOLVED text.
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
            talk: TalkForm::Always,
            on_disagreement: OnDisagreement::Abstain,
            constraints: Vec::new(),
        }
    }
}

impl Setup<PairParams> {
    /// Returns how an agent takes over its peer's text.
    pub fn adopt(&self) -> Adopt {
        self.params.adopt.unwrap_or_else(|| Adopt::for_kind(self.canonical.kind))
    }
}

impl PairParams {
    /// Returns the range of the first parameter that is out of range, in words, if there is one.
    ///
    /// The ranges are those of the schema `roleset`. A journal is checked against them again, because no one vouches for it.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let ranges = [
            ("`max_rounds` is 1 to 200", self.max_rounds, 1, 200),
            ("`solo_turns` is 0 to 20", self.solo_turns, 0, 20),
            ("`max_repairs` is 0 to 10", self.max_repairs, 0, 10),
            ("`resample` is 0 to 20", self.resample, 0, 20),
        ];
        for (name, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                return Some(name);
            }
        }
        if self.talk.is_always() && !self.on_disagreement.is_abstain() {
            return Some("`on_disagreement` needs `talk: differing` (--talk differing) in a pair");
        }
        None
    }
}

/// The way in which an agent drafts a text alone.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drafting {
    /// In steps, the first of which says what is asked. This suits texts with conditions: of 16 drafts of short translations and JSON, a
    /// 1.5B model got 8 right with steps, and 2 without.
    #[default]
    Stepwise,
    /// As the question needs it. This suits everyday questions: with the instruction to work in steps, the same model wrote about its steps
    /// when it was greeted.
    Direct,
}

impl Drafting {
    /// Returns true for the way that a roleset need not name, which is the default.
    pub fn is_stepwise(&self) -> bool {
        *self == Self::Stepwise
    }
}

/// The way in which an agent takes over its peer's text.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Adopt {
    /// By the proposal's handle, or by typing it.
    Handle,
    /// By typing it, word for word.
    Text,
    /// Not at all: no agent sees its peer's text. The agent that has the floor works the task out again from nothing, and changes its
    /// answer only to one that it has found itself.
    Never,
}

impl Adopt {
    /// Returns how texts of this kind are taken over where a roleset does not say.
    ///
    /// A number or a choice can be found again, and two agents that find the same one on their own have said more than one that gives in.
    /// Shown its peer's answer between its own steps and its envelope, a small model wrote that answer in 4 to 11 of 14 cases, depending on
    /// the rest of the prompt. A text that can be said in many ways is never found again.
    pub fn for_kind(kind: CanonicalKind) -> Self {
        match kind {
            CanonicalKind::Number | CanonicalKind::Choice => Self::Never,
            CanonicalKind::Text
            | CanonicalKind::Lines
            | CanonicalKind::Json
            | CanonicalKind::Verbatim
            | CanonicalKind::Behaviour => Self::Handle,
        }
    }
}
