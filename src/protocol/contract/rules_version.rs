//! The versions of the rules: what each changed, in one table.
//!
//! A journal is verified and resumed by asking its questions again and by judging its replies again. So a prompt, a decoding schema, a
//! rule of acceptance or a stop that has been in use must stay in the program. Each journal names the version that its run follows
//! (`rules_version`; absent means 1), and new runs follow [`RulesVersion::NEWEST`].
//!
//! In: a version. Out: [`Rules`], one field for each point in which two versions differ. Packs and the text of the protocol's rules are in
//! every journal as text, so that they need no version.
//!
//! # Adding a version
//!
//! Give the point that changes a field in [`Rules`], with one value for the old way and one for the new. Put the old value into every row
//! of `TABLE` that is there, and add a row. A `match` on the field stands where the words or the rule are, and keeps both. Then make
//! fixtures of the version before with `tests/fixtures/make.sh`; they must verify from then on.

use serde::{Deserialize, Serialize};

use crate::text::Reading;
use crate::text::vacuity::EchoRule;

/// Which rules a run follows: its prompts, decoding schemas, rules of acceptance and stops.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct RulesVersion(u32);

/// The points in which versions differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Rules {
    /// What an agent reads before it has seen a text of another agent's.
    pub(crate) opening: Opening,
    /// How a text is recognised as something that its author was told.
    pub(crate) echo: EchoRule,
    /// After so many refusals as vacuous a blind draft of `pair` has failed; without a number, after all its repairs.
    pub(crate) vacuous_max: Option<u32>,
    /// What counts as a count of tokens.
    pub(crate) usage: UsageRule,
    /// How strictly numbers and choices are read.
    pub(crate) reading: Reading,
}

/// What an agent reads before it has seen a text of another agent's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Opening {
    /// Everything, the other agents and how their texts are compared among it.
    All,
    /// Only what it needs to answer alone. Told of a peer's text that was not there yet, small models wrote about that text.
    Alone,
}

/// Which counts of tokens by a server are believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum UsageRule {
    /// Every count.
    Believed,
    /// A count that the request and the reply have room for.
    Bounded,
}

/// The rules of each version, the first one first.
const TABLE: [Rules; 2] = [
    Rules {
        opening: Opening::All,
        echo: EchoRule::Whole,
        vacuous_max: None,
        usage: UsageRule::Believed,
        reading: Reading::Lenient,
    },
    Rules {
        opening: Opening::Alone,
        echo: EchoRule::Words,
        vacuous_max: Some(2),
        usage: UsageRule::Bounded,
        reading: Reading::Strict,
    },
];

impl RulesVersion {
    /// The version of journals that name none.
    pub const FIRST: Self = Self(1);

    /// The version of new runs.
    pub const NEWEST: Self = Self(2);

    /// Returns true for the first version, which journals do not name.
    #[must_use]
    pub fn is_first(&self) -> bool {
        *self == Self::FIRST
    }

    /// Returns what this version says at each point.
    pub(crate) fn rules(self) -> Rules {
        // The type holds no number that has no row.
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
        for number in [0, 3, u32::MAX] {
            let message = RulesVersion::try_from(number).unwrap_err();
            assert!(message.contains("knows versions 1 to 2"), "{message}");
        }
        assert_eq!(serde_json::from_str::<RulesVersion>("2").unwrap().rules(), TABLE[1]);
    }
}
