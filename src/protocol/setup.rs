//! What a run consists of before it starts: everything a machine needs, and nothing else.
//!
//! A setup is complete: packs and rules are in it as text. It is the first record of a journal, so
//! that the file stands alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use thiserror::Error;

use super::council::{Council, CouncilParams};
use super::map_reduce::{self, MapReduce, Spread};
use super::pair::{Pair, PairParams};
use super::panel::{self, Panel, PanelParams};
use super::review::{self, ApprovalParams, Review};
use super::{Opening, Protocol, RulesVersion, WorstCase};
use crate::text::vacuity::{self, EchoRule, Said, Told};
use crate::text::{CanonicalKind, CanonicalRule, Constraint, quote};

/// One run: task, agents, rules and parameters; a machine's own setup has the parameters of its protocol.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Setup<P = Params> {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// A protocol and its parameters.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "protocol", rename_all = "snake_case")]
pub enum Params {
    /// Two agents, dual stop.
    Pair(PairParams),
    /// Intent, answer, verification, and a weighted confidence.
    Council(CouncilParams),
    /// Everybody answers, everybody judges the others, and the mean score decides.
    Panel(PanelParams),
    /// Of reviewers of a change.
    Approval(ApprovalParams),
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

impl Params {
    /// Returns the protocol's name in files and on the command line.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Pair(_) => "pair",
            Self::Council(_) => "council",
            Self::Panel(_) => "panel",
            Self::Approval(_) => "approval",
        }
    }

    /// Returns what the protocol says to its agents beside their packs.
    #[must_use]
    pub fn rules(&self) -> &'static str {
        match self {
            Self::Pair(_) => super::pair::RULES,
            Self::Council(_) => super::council::RULES,
            Self::Panel(_) => panel::RULES,
            Self::Approval(_) => review::RULES,
        }
    }

    /// Returns the rules of the task that code checks.
    #[must_use]
    pub fn constraints(&self) -> &[Constraint] {
        match self {
            Self::Pair(params) => &params.constraints,
            Self::Council(params) => &params.constraints,
            Self::Panel(params) => &params.constraints,
            Self::Approval(_) => &[],
        }
    }

    /// The same, to be changed; `None` where a protocol has none.
    pub fn constraints_mut(&mut self) -> Option<&mut Vec<Constraint>> {
        match self {
            Self::Pair(params) => Some(&mut params.constraints),
            Self::Council(params) => Some(&mut params.constraints),
            Self::Panel(params) => Some(&mut params.constraints),
            Self::Approval(_) => None,
        }
    }

    /// Checks how many agents there are, the arbiter aside.
    ///
    /// # Errors
    ///
    /// [`BadSetup::Agents`] says how many the protocol has.
    pub fn check_agents(&self, found: usize) -> Result<(), BadSetup> {
        let range = match self {
            Self::Pair(_) => 2..=2,
            Self::Council(_) => 3..=3,
            Self::Panel(_) => panel::MEMBERS_MIN..=panel::MEMBERS_MAX,
            Self::Approval(_) => 1..=review::REVIEWERS_MAX,
        };
        if range.contains(&found) {
            return Ok(());
        }
        let (min, max) = range.into_inner();
        let wanted = if min == max { min.to_string() } else { format!("{min} to {max}") };
        Err(BadSetup::Agents { protocol: self.protocol(), wanted, found })
    }
}

impl Setup {
    /// Makes the machine for this run, which must pass [`Setup::check`].
    #[must_use]
    pub fn machine(&self) -> Box<dyn Protocol> {
        if let Some(spread) = &self.spread {
            return Box::new(MapReduce::new(self.clone(), spread.clone()));
        }
        match &self.params {
            Params::Pair(params) => Box::new(Pair::new(self.with(params.clone()))),
            Params::Council(params) => Box::new(Council::new(self.with(params.clone()))),
            Params::Panel(params) => Box::new(Panel::new(self.with(params.clone()))),
            Params::Approval(params) => Box::new(Review::new(self.with(params.clone()))),
        }
    }

    /// Returns the most that this run can use.
    #[must_use]
    pub fn worst_case(&self) -> WorstCase {
        if self.spread.is_some() {
            return map_reduce::worst_case(self);
        }
        match &self.params {
            Params::Pair(params) => super::pair::worst_case(&self.with(params.clone())),
            Params::Council(params) => super::council::worst_case(&self.with(params.clone())),
            Params::Panel(params) => panel::worst_case(&self.with(params.clone())),
            Params::Approval(params) => review::worst_case(&self.with(params.clone())),
        }
    }

    /// Returns the same run with every text in it that somebody wrote for it changed.
    #[must_use]
    pub fn map_texts(mut self, mut change: impl FnMut(&str) -> String) -> Self {
        let mut apply = |text: &mut String| *text = change(text);
        apply(&mut self.task.prompt);
        for document in &mut self.task.documents {
            apply(&mut document.name);
            apply(&mut document.text);
        }
        for agent in self.agents.iter_mut().chain(&mut self.arbiter) {
            apply(&mut agent.domain);
            apply(&mut agent.pack);
            apply(&mut agent.comparing);
        }
        self.canonical.choices.iter_mut().for_each(&mut apply);
        let constraints = self.params.constraints_mut().into_iter().flatten();
        constraints.flat_map(Constraint::texts).for_each(apply);
        self
    }

