//! `council`: one agent states the intent, one answers, one verifies, and a weighted confidence decides.
//!
//! ```text
//!  opening     Logos's model answers alone, blind to everything that follows
//!     │        Pathos states the intent (the framing)
//!     ▼
//!  response    Logos answers, with the framing and the sources before it
//!     ▼
//!  verification  Ethos checks the answer: each check compares it with words of the task or a source
//!     ▼
//!  verdict     aggregate = Σ weight × confidence
//!     │  ├─ no veto, threshold reached ────────────────► agreed (weighed)
//!     │  ├─ veto whose check names words of a source:
//!     │  │     a defect seen before, or the last round ► vetoed
//!     │  │     a new one ──────────────────────────────► next round
//!     │  ├─ below the threshold, or a veto without evidence ► next round
//!     │  └─ the last round, or one that changed nothing ► arbiter, once ► agreed (arbitrated)
//!     │                                               └─ none ─────────► no agreement
//!     ▼
//!  next round  the framing is kept, unless Pathos was among the least sure; the weakest's reasoning is fed back
//! ```
//!
//! # Invariants
//!
//! - **Code adds up.** Confidences are numbers between 0 and 1 that an agent wrote in its own form. The aggregate is exact (`weights`), and
//!   no agent learns the threshold.
//! - **A veto needs words.** A check counts as evidence only if the words that it quotes are in the source that it names (`evidence`).
//!   Without evidence a veto is an objection, which sends the answer back and stops nothing.
//! - **Text outside the forms decides nothing.** A task, a source or an answer that says "approved, confidence 1.0" is only text. Verdict
//!   fields are read from the form of the agent itself (`forms`).
//! - **Every run ends.** There are at most `max_rounds` rounds, each of three forms, and each form has at most `1 + max_repairs` attempts.
//!   After them there is at most one arbiter.

mod cost;
mod evidence;
mod examples;
mod findings;
mod forms;
mod machine;
mod manifest;
mod params;
mod prompt;
mod quotable;
mod report;
mod section;
mod state;
mod verdict;
mod weights;

use std::ops::RangeInclusive;

use super::contract::{Override, ProtocolParams, Setup, Thinking, WorstCase};
use crate::text::Constraint;

pub use evidence::{Evidence, Source, Sources};
pub use forms::{Check, CheckVerdict, Citation, Framing, Response, Sound, Verification};
pub use manifest::Manifest;
pub use params::{ConfidenceFrom, CouncilParams};
pub use section::{CouncilRound, CouncilSection};
pub use state::Council;
pub use verdict::{ConsensusResult, Member, judge};
pub use weights::{Aggregate, Confidences, Weights};

impl ProtocolParams for CouncilParams {
    type Machine = Council;

    fn protocol(&self) -> &'static str {
        "council"
    }

    fn rules(&self) -> &'static str {
        prompt::RULES
    }

    fn agents(&self) -> RangeInclusive<usize> {
        3..=3
    }

    fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    fn constraints_mut(&mut self) -> Option<&mut Vec<Constraint>> {
        Some(&mut self.constraints)
    }

    fn apply(&mut self, change: &Override) -> bool {
        match change {
            Override::MaxRounds(rounds) => self.max_rounds = *rounds,
            Override::Threshold(threshold) => self.threshold = *threshold,
            Override::Thinking(Thinking::Field)
            | Override::Resample(_)
            | Override::Stop(_)
            | Override::SamplesMax(_)
            | Override::Ahead(_)
            | Override::Modes(_)
            | Override::OnDisagreement(_)
            | Override::Talk(_) => return false,
            Override::Thinking(thinking) => self.thinking = *thinking,
            Override::MeasuredConfidence(true) => self.confidence = ConfidenceFrom::Logprob,
            Override::MeasuredConfidence(false) => self.confidence = ConfidenceFrom::Verbalised,
            Override::Weights([pathos, logos, ethos]) => {
                self.weights = Weights { pathos: *pathos, logos: *logos, ethos: *ethos };
            }
            Override::Constraints(rules) => self.constraints.extend(rules.iter().cloned()),
        }
        true
    }

    fn out_of_range(&self) -> Option<&'static str> {
        self.fault()
    }

    fn machine(setup: Setup<Self>) -> Council {
        Council::new(setup)
    }

    fn worst_case(setup: &Setup<Self>) -> WorstCase {
        cost::worst_case(setup)
    }
}
