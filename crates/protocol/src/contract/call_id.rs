//! The name of a model call: computed, readable, and the same in every replay of the run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::escape;

/// The purpose of a call.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Step {
    /// Private free text: before an envelope, or the inputs on which programs are tried.
    Think,
    /// Free text that ends with an answer.
    Sample,
    Envelope,
    /// An arbiter's choice.
    Choose,
    /// A private comparison of two texts, before one is given up for the other.
    Weigh,
}

impl Step {
    const NAMES: [(Self, &'static str); 5] = [
        (Self::Think, "think"),
        (Self::Sample, "sample"),
        (Self::Envelope, "envelope"),
        (Self::Choose, "choose"),
        (Self::Weigh, "weigh"),
    ];
}

/// The id of one call of a run. It is computed, so that a replay issues the same ids.
///
/// It is written `r2.a0.d0.envelope.1`: round 2, agent 0, draft 0, second attempt. The prefix `p3.` means part 3.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct CallId {
    /// The number of the inner run that the call belongs to, from 1; 0 where there is only one run.
    pub part: u32,
    /// The round, from 1 (the opening); 0 for an answer that is given alone before the first round.
    pub round: u32,
    /// The agent's index in the roleset; the arbiter comes after the agents.
    pub agent: usize,
    /// The number of the blind draft, from 0; in a review, 1 where the findings of others are judged. It is 0 elsewhere.
    pub draft: u32,
    /// The purpose of the call.
    pub step: Step,
    /// The number of earlier replies to this step: refused ones, and the first of two orders.
    pub attempt: u32,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, round, agent, draft, step, attempt } = self;
        let name = Step::NAMES.iter().find(|(s, _)| s == step).map_or("", |(_, name)| name);
        if *part > 0 {
            write!(f, "p{part}.")?;
        }
        write!(f, "r{round}.a{agent}.d{draft}.{name}.{attempt}")
    }
}

impl FromStr for CallId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| format!("`{}` is not a call id", escape::excerpt(text)))
    }
}

impl CallId {
    fn parse(text: &str) -> Option<Self> {
        let (part, rest) = match text.strip_prefix('p') {
            Some(rest) => rest.split_once('.')?,
            None => ("0", text),
        };
        let part: u32 = part.parse().ok()?;
        if (part > 0) != text.starts_with('p') {
            return None;
        }
        let mut parts = rest.split('.');
        let round = parts.next()?.strip_prefix('r')?.parse().ok()?;
        let agent: u32 = parts.next()?.strip_prefix('a')?.parse().ok()?;
        let draft = parts.next()?.strip_prefix('d')?.parse().ok()?;
        let name = parts.next()?;
        let step = Step::NAMES.iter().find(|(_, n)| *n == name)?.0;
        let attempt = parts.next()?.parse().ok()?;
        let agent = usize::try_from(agent).ok()?;
        if parts.next().is_some() {
            return None;
        }
        Some(Self { part, round, agent, draft, step, attempt })
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_read_back() {
        let call = CallId { part: 0, round: 2, agent: 1, draft: 3, step: Step::Think, attempt: 1 };
        assert_eq!(call.to_string(), "r2.a1.d3.think.1");
        assert_eq!("r2.a1.d3.think.1".parse(), Ok(call));
        let inside = CallId { part: 12, ..call };
        assert_eq!(inside.to_string(), "p12.r2.a1.d3.think.1");
        assert_eq!("p12.r2.a1.d3.think.1".parse(), Ok(inside));
        for bad in [
            "p0.r2.a1.d3.think.1",
            "p.r2.a1.d3.think.1",
            "",
            "r2",
            "r2.a1.d3.vote.1",
            "r2.a1.d3.think.1.0",
            "r-1.a1.d3.think.1",
        ] {
            assert!(bad.parse::<CallId>().is_err(), "{bad}");
        }
    }
}