    /// Checks what a machine relies on. Rolesets hold to it; a journal is checked again, because nobody
    /// vouches for one.
    ///
    /// # Errors
    ///
    /// [`BadSetup`] names the first thing that is wrong.
    pub fn check(&self) -> Result<(), BadSetup> {
        self.params.check_agents(self.agents.len())?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_good = |name: &str| (1..=40).contains(&name.len()) && name.chars().all(plain);
        if !self.everybody().all(|agent| is_good(&agent.name)) {
            return Err(BadSetup::Name);
        }
        let out_of_range = match &self.params {
            Params::Pair(params) => params.out_of_range(),
            Params::Council(params) => params.out_of_range(),
            Params::Panel(params) => params.out_of_range(),
            Params::Approval(params) => params.out_of_range(),
        };
        if let Params::Approval(params) = &self.params
            && let Some(why) = params.unreadable(&self.task)
        {
            return Err(BadSetup::Unreadable(why));
        }
        if matches!(self.params, Params::Approval(_)) && self.spread.is_some() {
            return Err(BadSetup::Unreadable("a review reads its diff in parts of its own"));
        }
        let spread = self.spread.as_ref().and_then(|spread| spread.out_of_range(&self.task));
        out_of_range.or(spread).map_or(Ok(()), |name| Err(BadSetup::OutOfRange(name)))
    }
}

impl From<Setup<PairParams>> for Setup {
    fn from(setup: Setup<PairParams>) -> Self {
        setup.with(Params::Pair(setup.params.clone()))
    }
}

impl From<Setup<CouncilParams>> for Setup {
    fn from(setup: Setup<CouncilParams>) -> Self {
        setup.with(Params::Council(setup.params.clone()))
    }
}

impl From<Setup<PanelParams>> for Setup {
    fn from(setup: Setup<PanelParams>) -> Self {
        setup.with(Params::Panel(setup.params.clone()))
    }
}

impl From<Setup<ApprovalParams>> for Setup {
    fn from(setup: Setup<ApprovalParams>) -> Self {
        setup.with(Params::Approval(setup.params.clone()))
    }
}

impl<P> Setup<P> {
    /// Returns what an agent is told about itself: the rules, who it is, and its pack.
    pub(super) fn system(&self, agent: usize) -> String {
        let own = &self.agents[agent];
        let text = format!("{}\n\n{}", self.rules.trim(), own.introduced());
        if own.comparing.is_empty() { text } else { format!("{text}\n\n{}", own.comparing.trim()) }
    }

    /// Returns what an agent is told about itself that has seen no text of another's and answers alone.
    pub(super) fn system_alone(&self, agent: usize) -> String {
        match self.rules_version.rules().opening {
            Opening::All => self.system(agent),
            Opening::Alone => self.agents[agent].introduced(),
        }
    }

    /// Returns the words of the user's, which are no echo of the program's.
    pub(super) fn heard(&self, constraints: &[Constraint]) -> Arc<str> {
        let rules: Vec<String> = constraints.iter().map(ToString::to_string).collect();
        let documents = self.task.documents.iter().flat_map(|document| [&document.name, &document.text]);
        let texts = documents.chain(&self.canonical.choices).chain(&rules).chain([&self.task.prompt]);
        vacuity::heard(self.rules_version.rules().echo, texts.map(String::as_str))
    }

    /// Returns what a text is recognised by that only says back what its author was told.
    ///
    /// `whole` are the texts that count where whole texts are compared. Where words are, every pack and the rules count, and the protocol's
    /// own `prompts`.
    pub(super) fn told(&self, heard: &Arc<str>, whole: &[&str], prompts: &[&str]) -> Told {
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
        Told::new(echo, &Said { task: &self.task.prompt, heard: Arc::clone(heard), instructions, names })
    }

    /// Returns every agent, the arbiter last.
    pub fn everybody(&self) -> impl Iterator<Item = &AgentSetup> {
        self.agents.iter().chain(&self.arbiter)
    }

    /// Returns the same run with other parameters.
    fn with<Q>(&self, params: Q) -> Setup<Q> {
        Setup {
            roleset: self.roleset.clone(),
            task: self.task.clone(),
            seed: self.seed,
            agents: self.agents.clone(),
            arbiter: self.arbiter.clone(),
            canonical: self.canonical.clone(),
            params,
            rules: self.rules.clone(),
            rules_version: self.rules_version,
            spread: self.spread.clone(),
        }
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
    /// Whether there is a library of documents that can be searched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_searched: bool,
}

impl Task {
    /// Says what is asked, without its documents, what form the answer has, and which rules of it code will check.
    pub(super) fn stated(&self, form: &CanonicalRule, rules: &[Constraint]) -> String {
        let mut text = format!("Task: {}", quote::plain(self.prompt.trim()));
        // That prose is wanted goes without saying.
        let form = (form.kind != CanonicalKind::Text).then(|| form.in_words());
        let rules: Vec<String> = form.into_iter().chain(rules.iter().map(ToString::to_string)).collect();
        if !rules.is_empty() {
            text.extend(["\nForm of the answer: ", &rules.join("; "), "."]);
        }
        text
    }
}

/// A text that belongs to a task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its file name.
    pub name: String,
    /// Its content.
    pub text: String,
    /// Whether it is another than the file's, since tokens stand in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
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
