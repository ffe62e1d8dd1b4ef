//! What to do next: the only way out of a machine.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Message, Outcome};
use crate::crypto::{Digest, Hasher};
use crate::text::schema::SchemaText;

/// What must follow from an event. Each action leaves the process only once the event is on disk: a
/// reply that was paid for must never be asked for again because of what came after it.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Call a model.
    Ask(Ask),
    /// Search the user's documents.
    Search(Search),
    /// Give up a call that is not needed any more, whether or not it is in the air.
    Cancel(CallId),
    /// End the run.
    Finish(Outcome),
}

/// One search of the user's documents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Search {
    /// For which round.
    pub round: u32,
    /// What to search for, as plain words.
    pub words: String,
    /// The most tokens that the passages may have together, by a high estimate.
    pub tokens_max: u64,
}

/// One model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Which call of the run this is.
    pub call: CallId,
    /// The conversation to send, oldest message first.
    pub messages: Vec<Arc<Message>>,
    /// What kind of reply is wanted.
    pub shape: ReplyShape,
    /// The most tokens the reply may have.
    pub max_tokens: u32,
    /// Sampling temperature, 0 to 2.
    pub temperature: f64,
    /// Sampling seed, derived from the run's seed and the call, below 2³¹.
    pub seed: u32,
    /// Digest of everything above: what the journal records as sent.
    pub digest: Digest,
}

/// What kind of reply is wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyShape {
    /// Free text.
    Free,
    /// One JSON object that this schema describes, under this name.
    Json {
        /// A short name for servers that want one.
        name: &'static str,
        /// The decoding schema.
        schema: SchemaText,
        /// A field of it that holds `yes` or `no`, if the probability of that word is wanted.
        measured: Option<&'static str>,
    },
}

impl ReplyShape {
    /// Returns the field in which the probability of `yes` is wanted.
    #[must_use]
    pub fn measured(&self) -> Option<&'static str> {
        match self {
            Self::Json { measured, .. } => *measured,
            Self::Free => None,
        }
    }
}

impl Ask {
    /// Returns the digest of a call whose conversation has the digest `conversation`.
    #[must_use]
    pub fn digest_of(
        conversation: Digest,
        shape: &ReplyShape,
        max_tokens: u32,
        temperature: f64,
        seed: u32,
    ) -> Digest {
        let shape = match shape {
            ReplyShape::Free => "",
            ReplyShape::Json { schema, .. } => schema.as_str(),
        };
        let sampling = format!("{max_tokens} {temperature} {seed}");
        let mut hasher = Hasher::default();
        hasher.part(conversation.to_string().as_bytes());
        hasher.part(shape.as_bytes()).part(sampling.as_bytes()).finish()
    }

    /// Returns an estimate of the prompt's tokens that errs on the high side: a third of its bytes,
    /// and four for the frame of each message. Servers report the truth afterwards.
    #[must_use]
    pub fn prompt_tokens_estimate(&self) -> u64 {
        self.messages.iter().map(|m| m.content.len() as u64 / 3 + 5).sum()
    }
}

/// What a call is for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Step {
    /// Private free text before an envelope.
    Think,
    /// An envelope.
    Envelope,
    /// An arbiter's choice.
    Choose,
    /// A private comparison of two texts, before one is given up for the other.
    Weigh,
}

impl Step {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Think, "think"),
        (Self::Envelope, "envelope"),
        (Self::Choose, "choose"),
        (Self::Weigh, "weigh"),
    ];
}

/// Identifies one call of a run; computed, so that a replay issues the same ids.
///
/// Written `r2.a0.d0.envelope.1`: round 2, agent 0, draft 0, second attempt. With `p3.` before it, of part 3.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct CallId {
    /// Which of several runs inside one it belongs to, from 1; 0 where there is only one.
    pub part: u32,
    /// The round, from 1 (the opening).
    pub round: u32,
    /// The agent's index in the roleset; the arbiter comes after the agents.
    pub agent: usize,
    /// Which blind draft, from 0; always 0 outside the opening.
    pub draft: u32,
    /// What it is for.
    pub step: Step,
    /// How many replies to this step there were before: refused ones, and the first of two orders.
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
        let parse = || {
            let (part, rest) = match text.strip_prefix('p') {
                Some(rest) => rest.split_once('.')?,
                None => ("0", text),
            };
            let part: u32 = part.parse().ok().filter(|part| (*part > 0) == text.starts_with('p'))?;
            let mut parts = rest.split('.');
            let mut number = |prefix: &str| parts.next()?.strip_prefix(prefix)?.parse::<u32>().ok();
            let (round, agent, draft) = (number("r")?, number("a")?, number("d")?);
            let name = parts.next()?;
            let step = Step::NAMES.iter().find(|(_, n)| *n == name)?.0;
            let attempt = parts.next()?.parse().ok()?;
            let agent = usize::try_from(agent).ok()?;
            parts.next().is_none().then_some(Self { part, round, agent, draft, step, attempt })
        };
        parse().ok_or_else(|| format!("`{}` is not a call id", crate::text::quote::excerpt(text)))
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
