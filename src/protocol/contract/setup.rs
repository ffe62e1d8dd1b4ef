//! What a run consists of before it starts: everything a machine needs, and nothing else.
//!
//! A setup is complete: packs and rules are in it as text. It is the first record of a journal, so
//! that the file stands alone. It knows no protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::chunk_plan::ChunkPlan;
use super::rules_version::{Opening, RulesVersion};
use super::task::Task;
use crate::text::vacuity::{self, EchoRule, PromptEcho, PromptWords};
use crate::text::{CanonicalRule, Constraint};

/// One run: task, agents, rules, and the parameters of its protocol.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Setup<P> {
    /// The roleset's name.
    pub roleset: String,
    /// What is asked.
    pub task: Task,
    /// Seed of every draw and of every call's sampling seed.
    pub seed: u64,
    /// The agents.
    pub agents: Vec<AgentSetup>,
    /// A third agent that is asked only on deadlock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arbiter: Option<AgentSetup>,
    /// Which differences between texts do not count.
    pub canonical: CanonicalRule,
    /// Which protocol, and its parameters.
    pub params: P,
    /// What the protocol says to every agent before its first turn with its peer.
    pub rules: String,
    /// Which version of the rules the run follows; journals of the first do not name it.
    #[serde(default, skip_serializing_if = "RulesVersion::is_first")]
    pub rules_version: RulesVersion,
    /// How documents that are too long for one prompt are shared out among runs of the protocol, if they are.
    #[serde(default, rename = "spread", skip_serializing_if = "Option::is_none")]
    pub chunk_plan: Option<ChunkPlan>,
}

/// A setup that no run may have.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum BadSetup {
    /// Another number of agents than the protocol has.
    #[error("`{protocol}` has {wanted} agents, not {found}")]
    Agents {
        /// The protocol.
        protocol: &'static str,
        /// How many it has.
        wanted: String,
        /// How many there are.
        found: usize,
    },
    /// A name that could not stand in a prompt or a file.
    #[error("an agent's name is letters, digits, `-` and `_`")]
    Name,
    /// A parameter outside its range, with that.
    #[error("a parameter is out of its range: {0}")]
    OutOfRange(&'static str),
    /// There is nothing to review, or nothing that can be reviewed.
    #[error("{0}")]
    Unreadable(&'static str),
}

impl<P> Setup<P> {
    /// Returns what an agent is told about itself: the rules, who it is, and its pack.
    pub(crate) fn system(&self, agent: usize) -> String {
        let own = &self.agents[agent];
        let text = format!("{}\n\n{}", self.rules.trim(), own.introduced());
        if own.comparing.is_empty() { text } else { format!("{text}\n\n{}", own.comparing.trim()) }
    }

    /// Returns what an agent is told about itself that has seen no text of another's and answers alone.
    pub(crate) fn system_alone(&self, agent: usize) -> String {
        match self.rules_version.rules().opening {
            Opening::All => self.system(agent),
            Opening::Alone => self.agents[agent].introduced(),
        }
    }

    /// Returns the words of the user's, which are no echo of the program's.
    pub(crate) fn heard(&self, constraints: &[Constraint]) -> Arc<str> {
        let rules: Vec<String> = constraints.iter().map(ToString::to_string).collect();
        let documents = self.task.documents.iter().flat_map(|document| [&*document.name, &*document.text]);
        let words = self.canonical.choices.iter().chain(&rules).chain([&self.task.prompt]);
        vacuity::heard(self.rules_version.rules().echo, documents.chain(words.map(String::as_str)))
    }

    /// Returns what a text is recognised by that only says back what its author was told.
    ///
    /// `whole` are the texts that count where whole texts are compared. Where words are, every pack and the rules count, and the protocol's
    /// own `prompts`.
    pub(crate) fn told(&self, heard: &Arc<str>, whole: &[&str], prompts: &[&str]) -> PromptEcho {
        let echo = self.rules_version.rules().echo;
        let instructions = match echo {
            EchoRule::Whole => whole.to_vec(),
            EchoRule::Words => {
                let packs =
                    self.everybody().flat_map(|agent| [agent.pack.as_str(), agent.comparing.as_str()]);
                packs.chain([self.rules.as_str()]).chain(prompts.iter().copied()).collect()
            }
        };
        let names = self.everybody().map(|agent| agent.name.as_str()).collect();
        PromptEcho::new(
            echo,
            &PromptWords { task: &self.task.prompt, heard: Arc::clone(heard), instructions, names },
        )
    }

    /// Returns every agent, the arbiter last.
    pub fn everybody(&self) -> impl Iterator<Item = &AgentSetup> {
        self.agents.iter().chain(&self.arbiter)
    }

    /// Returns the same run with other parameters.
    pub(crate) fn with_params<Q>(self, params: Q) -> Setup<Q> {
        let Self {
            roleset, task, seed, agents, arbiter, canonical, rules, rules_version, chunk_plan, ..
        } = self;
        Setup { roleset, task, seed, agents, arbiter, canonical, params, rules, rules_version, chunk_plan }
    }
}

/// One agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSetup {
    /// Its name, which is also its `role` in envelopes.
    pub name: String,
    /// A short label of its field.
    pub domain: String,
    /// Its instructions, as text: the part for work alone.
    pub pack: String,
    /// Further instructions, for when it compares its text with another's; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comparing: String,
    /// Sampling temperature, 0 to 2.
    pub temperature: f64,
    /// The most tokens of one reply.
    pub max_tokens: u32,
}

impl AgentSetup {
    /// Tells the agent who it is, and how it works alone.
    fn introduced(&self) -> String {
        format!("You are {}, field: {}.\n\n{}", self.name, self.domain, self.pack.trim())
    }

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
