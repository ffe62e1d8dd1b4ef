//! The roleset: the form of its file, and the setup of a run that is made from it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::packs::{Packs, split_pack};
use protocol::text::{CanonicalKind, CanonicalRule, TextMemos};
use protocol::{AgentSetup, CheckCommand, Interpreter, Method, Params, ProtocolParams, RunSetup, Task};

/// A roleset: its protocol, its agents and its parameters.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "RolesetFile", into = "RolesetFile")]
pub struct Roleset {
    /// One sentence for lists.
    pub description: String,
    pub agents: Vec<RolesetAgent>,
    /// A further agent that is asked only if the others do not agree.
    pub arbiter: Option<RolesetAgent>,
    /// The rule for which differences between texts do not count.
    pub canonical: CanonicalRule,
    /// The protocol and its parameters.
    pub params: Params,
    /// Whether text that must not leave the machine is replaced by tokens.
    pub redact: bool,
    /// The regular expressions for text to replace in addition to the known forms.
    pub redact_patterns: Vec<String>,
    /// A command that every final text must pass, if there is one.
    pub check: Option<CheckCommand>,
    /// The interpreter of programs that agents write.
    pub interpreter: Interpreter,
}

impl Roleset {
    /// Returns whether its runs execute anything: a check, or programs of agents.
    pub fn executes(&self) -> bool {
        self.check.is_some()
            || self.canonical.kind == CanonicalKind::Behaviour
            || self.agents.iter().any(|agent| agent.method == Method::Program)
    }
}

/// The longest time for a check if nothing else is said, in milliseconds.
pub const CHECK_TIMEOUT_MS: u64 = 30_000;

/// A roleset in the form of its file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RolesetFile {
    v: u32,
    #[serde(default)]
    description: String,
    protocol: String,
    agents: Vec<RolesetAgent>,
    /// The number of copies of its one agent, for a panel.
    #[serde(default, skip_serializing)]
    self_panel: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arbiter: Option<RolesetAgent>,
    #[serde(default)]
    canonical: CanonicalRule,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    redact: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redact_patterns: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<String>,
    /// The longest time for the check, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check_timeout_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Interpreter::is_embedded")]
    interpreter: Interpreter,
}

impl TryFrom<RolesetFile> for Roleset {
    type Error = serde_json::Error;

    fn try_from(file: RolesetFile) -> Result<Self, Self::Error> {
        let RolesetFile { description, protocol, agents, arbiter, canonical, mut params, .. } = file;
        let (redact, redact_patterns) = (file.redact, file.redact_patterns);
        let agents = match file.self_panel {
            Some(copies) => self_panel(&agents, copies),
            None => agents,
        };
        params.insert("protocol".to_owned(), protocol.into());
        let params = serde_json::from_value(params.into())?;
        let timeout_ms = file.check_timeout_s.map_or(CHECK_TIMEOUT_MS, |s| s.saturating_mul(1000));
        let check = file.check.map(|command| CheckCommand { command, timeout_ms });
        Ok(Self {
            description,
            agents,
            arbiter,
            canonical,
            params,
            redact,
            redact_patterns,
            check,
            interpreter: file.interpreter,
        })
    }
}

impl From<Roleset> for RolesetFile {
    fn from(roleset: Roleset) -> Self {
        let Roleset {
            description,
            agents,
            arbiter,
            canonical,
            params,
            redact,
            redact_patterns,
            check,
            interpreter,
        } = roleset;
        let own_time = check.as_ref().map(|check| check.timeout_ms).filter(|ms| *ms != CHECK_TIMEOUT_MS);
        let protocol = params.protocol().to_owned();
        // Parameters are plain data, which always have a JSON form.
        let mut params = serde_json::to_value(params).unwrap_or_default();
        let mut params = params.as_object_mut().map(std::mem::take).unwrap_or_default();
        params.shift_remove("protocol");
        RolesetFile {
            v: 1,
            description,
            protocol,
            agents,
            self_panel: None,
            arbiter,
            canonical,
            params,
            redact,
            redact_patterns,
            check: check.map(|check| check.command),
            check_timeout_s: own_time.map(|ms| ms.div_ceil(1000)),
            interpreter,
        }
    }
}

/// An agent of a roleset file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RolesetAgent {
    pub name: String,
    /// A short label of the agent's field.
    pub domain: String,
    /// The file name of the pack.
    pub pack: String,
    /// The model reference; the run's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sampling temperature, 0 to 2.
    #[serde(default = "default_temperature")]
    pub temperature: f64,
    /// The most tokens of one reply.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u32,
    /// The way in which the agent works a task out alone.
    #[serde(default, skip_serializing_if = "Method::is_words")]
    pub method: Method,
}

impl RolesetAgent {
    /// Returns an agent with the usual settings.
    pub(super) fn new(name: String, domain: String, pack: String) -> Self {
        let (temperature, max_tokens) = (default_temperature(), default_max_tokens());
        Self { name, domain, pack, model: None, temperature, max_tokens, method: Method::Words }
    }

    fn setup(&self, packs: &Packs) -> AgentSetup {
        // The check has read every pack already.
        let (pack, comparing) = split_pack(&packs.read(&self.pack).unwrap_or_default());
        AgentSetup {
            name: self.name.clone(),
            domain: self.domain.clone(),
            pack,
            comparing,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            method: self.method,
        }
    }
}

fn default_temperature() -> f64 {
    0.7
}

fn default_max_tokens() -> u32 {
    800
}

impl Roleset {
    /// Makes the setup of a run with this roleset.
    pub fn setup(&self, name: &str, packs: &Packs, task: Task, seed: u64) -> RunSetup {
        RunSetup {
            roleset: name.to_owned(),
            task,
            seed,
            agents: self.agents.iter().map(|agent| agent.setup(packs)).collect(),
            arbiter: self.arbiter.as_ref().map(|agent| agent.setup(packs)),
            canonical: self.canonical.clone(),
            params: self.params.clone(),
            rules: self.params.rules().to_owned(),
            check_command: self.check.clone(),
            interpreter: self.interpreter,
            chunk_plan: None,
            memos: TextMemos::shared(),
        }
    }
}

/// The longest name of an agent, in characters.
pub(super) const NAME_CHARS_MAX: usize = 40;

/// Returns the given number of copies of the first member, under different names.
pub(super) fn self_panel(members: &[RolesetAgent], copies: usize) -> Vec<RolesetAgent> {
    let Some(first) = members.first() else { return Vec::new() };
    let stem: String = first.name.chars().take(NAME_CHARS_MAX - 3).collect();
    let mut agents = Vec::new();
    for number in 1..=copies {
        agents.push(RolesetAgent { name: format!("{stem}_{number}"), ..first.clone() });
    }
    agents
}
