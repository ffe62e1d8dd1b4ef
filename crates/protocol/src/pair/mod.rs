//! `pair`: two agents, dual stop.
//!
//! ```text
//!  opening            both draft blind, in parallel (round 1)
//!     ├─ both SOLVED, marked, equal digests ─────────────────► agreed
//!     │ drafts differ and `resample` > 0: both draft blind `resample` more times
//!     ▼
//!  turn               one agent has the floor: it sees the peer's envelope as data, or, where no
//!     │               text is taken over (`adopt`), works the task out again from nothing,
//!     │               alternately by its peer's pack and by its own
//!     │  ├─ gives up its text: that counts unless the agent, shown both texts without names and in
//!     │  │  both orders, finds its own the better one (`weigh`)
//!     │  ├─ both SOLVED, marked, equal digests ──────────────► agreed
//!     │  ├─ gives the floor away, or kept it `solo_turns` times ─► turn of the other
//!     │  ├─ both moved and nothing changed ──► each works the task out once more from nothing, and
//!     │  │                                     has a last word (`deadlock`), with the result of
//!     │  │                                     comparing both texts without names
//!     │  ├─ and nothing changed again ──► arbiter, once ──────► turn of the agent that must accept
//!     │  │                             └─ no arbiter ─────────► no agreement: deadlock
//!     │  ├─ the turns that are left can settle nothing ───────► no agreement: unsettled
//!     │  ├─ two failed turns in a row by one agent ───────────► no agreement: invalid replies
//!     │  └─ `max_rounds` reached ─────────────────────────────► no agreement: max rounds
//!     ▼
//! ```
//!
//! With `talk: differing`, blind answers are counted first, and both agents declare what code has found ([`CountedPair`]).
//!
//! # States
//!
//! | state | leads to |
//! |---|---|
//! | `BlindOpening` | more drafts, the first turn, or the end |
//! | `Speaking` | a comparison, or the end of the turn |
//! | `Comparing` | the last word, or the end of the turn |
//! | `Arbitrating` | the turn of the agent that must accept, or the end |
//!
//! A state sees its own data and the `Talk`, which all states share. It returns a `Transition`, and `machine` follows it. `machine` also
//! decides what follows the end of a turn.
//!
//! # Invariants
//!
//! - **Agreement is exact.** Each agent's position has status SOLVED and carries `[SOLVED]`, and both final texts have one canonical form.
//!   Nothing else is agreement (`agreement`). The position of an agent is its latest valid envelope, or an earlier one of its own to which
//!   a clear lead brings it back (also `agreement`).
//! - **Only an agent's own envelope speaks for it.** A reply is accepted unchanged or refused (`check`). The machine fills in only the
//!   digest and the text of an adopted handle.
//! - **Drafts are blind.** No opening prompt contains a word of the peer. With `adopt` at `never`, no other prompt does either until an
//!   arbiter has chosen. Until then an agent changes only to an answer that it has found itself, for one of two reasons. The answer is more
//!   than half of all that it has found, or the answer leads clearly among all that both agents have found (`agreement`).
//! - **The agents never swap texts.** After the opening, one agent moves at a time. The drafts and the seed decide who moves first
//!   (`turn_order`).
//! - **Every run ends.** There are at most `max_rounds` rounds. Each round is one turn, with at most `1 + max_repairs` envelopes and one
//!   comparison in both orders; a last word has one more comparison.

mod agent;
mod agreement;
mod arbitrating;
mod check;
mod comparing;
mod cost;
mod counted;
mod deadlock;
mod declaring;
mod envelope_draft;
mod machine;
mod opening;
mod params;
mod prompt;
mod report;
mod speaking;
mod talk;
mod task_prompt;
mod transition;
mod turn_end;
mod turn_order;

use std::ops::RangeInclusive;

use super::contract::{EitherMachine, OnDisagreement, Override, ProtocolParams, Setup, TalkForm, WorstCase};
use crate::text::Constraint;

pub use counted::CountedPair;
pub use machine::Pair;
pub use params::{Adopt, Drafting, PairParams};
pub use report::PairSection;

impl ProtocolParams for PairParams {
    type Machine = EitherMachine<Pair, CountedPair>;

    fn protocol(&self) -> &'static str {
        "pair"
    }

    fn rules(&self) -> &'static str {
        prompt::RULES
    }

    fn agents(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn runs_programs(&self) -> bool {
        true
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
            Override::Thinking(thinking) => self.thinking = *thinking,
            Override::Resample(drafts) => self.resample = *drafts,
            Override::Constraints(rules) => self.constraints.extend(rules.iter().cloned()),
            // A talk leaves no tie to decide.
            Override::Talk(TalkForm::Always) => {
                (self.talk, self.on_disagreement) = (TalkForm::Always, OnDisagreement::Abstain);
            }
            Override::Talk(TalkForm::Differing) => self.talk = TalkForm::Differing,
            Override::OnDisagreement(answer) if !self.talk.is_always() => self.on_disagreement = *answer,
            Override::Threshold(_)
            | Override::MeasuredConfidence(_)
            | Override::Weights(_)
            | Override::Stop(_)
            | Override::SamplesMax(_)
            | Override::Ahead(_)
            | Override::Modes(_)
            | Override::OnDisagreement(_) => return false,
        }
        true
    }

    fn out_of_range(&self) -> Option<&'static str> {
        self.fault()
    }

    fn machine(setup: Setup<Self>) -> Self::Machine {
        match setup.params.talk {
            TalkForm::Always => EitherMachine::Left(Box::new(Pair::new(setup))),
            TalkForm::Differing => EitherMachine::Right(Box::new(CountedPair::new(setup))),
        }
    }

    fn worst_case(setup: &Setup<Self>) -> WorstCase {
        if setup.params.talk.is_always() {
            return cost::worst_case(setup);
        }
        let counted = counted::worst_case(setup);
        // A talk follows where two long texts differ.
        if setup.canonical.kind.may_be_long() { counted.and(cost::worst_case(setup)) } else { counted }
    }
}
