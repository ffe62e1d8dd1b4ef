//! The setup of a run: everything that a machine needs before it starts, and nothing else.
//!
//! A setup is complete: it contains packs and rules as text. It is the first record of a journal, so that the journal is complete without
//! any other file. Nothing here knows a protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::chunk_plan::ChunkPlan;
use super::execution::CheckCommand;
use super::task::Task;
use crate::text::vacuity::{PromptEcho, fold_user_words};
use crate::text::{CanonicalKind, CanonicalRule, Constraint, TextMemos};
use crypto::Hasher;

/// One run: task, agents, rules, and the parameters of its protocol.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Setup<P> {
    pub roleset: String,
    pub task: Task,
    /// The seed from which, with the task, every draw and every call's sampling seed follows.
    pub seed: u64,
    pub agents: Vec<AgentSetup>,
    /// An additional agent that is asked only if the others do not agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arbiter: Option<AgentSetup>,
    /// The rule for which differences between texts do not count.
    pub canonical: CanonicalRule,
    /// The protocol and its parameters.
    pub params: P,
    /// The protocol's rules, which every agent reads before its first turn with its peer.
    pub rules: String,
    /// The user's own check of a final text, if there is one.
    #[serde(default, rename = "check", skip_serializing_if = "Option::is_none")]
    pub check_command: Option<CheckCommand>,
    #[serde(default, skip_serializing_if = "Interpreter::is_embedded")]
    pub interpreter: Interpreter,
    /// The plan by which documents that are too long for one prompt are divided among runs of the protocol, if there is one.
    #[serde(default, rename = "spread", skip_serializing_if = "Option::is_none")]
    pub chunk_plan: Option<ChunkPlan>,
    /// The stores of the program that runs the machine. They change no step, and no record has them.
    #[serde(skip)]
    pub memos: TextMemos,
}

/// A fault in a setup that no run may have.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum BadSetup {
    /// A number of agents that the protocol does not allow.
    #[error("`{protocol}` has {wanted} agents, not {found}")]
    Agents {
        protocol: &'static str,
        /// The number that the protocol allows.
        wanted: String,
        /// The number that was found.
        found: usize,
    },
    /// A name that cannot be used in a prompt or a file.
    #[error("an agent's name is letters, digits, `-` and `_`")]
    Name,
    /// A parameter outside its range, with the range.
    #[error("a parameter is out of its range: {0}")]
    OutOfRange(&'static str),
    /// A task with nothing to review, or with nothing that can be reviewed.
    #[error("{0}")]
    Unreadable(&'static str),
}

impl<P> Setup<P> {
    /// Returns an agent's system prompt: the rules, its introduction, and its pack.
    pub(crate) fn system(&self, agent: usize) -> String {
        let own = &self.agents[agent];
        let text = format!("{}\n\n{}", self.rules.trim(), own.introduction());
        if own.comparing.is_empty() { text } else { format!("{text}\n\n{}", own.comparing.trim()) }
    }

    /// Returns the system prompt of an agent that has seen no text of another agent and answers alone.
    pub(crate) fn system_alone(&self, agent: usize) -> String {
        self.agents[agent].introduction()
    }

    /// Returns the seed of this run's draws. It differs between two tasks of a batch unless both ask the same about the same documents.
    pub(crate) fn drawing_seed(&self) -> u64 {
        let mut hasher = Hasher::default();
        hasher.part(b"draws").part(&self.seed.to_be_bytes()).part(self.task.prompt.as_bytes());
        for document in &self.task.documents {
            hasher.part(document.name.as_bytes()).part(document.text.as_bytes());
        }
        hasher.finish().leading_u64()
    }

    /// Returns the user's own words. A text that repeats them is not an echo of the program's words.
    pub(crate) fn user_words(&self, constraints: &[Constraint]) -> Arc<str> {
        let rules: Vec<String> = constraints.iter().map(ToString::to_string).collect();
        let documents = self.task.documents.iter().flat_map(|document| [&*document.name, &*document.text]);
        let words = self.canonical.choices.iter().chain(&rules).chain([&self.task.prompt]);
        fold_user_words(documents.chain(words.map(String::as_str)))
    }

    /// Returns the test that recognises a text as an echo of its author's prompt: every pack, the rules, and the protocol's own `prompts`.
    pub(crate) fn prompt_echo(&self, user_words: &Arc<str>, prompts: &[&str]) -> PromptEcho {
        let packs = self.everybody().flat_map(|agent| [agent.pack.as_str(), agent.comparing.as_str()]);
        let instructions = packs.chain([self.rules.as_str()]).chain(prompts.iter().copied());
        let instructions: Vec<&str> = instructions.collect();
        let names = self.everybody().map(|agent| agent.name.clone()).collect();
        PromptEcho::new(&self.memos.folded, &self.task.prompt, user_words, &instructions, names)
    }

    /// Returns true if an agent writes programs.
    pub fn has_programs(&self) -> bool {
        self.everybody().any(|agent| agent.method == Method::Program)
    }

    /// Returns true if programs that agents write are run: for the value that they print, or to compare what they do.
    pub fn runs_programs(&self) -> bool {
        self.has_programs() || self.canonical.kind == CanonicalKind::Behaviour
    }

    /// Returns true if the run may have to execute something: the user's check, or a program.
    pub fn executes(&self) -> bool {
        self.check_command.is_some() || self.runs_programs()
    }

    /// Returns every agent, the arbiter last.
    pub fn everybody(&self) -> impl Iterator<Item = &AgentSetup> {
        self.agents.iter().chain(&self.arbiter)
    }

    /// Returns the same run with other parameters.
    pub(crate) fn with_params<Q>(self, params: Q) -> Setup<Q> {
        let Self {
            roleset,
            task,
            seed,
            agents,
            arbiter,
            canonical,
            rules,
            check_command,
            interpreter,
            chunk_plan,
            memos,
            ..
        } = self;
        Setup {
            roleset,
            task,
            seed,
            agents,
            arbiter,
            canonical,
            params,
            rules,
            check_command,
            interpreter,
            chunk_plan,
            memos,
        }
    }
}

/// One agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSetup {
    /// The agent's name, which is also its `role` in envelopes.
    pub name: String,
    /// A short label of the agent's field.
    pub domain: String,
    /// The pack as text: the instructions for work alone.
    pub pack: String,
    /// The further instructions for comparing its text with another agent's; empty if the agent has no such instructions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comparing: String,
    /// The sampling temperature, 0 to 2.
    pub temperature: f64,
    /// The maximum number of tokens in one reply.
    pub max_tokens: u32,
    /// The way in which the agent works a task out alone.
    #[serde(default, skip_serializing_if = "Method::is_words")]
    pub method: Method,
}

