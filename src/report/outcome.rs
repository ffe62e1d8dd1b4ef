//! The outcome of a council as types, for programs that run one.

use std::time::Duration;

use crate::engine::RunState;
use crate::journal::between;
use protocol::core::BasisPoints;
use protocol::council::{
    Aggregate, ConsensusResult, CouncilSection, Framing, Member, Response, Verification,
};
use protocol::text::counted;
use protocol::{How, Outcome, Section};

/// The outcome of a council, with everything that its three members last wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsensusOutcome {
    /// The decision about the last round.
    pub result: ConsensusResult,
    /// The answer: the agreed one, or the best available.
    pub content: String,
    /// The reasoning behind the answer, in the words of its author.
    pub reasoning: Option<String>,
    /// The framing that Pathos wrote in the last round.
    pub pathos_response: Option<Framing>,
    /// The response that Logos wrote in the last round.
    pub logos_response: Option<Response>,
    /// The verification that Ethos wrote in the last round.
    pub ethos_response: Option<Verification>,
    /// The total duration of each member's calls, in the order in which the members speak.
    pub durations: [Duration; 3],
    /// The duration of the run.
    pub total_duration: Duration,
    threshold: BasisPoints,
    is_arbitrated: bool,
    is_agreed: bool,
}

impl ConsensusOutcome {
    /// Reads the outcome of a run. Returns `None` if the run is not a council or no round has been decided.
    pub fn new(state: &RunState) -> Option<Self> {
        let Section::Council(section) = state.report().section else { return None };
        let CouncilSection { content, reasoning, threshold, mut rounds, .. } = *section;
        let last = rounds.pop()?;
        let how = match state.verdict() {
            Some(Outcome::Agreed { how, .. }) => Some(*how),
            Some(_) | None => None,
        };
        let durations =
            Member::ALL.map(|member| state.busy().get(member.index()).copied().unwrap_or_default());
        Some(Self {
            result: last.result,
            content: content.unwrap_or_default(),
            reasoning,
            pathos_response: last.framing,
            logos_response: last.response,
            ethos_response: last.verification,
            durations,
            total_duration: between(&state.started_at, &state.ended_at),
            threshold,
            is_arbitrated: how == Some(How::Arbitrated),
            is_agreed: how.is_some(),
        })
    }

    /// Returns true if the council agreed on an answer.
    pub fn is_consensus(&self) -> bool {
        self.is_agreed
    }

    /// Returns the last aggregate, unless a veto made it void or no confidence decides.
    pub fn aggregate_confidence(&self) -> Option<Aggregate> {
        match &self.result {
            ConsensusResult::Reached { aggregate_confidence, .. }
            | ConsensusResult::NeedsRevision { aggregate_confidence, .. } => *aggregate_confidence,
            ConsensusResult::NotReached { final_confidence, .. } => *final_confidence,
            ConsensusResult::Vetoed { .. } => None,
        }
    }

    /// Returns the number of rounds that were tried, or `None` while one is under way.
    pub fn rounds(&self) -> Option<u32> {
        match &self.result {
            ConsensusResult::Reached { rounds, .. } => Some(*rounds),
            ConsensusResult::Vetoed { round, .. } => Some(*round),
            ConsensusResult::NotReached { attempts, .. } => Some(*attempts),
            ConsensusResult::NeedsRevision { .. } => None,
        }
    }

    /// Returns the outcome in one line.
    pub fn summary(&self) -> String {
        match &self.result {
            ConsensusResult::Reached { aggregate_confidence: Some(confidence), rounds, .. } => {
                format!(
                    "consensus reached in round {rounds} with confidence {confidence} (threshold {})",
                    self.threshold
                )
            }
            ConsensusResult::Reached { aggregate_confidence: None, rounds, .. } => {
                format!("consensus reached in round {rounds}")
            }
            ConsensusResult::Vetoed { reason, evidence, round } => {
                format!(
                    "vetoed in round {round}: {reason} (against {}: \"{}\")",
                    evidence.source, evidence.quote
                )
            }
            ConsensusResult::NotReached { attempts, .. } if self.is_arbitrated => {
                format!("settled by the arbiter after {} without consensus", counted(*attempts, "round"))
            }
            ConsensusResult::NotReached { final_confidence: None, attempts } => {
                format!("no consensus after {}", counted(*attempts, "round"))
            }
            ConsensusResult::NotReached { final_confidence: Some(confidence), attempts } => {
                format!(
                    "no consensus after {}; confidence {confidence} (threshold {})",
                    counted(*attempts, "round"),
                    self.threshold
                )
            }
            ConsensusResult::NeedsRevision { feedback, .. } => format!("another round is needed: {feedback}"),
        }
    }
}
