//! The versions of the rules, with their differences in one table.
//!
//! A journal is verified and resumed by asking its questions again and by judging its replies again. A prompt, a decoding schema, a rule of
//! acceptance or a stop that has been in use must therefore stay in the program. Each journal names the version that its run follows
//! (`rules_version`; absent means 1). New runs follow [`RulesVersion::NEWEST`].
//!
//! The input is a version. The output is [`Rules`], with one field for each point in which two versions differ. Packs and the protocol's
//! rules are in every journal as text, so they need no version.
//!
//! # Adding a version
//!
//! Add a field to [`Rules`] for the point that changes, with one value for the old behaviour and one for the new. Put the old value into
//! the rules of the first version. Add the rules of the new version, which name only what differs from those before. Put a `match` on the
//! field where the words or the rule are, and keep both. Then make fixtures of the previous version with `tests/fixtures/make.sh`; they must
//! verify from then on.

use serde::{Deserialize, Serialize};

use crate::text::Reading;
use crate::text::vacuity::EchoRule;

/// The version of the rules that a run follows: its prompts, decoding schemas, rules of acceptance and stops.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct RulesVersion(u32);

/// The points in which versions differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Rules {
    /// The instructions that an agent reads before it has seen another agent's text.
    pub(crate) opening: Opening,
    /// The test that recognises a text as an echo of its author's prompt.
    pub(crate) echo: EchoRule,
    /// The number of vacuous replies after which a blind draft of `pair` fails; if `None`, it fails after all its repairs.
    pub(crate) vacuous_max: Option<u32>,
    /// The token counts that are believed.
    pub(crate) usage: UsageRule,
    /// The strictness with which numbers and choices are read.
    pub(crate) reading: Reading,
    /// The length of an envelope of `pair` that follows thoughts.
    pub(crate) brevity: Brevity,
    /// The way in which a talk of `pair` settles in which no text is taken over.
    pub(crate) settling: Settling,
    /// The source of every draw.
    pub(crate) chance: Chance,
    /// The way in which the answer of a free text is found.
    pub(crate) finding: FindRule,
    /// The options of a question that keep their places.
    pub(crate) places: PlaceRule,
    /// The answer of a vote that is to answer in any case, if several answers have the most votes.
    pub(crate) ties: TieRule,
    /// The letters that label the answers on a ballot of `panel`.
    pub(crate) labels: LabelRule,
}

/// The instructions that an agent reads before it has seen another agent's text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Opening {
    /// Everything, including the other agents and how their texts are compared.
    All,
    /// Only what the agent needs to answer alone. Given instructions about a peer's text that was not there yet, small models wrote about
    /// that text.
    Alone,
}

/// The length of an envelope that an agent writes alone after its thoughts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Brevity {
    /// It says the task again, and has a message.
    Full,
    /// It points to the thoughts for the task. Where no one reads its message, the message is a mark alone. An envelope for one number had
    /// 133 tokens from a model of 1.5 billion parameters, and 57 of them said again what the thoughts had said.
    Brief,
}

/// The way in which a talk settles in which no text is taken over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Settling {
    /// By the positions of the agents alone.
    ByPosition,
    /// By the lead of one answer among all that both agents have found, too.
    ByLead,
}

/// The source of every draw of a run, and of every call's sampling seed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Chance {
    /// The seed alone. The same call of every task in a batch then samples by the same seed, so that the errors of tasks are related. Of the
    /// first programs of 212 tasks 27 failed, and of the later ones 10 on average.
    Seed,
    /// The seed and the task, so that the tasks of a batch are independent.
    SeedAndTask,
}

/// The way in which the answer of a free text is found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FindRule {
    /// An announced answer counts whatever comes after it, and any three words follow a number but a short list. `7²` was read as 7, and
    /// `A common wrong answer is 40` as 40.
    Loose,
    /// An answer counts if it is the last thing that is said, and no word or sign after its number changes it or says something of it.
    Strict,
}

/// The options of a question that keep their places, since they speak of the places of others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PlaceRule {
    /// Those that name a capital letter, two letters, or a place relative to their own.
    Letters,
    /// Also those that are a letter alone, or that name options by their number or order.
    LettersAndOrder,
}

/// The answer of a vote that is to answer in any case, if several answers have the most votes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TieRule {
    /// None.
    None,
    /// That of them which came first.
    First,
}

/// The letters that label the answers on a ballot of `panel`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LabelRule {
    /// The first letters of the alphabet. Where these are choices too, the answer `B` had a label such as `D`. In the 50 ballots of a
    /// model of 1.5 billion parameters that told answers apart, an answer under the label of the right choice had 9 of 40 points more.
    First,
    /// Letters that are no choice, from P on.
    NoChoice,
}

/// The token counts from a server that are believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum UsageRule {
    /// Every count.
    Believed,
    /// A count that is possible for the size of the request and the reply.
    Bounded,
}

/// The rules of each version, the first version first.
const TABLE: [Rules; 5] = [FIRST, SECOND, THIRD, FOURTH, FIFTH];

const FIRST: Rules = Rules {
    opening: Opening::All,
    echo: EchoRule::Whole,
    vacuous_max: None,
    usage: UsageRule::Believed,
    reading: Reading::Lenient,
    brevity: Brevity::Full,
    settling: Settling::ByPosition,
    chance: Chance::Seed,
    finding: FindRule::Loose,
    places: PlaceRule::Letters,
    ties: TieRule::None,
    labels: LabelRule::First,
};

const SECOND: Rules = Rules {
    opening: Opening::Alone,
    echo: EchoRule::Words,
    vacuous_max: Some(2),
    usage: UsageRule::Bounded,
    reading: Reading::Strict,
    ..FIRST
};

const THIRD: Rules = Rules { brevity: Brevity::Brief, settling: Settling::ByLead, ..SECOND };

const FOURTH: Rules = Rules {
    chance: Chance::SeedAndTask,
    finding: FindRule::Strict,
    places: PlaceRule::LettersAndOrder,
    ties: TieRule::First,
    ..THIRD
};

const FIFTH: Rules = Rules { labels: LabelRule::NoChoice, ..FOURTH };

impl RulesVersion {
    /// The version of journals that do not name one.
    pub const FIRST: Self = Self(1);

    /// The version of new runs.
    pub const NEWEST: Self = Self(5);

    /// Returns true for the first version, which journals do not name.
    #[must_use]
    pub fn is_first(&self) -> bool {
        *self == Self::FIRST
    }

    /// Returns the rules of this version.
    pub(crate) fn rules(self) -> Rules {
        // Every number of this type has a row.
        TABLE[self.0 as usize - 1]
    }
}

/// A journal that names no version follows the first.
impl Default for RulesVersion {
    fn default() -> Self {
        Self::FIRST
    }
}

impl From<RulesVersion> for u32 {
    fn from(version: RulesVersion) -> Self {
        version.0
    }
}

impl TryFrom<u32> for RulesVersion {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, Self::Error> {
        let newest = Self::NEWEST.0;
        if (Self::FIRST.0..=newest).contains(&number) {
            return Ok(Self(number));
        }
        Err(format!(
            "the run follows version {number} of the rules; this program knows versions 1 to {newest}, so use a newer one"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_its_row_and_no_other_number_is_read() {
        assert_eq!(RulesVersion::NEWEST.0 as usize, TABLE.len());
        for number in [0, 6, u32::MAX] {
            let message = RulesVersion::try_from(number).unwrap_err();
            assert!(message.contains("knows versions 1 to 5"), "{message}");
        }
        assert_eq!(serde_json::from_str::<RulesVersion>("2").unwrap().rules(), TABLE[1]);
    }
}
