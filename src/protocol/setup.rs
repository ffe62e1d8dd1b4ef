//! What a run consists of before it starts: everything a machine needs, and nothing else.
//!
//! A setup is complete: packs and rules are in it as text. It is the first record of a journal, so
//! that the file stands alone.

use serde::{Deserialize, Serialize};

use super::Protocol;
use super::pair::{Adopt, Pair, PairParams};
use crate::text::CanonicalRule;

/// One run: task, agents, rules and parameters.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The roleset's name.
    pub roleset: String,
    /// What is asked.
    pub task: Task,
    /// Seed of every draw and of every call's sampling seed.
    pub seed: u64,
    /// The two agents.
    pub agents: Vec<AgentSetup>,
    /// A third agent that is asked only on deadlock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arbiter: Option<AgentSetup>,
    /// Which differences between texts do not count.
    pub canonical: CanonicalRule,
    /// The protocol's parameters.
    pub params: PairParams,
    /// What the protocol says to every agent before its first turn with its peer.
    pub rules: String,
}

impl Setup {
    /// Makes the machine for this run.
    #[must_use]
    pub fn machine(&self) -> Box<dyn Protocol> {
        Box::new(Pair::new(self.clone()))
    }

    /// Returns how an agent takes over its peer's text.
    #[must_use]
    pub fn adopt(&self) -> Adopt {
        self.params.adopt.unwrap_or_else(|| Adopt::for_kind(self.canonical.kind))
    }
}

/// What is asked.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The question or order.
    pub prompt: String,
    /// Text to work with; data, never instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Document>,
}

/// A text that belongs to a task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its file name.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// One agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSetup {
    /// Its name, which is also its `role` in envelopes.
    pub name: String,
    /// A short label of its field.
    pub domain: String,
    /// Its instructions, as text.
    pub pack: String,
    /// Sampling temperature, 0 to 2.
    pub temperature: f64,
    /// The most tokens of one reply.
    pub max_tokens: u32,
}

impl AgentSetup {
    /// Returns the most characters that a final text of this agent may have.
    ///
    /// A token is about four characters of English, but fewer of other scripts and of numbers that
    /// run away; twice the token limit leaves room for the rest of the envelope, so that the JSON
    /// is closed before the limit cuts it.
    #[must_use]
    pub fn text_chars_max(&self) -> usize {
        usize::try_from(self.max_tokens).unwrap_or(usize::MAX).saturating_mul(2)
    }
}

/// Where an agent may reason before it commits.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// A private free-text draft first, then the envelope in the same conversation.
    #[default]
    Free,
    /// A bounded field at the start of the envelope, stripped before anyone sees it.
    Field,
    /// None: for models that reason by themselves.
    None,
}

impl Thinking {
    /// Returns true if thoughts are written down before the envelope's other fields.
    #[must_use]
    pub fn comes_first(self) -> bool {
        match self {
            Self::Free | Self::Field => true,
            Self::None => false,
        }
    }
}
