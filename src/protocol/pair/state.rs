//! The state of a `pair` run, and what can be read off it.

use std::collections::BTreeMap;

use super::agent::{AgentState, ProposedText};
use super::check::{Accepted, ReplyCheck};
use super::comparison::Comparison;
use super::params::{Adopt, PairSetup};
use super::schema::SchemaCache;
use super::{prompt, task_prompt};
use crate::protocol::contract::{CallId, Conversation, Outcome};
use crate::protocol::turn::{Arbitration, Draft};
use crate::text::Canonicalizer;
use crate::text::vacuity::PromptEcho;

/// The state of one `pair` run.
#[derive(Clone, Debug)]
pub struct Pair {
    pub(super) setup: PairSetup,
    pub(super) canonicalizer: Canonicalizer,
    pub(super) told: [PromptEcho; 2],
    pub(super) schemas: SchemaCache,
    pub(super) seats: [AgentState; 2],
    pub(super) proposals: Vec<ProposedText>,
    pub(super) round: u32,
    pub(super) phase: PairPhase,
    /// Envelopes in the making, by the call they wait for.
    pub(super) open: BTreeMap<CallId, Draft>,
    /// Finished blind drafts, kept until all are in so that their order of arrival does not matter.
    pub(super) drafted: BTreeMap<(u32, usize), Option<Box<Accepted>>>,
    /// How often each agent has moved since anything last changed.
    pub(super) idle: [u32; 2],
    /// Two texts that are being compared, in the middle of a turn.
    pub(super) comparison: Option<Comparison>,
    /// The open question to the arbiter, and the proposals it may choose from.
    pub(super) arbitration: Option<(Arbitration, Vec<usize>)>,
    pub(super) arbiter_asked: bool,
    /// The text that the arbiter chose, and its reason.
    pub(super) arbiter_choice: Option<(usize, String)>,
    pub(super) arbiter_failed: bool,
    pub(super) outcome: Option<Outcome>,
    pub(super) remark: Option<&'static str>,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PairPhase {
    /// Nothing has happened.
    New,
    /// Blind drafts are being made.
    Drafting,
    /// One agent has the floor.
    Talking {
        /// The agent that has it.
        mover: usize,
        /// Whether it works the task out again from nothing.
        alone: bool,
    },
    /// An arbiter has been asked, or has chosen and its choice is before the agents.
    Arbitrating,
    /// The run has ended.
    Done,
}

/// Returns what each agent is told, to be recognised when it comes back as an answer.
fn told(setup: &PairSetup) -> [PromptEcho; 2] {
    let heard = setup.heard(&setup.params.constraints);
    let own = prompt::own(setup);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    [0, 1].map(|agent| {
        let alone = prompt::alone(setup, agent);
        let form = task_prompt::form(setup);
        let whole = [&setup.agents[agent].pack, &form, &alone.think, &alone.write, &setup.rules];
        setup.told(&heard, &whole.map(String::as_str), &own)
    })
}

impl Pair {
    /// Makes the machine for a run that has not started.
    ///
    /// `setup` must have exactly two agents, as every loaded roleset has.
    #[must_use]
    pub fn new(setup: PairSetup) -> Self {
        let seat = |agent| AgentState::new(Conversation::new(prompt::system(&setup, agent, agent)));
        Self {
            canonicalizer: Canonicalizer::new(&setup.canonical, setup.rules_version.rules().reading),
            told: told(&setup),
            schemas: SchemaCache::default(),
            seats: [seat(0), seat(1)],
            proposals: Vec::new(),
            round: 0,
            phase: PairPhase::New,
            open: BTreeMap::new(),
            drafted: BTreeMap::new(),
            idle: [0; 2],
            comparison: None,
            arbitration: None,
            arbiter_asked: false,
            arbiter_choice: None,
            arbiter_failed: false,
            outcome: None,
            remark: None,
            setup,
        }
    }

    pub(super) fn review(&self, agent: usize, blind: bool) -> ReplyCheck<'_> {
        ReplyCheck {
            setup: &self.setup,
            canonicalizer: &self.canonicalizer,
            told: &self.told,
            seats: &self.seats,
            proposals: &self.proposals,
            agent,
            blind,
            arbiter_choice: self.arbiter_choice.as_ref().map(|(index, _)| *index),
        }
    }

    /// Whether no agent may see its peer's text: where none is taken over, until an arbiter has put one
    /// before both.
    pub(super) fn nothing_is_taken_over(&self) -> bool {
        self.setup.adopt() == Adopt::Never && self.arbiter_choice.is_none()
    }

    /// Whether the agent whose reply is awaited knows nothing of its peer's text.
    pub(super) fn is_blind(&self) -> bool {
        matches!(self.phase, PairPhase::Drafting | PairPhase::Talking { alone: true, .. })
    }
}
