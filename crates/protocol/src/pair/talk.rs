//! The talk of two agents: the part of a `pair` run that all its states share.
//!
//! The input is positions, failures and an arbiter's choice, as the states find them. The output is the talk up to now, and the knowledge
//! that a reply is checked against. The current state of the run is not known here.

use super::agent::{AgentState, Floor, Position, ProposedText};
use super::check::{AcceptedEnvelope, ReplyCheck};
use super::params::{Adopt, PairParams};
use super::prompt;
use crate::contract::{CallId, Conversation, Executions, Setup, Step};
use crate::text::vacuity::PromptEcho;
use crate::text::{Canonicalizer, Status};

/// The reason why an agent gave up an answer without having seen another agent's.
const FOUND_ANOTHER: &str = "worked out again from nothing, it found another answer";

/// The data that all states of a `pair` run share.
#[derive(Clone, Debug)]
pub(super) struct Talk {
    pub(super) setup: Setup<PairParams>,
    pub(super) executions: Executions,
    canonicalizer: Canonicalizer,
    prompt_echo: PromptEcho,
    pub(super) seats: [AgentState; 2],
    /// The envelopes in which each agent declared a text final that it had found alone.
    pub(super) declared: [Vec<AcceptedEnvelope>; 2],
    pub(super) proposals: Vec<ProposedText>,
    /// The number of rounds that have begun.
    pub(super) round: u32,
    pub(super) arbiter: ArbiterVerdict,
    /// The result of the turn that the last reply ended, where its envelope alone does not show it.
    pub(super) remark: Option<&'static str>,
}

/// The verdict on the texts from outside the talk: the arbiter's, or how far the question to it has come, or a count.
#[derive(Clone, Debug)]
pub(super) enum ArbiterVerdict {
    /// The arbiter has not been asked.
    NotAsked,
    /// The arbiter has been asked to choose one of these proposals, in the order in which it sees them.
    Asked(Vec<usize>),
    /// The arbiter has said nothing valid in all its attempts.
    Failed,
    /// The arbiter chose this proposal, for this reason.
    Chose {
        index: usize,
        reason: String,
        /// Whether each agent has had a turn since.
        heard: [bool; 2],
    },
    /// Code has found this proposal by counting blind answers. No arbiter is asked.
    Counted(usize),
}

impl ArbiterVerdict {
    /// Returns the proposal that the arbiter chose.
    fn choice(&self) -> Option<usize> {
        match self {
            Self::Chose { index, .. } | Self::Counted(index) => Some(*index),
            Self::NotAsked | Self::Asked(_) | Self::Failed => None,
        }
    }
}

impl Talk {
    /// Makes the talk of a run that has not started.
    pub(super) fn new(setup: Setup<PairParams>) -> Self {
        let own = prompt::own(&setup);
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let user_words = setup.user_words(&setup.params.constraints);
        let system = [0, 1].map(|agent| prompt::system(&setup, agent, agent));
        Self {
            canonicalizer: Canonicalizer::new(&setup.canonical),
            executions: Executions::new(&setup),
            prompt_echo: setup.prompt_echo(&user_words, &own),
            seats: system.map(|system| AgentState::new(Conversation::new(system))),
            declared: [Vec::new(), Vec::new()],
            proposals: Vec::new(),
            round: 0,
            arbiter: ArbiterVerdict::NotAsked,
            remark: None,
            setup,
        }
    }

    /// Returns the first call of an agent in this round for this step.
    pub(super) fn call(&self, agent: usize, step: Step) -> CallId {
        CallId { part: 0, round: self.round, agent, draft: 0, step, attempt: 0 }
    }

    /// Returns the knowledge that a reply of an agent is checked against.
    pub(super) fn review(&self, agent: usize, blind: bool) -> ReplyCheck<'_> {
        ReplyCheck {
            setup: &self.setup,
            executions: &self.executions,
            canonicalizer: &self.canonicalizer,
            prompt_echo: &self.prompt_echo,
            seats: &self.seats,
            proposals: &self.proposals,
            agent,
            blind,
            arbiter_choice: self.arbiter.choice(),
        }
    }

    /// Returns whether no agent may see its peer's text. This applies where no text is taken over, until an arbiter has put one before
    /// both.
    pub(super) fn nothing_is_taken_over(&self) -> bool {
        self.setup.adopt() == Adopt::Never && self.arbiter.choice().is_none()
    }

    /// Returns how an agent has the floor while the talk makes progress.
    pub(super) fn floor(&self) -> Floor {
        if self.nothing_is_taken_over() { Floor::Alone } else { Floor::InSight }
    }

    /// Makes an accepted envelope the agent's position, and its text a proposal if it is new.
    pub(super) fn take_position(&mut self, agent: usize, accepted: AcceptedEnvelope) {
        let AcceptedEnvelope { envelope, answer, adopts } = accepted;
        let held = self.seats[agent].stands_for();
        let proposal = match (&answer, adopts, held) {
            (None, _, _) => None,
            (Some(_), Some(index), _) => Some(index),
            (Some(answer), None, Some(index))
                if self.proposals[index].answer.canonical == answer.canonical =>
            {
                Some(index)
            }
            (Some(answer), None, _) => {
                self.proposals.push(ProposedText { author: agent, answer: answer.clone() });
                Some(self.proposals.len() - 1)
            }
        };
        let seat = &mut self.seats[agent];
        if let Some(answer) = answer {
            let previous = seat.last_answer.replace(answer.clone());
            if previous.is_some_and(|p| p.canonical != answer.canonical) {
                seat.changes += 1;
                let change = envelope.meta.as_ref().and_then(|m| m.change.as_ref());
                let named = change.map(|change| change.detail.clone());
                seat.why_given_up = named.unwrap_or_else(|| FOUND_ANOTHER.to_owned());
            }
        }
        let took_over = adopts.is_some_and(|index| self.proposals[index].author != agent);
        let adopted = took_over || held == proposal && seat.position.as_ref().is_some_and(|p| p.adopted);
        seat.position = Some(Position { envelope, proposal, adopted });
    }

    /// Keeps an envelope that an agent wrote alone, if it declares a text final.
    pub(super) fn keep_declared(&mut self, agent: usize, accepted: &AcceptedEnvelope) {
        if accepted.envelope.status == Status::Solved && accepted.envelope.has_solved_marker() {
            self.declared[agent].push(accepted.clone());
        }
    }

    pub(super) fn count_failure(&mut self, agent: usize) {
        self.seats[agent].failed_turns += 1;
        self.seats[agent].failed_in_a_row += 1;
    }
}
