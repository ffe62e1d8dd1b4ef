//! `vote`: samples are drawn blind, and an exact rule says when they are enough.
//!
//! ```text
//!  samples   voter 1 ─ voter 2 ─ … ─ voter 1 ─ voter 2 ─ …      each answers alone: in words, or by a program that is run
//!     │      asked for `ahead` of need, looked at in their order
//!     ▼
//!  count     answers by their canonical form; what is no valid answer is no vote
//!     │  ├─ the first samples of two voters are equal (`stop: fast`) ──────────► agreed (voted), class B
//!     │  ├─ the leading answer is certain enough, found by several voters ─────► agreed (voted), class A
//!     │  ├─ the leading answer is certain enough, found by one voter ──────────► agreed (voted), class C
//!     │  ├─ no answer can become certain enough ───────────────────────────────► no agreement, class D
//!     │  └─ without a stop, all samples are drawn: the most votes ─────────────► agreed (voted), no class
//!     │     Of two answers with equal votes neither leads: no agreement. With `on_disagreement: leader`, the answer
//!     │     that came first of those with the most votes is taken in any case.
//!     ▼
//!  next sample, for which a paced vote waits until it is permitted:
//!     ├─ permitted ─► one more sample
//!     └─ closed ────► the strict leader is agreed (voted), class D; without one, no agreement
//! ```
//!
//! With `answer: whole`, whole replies are compared ([`TextVote`]).
//!
//! # Invariants
//!
//! - **Every sample is blind.** No prompt contains a word of another sample, and no voter learns that there are others.
//! - **The order is fixed.** The voter of a sample and its call depend on the sample's number alone. Samples are looked at in that order,
//!   so neither the order in which they arrive nor the number that is asked for ahead changes the outcome.
//! - **The stop is exact.** The certainty of the lead is a fraction of natural numbers (`contract::lead`).
//! - **Nothing is filled in.** A sample that is cut, refused, vacuous or without an answer costs, and is no vote.
//! - **A voter whose server fails is lost.** Its sample is no vote, and neither is any later one of it, so they are not asked for. The run
//!   bears that while at least `min_members` voters remain, and the engine ends it otherwise.
//! - **Every run ends.** There are at most `samples_max` samples, each of at most two calls. With `stop: none`, whole replies have three
//!   more after a tie.
//! - **A permit decides nothing else.** It adds one sample, and neither its time nor its grounds change a count.

mod machine;
mod params;
mod state;
#[cfg(test)]
mod tests;
mod texts;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::contract::{
    AgentSetup, EitherMachine, Override, ProtocolParams, Setup, Task, WorstCase, are_enough_left,
};
use crate::behaviour::find_function;
use crate::sampling;
use crate::text::{CanonicalKind, CanonicalRule, Constraint};

pub use params::{SAMPLES_FIRST, VoteParams};
pub use state::Voting;
pub use texts::TextVote;

/// Returns true if whole replies are compared. Numbers, choices and JSON values are counted in any case.
fn compares_texts(setup: &Setup<VoteParams>) -> bool {
    setup.canonical.kind.may_be_long() && !setup.params.answer.is_line()
}

impl ProtocolParams for VoteParams {
    type Machine = EitherMachine<Voting, TextVote>;

    fn protocol(&self) -> &'static str {
        "vote"
    }

    // A voter that works alone has none but its pack.
    fn rules(&self) -> &'static str {
        ""
    }

    fn agents(&self) -> RangeInclusive<usize> {
        1..=params::VOTERS_MAX
    }

    fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    fn constraints_mut(&mut self) -> Option<&mut Vec<Constraint>> {
        Some(&mut self.constraints)
    }

    fn apply(&mut self, change: &Override) -> bool {
        match change {
            Override::Stop(stop) => self.stop = *stop,
            Override::Threshold(threshold) => self.threshold = Some(*threshold),
            Override::SamplesMax(count) => self.samples_max = Some(*count),
            Override::Ahead(count) => self.ahead = Some(*count),
            Override::Modes(modes) => self.modes = Some(modes.clone()),
            Override::OnDisagreement(answer) => self.on_disagreement = *answer,
            Override::Constraints(rules) => self.constraints.extend(rules.iter().cloned()),
            Override::MaxRounds(_)
            | Override::Thinking(_)
            | Override::Resample(_)
            | Override::MeasuredConfidence(_)
            | Override::Weights(_)
            | Override::Talk(_) => return false,
        }
        true
    }

    fn runs_programs(&self) -> bool {
        true
    }

    fn reads_pieces(&self) -> bool {
        false
    }

    fn out_of_range(&self) -> Option<&'static str> {
        self.fault()
    }

    fn unfit(&self, agents: &[AgentSetup]) -> Option<&'static str> {
        self.misfit(agents)
    }

    fn bears_loss_of(&self, agents: &[AgentSetup], lost: &BTreeSet<usize>) -> bool {
        are_enough_left(&self.voters(agents), lost, self.min_members)
    }

    fn unreadable(&self, task: &Task, canonical: &CanonicalRule) -> Option<&'static str> {
        if task.is_searched {
            return Some("voters do not search documents; give them with -f, or use another protocol");
        }
        if canonical.kind == CanonicalKind::Behaviour && find_function(&task.prompt).is_none() {
            return Some(
                "programs are compared by calls of one Python function, and the task names none, or several; name it on a line that \
                 begins with `def name(` or `assert name(`, or in words such as \"a function `name`\"",
            );
        }
        None
    }

    fn compares_behaviour(&self) -> bool {
        true
    }

    fn machine(setup: Setup<Self>) -> Self::Machine {
        if compares_texts(&setup) {
            EitherMachine::Right(Box::new(TextVote::new(setup)))
        } else {
            EitherMachine::Left(Box::new(Voting::new(setup)))
        }
    }

    /// The estimate assumes that all samples are drawn, that every reply is as long as allowed, and that each answer in words is asked for
    /// in a form as well.
    fn worst_case(setup: &Setup<Self>) -> WorstCase {
        if compares_texts(setup) {
            return texts::worst_case(setup);
        }
        let voters = setup.params.voters(&setup.agents);
        sampling::worst_case(setup, &voters, state::form(setup), setup.params.most() as usize)
    }
}
