//! `panel`: several members answer, each judges the others' answers without their names, and the mean score decides.
//!
//! ```text
//!  generation   every member answers alone, in parallel
//!     │
//!     ▼
//!  evaluation   every member scores all answers but its own: accuracy, relevance, completeness, clarity,
//!     │         1 to 10 each, under labels and in an order that are drawn anew for each ballot
//!     │         └─ the rest is cancelled once it can change neither the winner nor the verdict (`early_stop`)
//!     ▼
//!  verdict      normalised score = mean total / 40
//!     │  ├─ the best answer reaches the threshold ─────► agreed (scored)
//!     │  ├─ the last iteration, or one that repeats the one before it ─► no agreement
//!     │  └─ below ─► next iteration
//!     ▼
//!  next iteration   the feedback on the best answer is added to the task, as data; all answer anew
//! ```
//!
//! With `talk: differing`, the members' blind answers are counted, and no member judges ([`CountedPanel`]).
//!
//! # Invariants
//!
//! - **No member judges itself**, and no member learns whose answer is whose. Labels and order follow from the seed, the iteration and the
//!   evaluator (`lineup`), and are never beside a name in a prompt.
//! - **Code adds up.** Scores are whole numbers that an evaluator wrote in its own form. Totals, means and the verdict are exact (`tally`),
//!   and no member learns the threshold.
//! - **A ballot counts whole or not at all.** It is sent back if a label is missing, unknown or repeated, or if a score is out of its
//!   range. After the last attempt the ballot is void, and is counted as void (`ballot`).
//! - **First answers are blind.** No prompt of the first generation contains a word of another member.
//! - **A member whose server fails is lost for the rest of the run.** Its answer is missing and its ballots are void. The run bears that
//!   while at least `min_members` remain, and the engine ends it otherwise.
//! - **Every run ends.** There are at most `max_iterations` iterations, each of one answer and one ballot for each member. Each of these
//!   has at most `1 + max_repairs` attempts.

mod ballot;
mod counted;
mod lineup;
mod machine;
mod params;
mod prompt;
mod report;
mod state;
mod stats;
mod tally;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::contract::{
    AgentSetup, CallId, EitherMachine, OnDisagreement, Override, ProtocolParams, QUOTED, Setup, Step,
    TalkForm, Task, Thinking, WorstCase, are_enough_left, min_members_fault, tokens,
};
use crate::text::{CanonicalRule, Constraint};

pub use ballot::{Mark, SCORE_MAX, SCORE_MIN, Scores, TOTAL_MAX};
pub use counted::CountedPanel;
pub use lineup::Lineup;
pub use params::{MEMBERS_MAX, MEMBERS_MIN, PanelParams};
pub use report::{Evaluation, PanelResponse, PanelSection, RankedResponse};
pub use state::Panel;
pub use stats::{Judgement, kendall_tau_b, preference};
pub use tally::AnswerTally;

/// The tokens of the controller's own words in one turn: an upper bound of the texts in `prompt`.
const TURN_WORDS: u64 = 800;
/// The same bound for the words of a ballot's form about one answer.
const LABEL_WORDS: u64 = 40;

impl ProtocolParams for PanelParams {
    type Machine = EitherMachine<Panel, CountedPanel>;

    fn protocol(&self) -> &'static str {
        "panel"
    }

    fn rules(&self) -> &'static str {
        prompt::RULES
    }

    fn agents(&self) -> RangeInclusive<usize> {
        MEMBERS_MIN..=MEMBERS_MAX
    }

    fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    fn constraints_mut(&mut self) -> Option<&mut Vec<Constraint>> {
        Some(&mut self.constraints)
    }

    // Where answers are counted there are no iterations, no scores and no thoughts of judges.
    fn apply(&mut self, change: &Override) -> bool {
        match change {
            // Judges leave no tie to decide.
            Override::Talk(TalkForm::Always) => {
                (self.talk, self.on_disagreement) = (TalkForm::Always, OnDisagreement::Abstain);
            }
            Override::Talk(TalkForm::Differing) => self.talk = TalkForm::Differing,
            Override::Constraints(rules) => self.constraints.extend(rules.iter().cloned()),
            Override::OnDisagreement(answer) if !self.talk.is_always() => self.on_disagreement = *answer,
            Override::MaxRounds(rounds) if self.talk.is_always() => self.max_iterations = *rounds,
            Override::Threshold(threshold) if self.talk.is_always() => self.threshold = *threshold,
            Override::Thinking(thinking) if self.talk.is_always() && *thinking != Thinking::Field => {
                self.thinking = *thinking;
            }
            Override::OnDisagreement(_)
            | Override::MaxRounds(_)
            | Override::Threshold(_)
            | Override::Thinking(_)
            | Override::Resample(_)
            | Override::MeasuredConfidence(_)
            | Override::Weights(_)
            | Override::Stop(_)
            | Override::SamplesMax(_)
            | Override::Ahead(_)
            | Override::Modes(_) => return false,
        }
        true
    }

    fn has_members(&self) -> bool {
        true
    }

    fn reads_pieces(&self) -> bool {
        self.talk.is_always()
    }

    fn unreadable(&self, task: &Task, _: &CanonicalRule) -> Option<&'static str> {
        if task.is_searched {
            return Some(
                "members of a panel do not search documents; give them with -f, or use another protocol",
            );
        }
        None
    }

    fn out_of_range(&self) -> Option<&'static str> {
        self.fault()
    }

    fn unfit(&self, agents: &[AgentSetup]) -> Option<&'static str> {
        min_members_fault(agents.len(), self.min_members)
    }

    fn bears_loss_of(&self, agents: &[AgentSetup], lost: &BTreeSet<usize>) -> bool {
        let members: Vec<usize> = (0..agents.len()).collect();
        are_enough_left(&members, lost, self.min_members)
    }

    fn machine(setup: Setup<Self>) -> Self::Machine {
        match setup.params.talk {
            TalkForm::Always => EitherMachine::Left(Box::new(Panel::new(setup))),
            TalkForm::Differing => EitherMachine::Right(Box::new(CountedPanel::new(setup))),
        }
    }

    /// The estimate assumes that every reply is as long as allowed, that every turn needs all its repairs, that no ballot is cancelled, and
    /// that all iterations are used.
    fn worst_case(setup: &Setup<Self>) -> WorstCase {
        if !setup.params.talk.is_always() {
            return counted::worst_case(setup);
        }
        let replies: Vec<u64> = setup.agents.iter().map(|agent| u64::from(agent.max_tokens)).collect();
        let others = setup.agents.len().saturating_sub(1) as u64;
        let answers: u64 = replies.iter().map(|reply| QUOTED * reply + LABEL_WORDS).sum();
        let feedback = others * QUOTED * ballot::FEEDBACK_CHARS_MAX as u64;
        let call = CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Think, attempt: 0 };
        let task = tokens(&prompt::generation(setup, call, &[]).situation);
        let mut total = WorstCase::default();
        for (member, reply) in replies.iter().enumerate() {
            let system = tokens(&setup.system(member)) + tokens(prompt::RULES);
            for _ in 0..setup.params.max_iterations {
                for quoted in [feedback, answers] {
                    let mut conversation = system + 2 * task + TURN_WORDS + quoted;
                    total.add_form(
                        &mut conversation,
                        setup.params.thinking,
                        setup.params.max_repairs,
                        *reply,
                    );
                }
            }
        }
        total
    }
}
