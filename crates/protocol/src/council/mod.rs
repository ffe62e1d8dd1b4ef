//! `council`: one agent states the intent, one answers, one verifies, and a weighted confidence decides, or what code has found.
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
//! With `talk: differing`, no confidence decides. Without documents, blind answers of Logos are counted ([`CountedCouncil`]). With
//! documents, the rounds are the same, and the quotes of the answer decide ([`judge_by_quotes`]).
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

mod confirmed;
mod cost;
mod counted;
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

use super::contract::{
    EitherMachine, OnDisagreement, Override, ProtocolParams, Setup, TalkForm, Thinking, WorstCase,
};
use crate::text::Constraint;

pub use confirmed::judge_by_quotes;
pub use counted::CountedCouncil;
pub use evidence::{Evidence, Source, Sources};
pub use forms::{Check, CheckVerdict, Citation, Framing, Response, Sound, Verification};
pub use manifest::Manifest;
pub use params::{ConfidenceFrom, CouncilParams};
pub use section::{CouncilRound, CouncilSection};
pub use state::Council;
pub use verdict::{ConsensusResult, Member, judge};
pub use weights::{Aggregate, Confidences, Weights};

impl ProtocolParams for CouncilParams {
    type Machine = EitherMachine<Council, CountedCouncil>;

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

    // Where code decides, no confidence does.
    fn apply(&mut self, change: &Override) -> bool {
        match change {
            // A weighted confidence leaves no tie to decide.
            Override::Talk(TalkForm::Always) => {
                (self.talk, self.on_disagreement) = (TalkForm::Always, OnDisagreement::Abstain);
            }
            Override::Talk(TalkForm::Differing) => self.talk = TalkForm::Differing,
            Override::OnDisagreement(answer) if !self.talk.is_always() => self.on_disagreement = *answer,
            Override::MaxRounds(rounds) => self.max_rounds = *rounds,
            Override::Thinking(thinking) if *thinking != Thinking::Field => self.thinking = *thinking,
            Override::Constraints(rules) => self.constraints.extend(rules.iter().cloned()),
            Override::Threshold(threshold) if self.talk.is_always() => self.threshold = *threshold,
            Override::MeasuredConfidence(is_measured) if self.talk.is_always() => {
                self.confidence =
                    if *is_measured { ConfidenceFrom::Logprob } else { ConfidenceFrom::Verbalised };
            }
            Override::Weights([pathos, logos, ethos]) if self.talk.is_always() => {
                self.weights = Weights { pathos: *pathos, logos: *logos, ethos: *ethos };
            }
            Override::OnDisagreement(_)
            | Override::Thinking(_)
            | Override::Threshold(_)
            | Override::MeasuredConfidence(_)
            | Override::Weights(_)
            | Override::Resample(_)
            | Override::Stop(_)
            | Override::SamplesMax(_)
            | Override::Ahead(_)
            | Override::Modes(_) => return false,
        }
        true
    }

    fn reads_pieces(&self) -> bool {
        self.talk.is_always()
    }

    fn out_of_range(&self) -> Option<&'static str> {
        self.fault()
    }

    fn machine(setup: Setup<Self>) -> Self::Machine {
        if setup.params.counts(&setup.task) {
            EitherMachine::Right(Box::new(CountedCouncil::new(setup)))
        } else {
            EitherMachine::Left(Box::new(Council::new(setup)))
        }
    }

    fn worst_case(setup: &Setup<Self>) -> WorstCase {
        if setup.params.counts(&setup.task) { counted::worst_case(setup) } else { cost::worst_case(setup) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::BasisPoints;

    #[test]
    fn talk_decides_which_parameters_apply() {
        let mut params = CouncilParams::default();
        let of_confidences = [
            Override::Threshold(BasisPoints::ZERO),
            Override::MeasuredConfidence(true),
            Override::Weights([BasisPoints::ZERO; 3]),
        ];
        let leader = Override::OnDisagreement(OnDisagreement::Leader);
        assert!(!params.apply(&leader));
        assert!(params.apply(&Override::Talk(TalkForm::Differing)) && params.apply(&leader));
        for change in &of_confidences {
            assert!(!params.apply(change), "{change:?}");
        }
        assert_eq!(params.out_of_range(), None);
        let unfounded = CouncilParams { talk: TalkForm::Always, ..params.clone() };
        assert!(unfounded.out_of_range().is_some_and(|why| why.contains("--talk differing")));
        // A roleset that does not name the form is written as before.
        assert!(params.apply(&Override::Talk(TalkForm::Always)));
        assert_eq!(params, CouncilParams::default());
        let written = serde_json::to_value(&params).unwrap();
        assert!(written["talk"].is_null() && written["on_disagreement"].is_null(), "{written}");
        for change in &of_confidences {
            assert!(params.apply(change), "{change:?}");
        }
    }
}