/// The way in which an agent works a task out alone.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// It thinks and answers in words.
    #[default]
    Words,
    /// It writes a program; the value that the program prints is its answer.
    Program,
}

impl Method {
    /// Returns true for the usual method.
    pub fn is_words(&self) -> bool {
        *self == Self::Words
    }
}

/// The interpreter of the programs that agents write.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpreter {
    /// The one in this program, whose values are the same on every machine, to 12 digits.
    #[default]
    Embedded,
    /// The `python3` of the machine.
    Python3,
}

impl Interpreter {
    /// Returns true for the usual interpreter.
    pub fn is_embedded(&self) -> bool {
        *self == Self::Embedded
    }
}

impl AgentSetup {
    /// Returns the introduction of the agent: its name, its field, and its pack for work alone.
    fn introduction(&self) -> String {
        format!("{}\n\n{}", self.name_and_field(), self.pack.trim())
    }

    /// Returns the first line of the introduction: the agent's name and its field.
    pub(crate) fn name_and_field(&self) -> String {
        format!("You are {}, field: {}.", self.name, self.domain)
    }

    /// Returns the maximum number of characters in a final text of this agent.
    ///
    /// A token is about four characters of English, but fewer in other scripts and in numbers that run away. Twice the token limit leaves
    /// room for the rest of the envelope, so that the JSON is closed before the limit cuts it off.
    pub fn text_chars_max(&self) -> usize {
        usize::try_from(self.max_tokens).unwrap_or(usize::MAX).saturating_mul(2)
    }
}

/// The place where an agent may reason before it commits.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// A private free-text draft first, then the envelope in the same conversation.
    #[default]
    Free,
    /// A bounded field at the start of the envelope, stripped before anyone sees it.
    Field,
    /// No place, for models that reason by themselves.
    None,
}

impl Thinking {
    /// Returns true if thoughts are written down before the envelope's other fields.
    pub fn comes_first(self) -> bool {
        match self {
            Self::Free | Self::Field => true,
            Self::None => false,
        }
    }
}
