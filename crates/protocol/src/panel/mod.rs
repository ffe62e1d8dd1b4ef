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
//! # Invariants
//!
//! - **No member judges itself**, and no member learns whose answer is whose. Labels and order follow from the seed, the iteration and the
//!   evaluator (`lineup`), and are never beside a name in a prompt.
//! - **Code adds up.** Scores are whole numbers that an evaluator wrote in its own form. Totals, means and the verdict are exact (`tally`),
//!   and no member learns the threshold.
//! - **A ballot counts whole or not at all.** It is sent back if a label is missing, unknown or repeated, or if a score is out of its
//!   range. After the last attempt the ballot is void, and is counted as void (`ballot`).
//! - **First answers are blind.** No prompt of the first generation contains a word of another member.
//! - **Every run ends.** There are at most `max_iterations` iterations, each of one answer and one ballot for each member. Each of these
//!   has at most `1 + max_repairs` attempts.

mod ballot;
mod lineup;
mod machine;
mod params;
mod prompt;
mod report;
mod state;
mod stats;
mod tally;

use std::ops::RangeInclusive;

use super::contract::{CallId, Override, ProtocolParams, QUOTED, Setup, Step, Thinking, WorstCase, tokens};
use crate::text::Constraint;

pub use ballot::{Mark, SCORE_MAX, SCORE_MIN, Scores, TOTAL_MAX};
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
    type Machine = Panel;

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

    fn apply(&mut self, change: &Override) -> bool {
        match change {
            Override::MaxRounds(rounds) => self.max_iterations = *rounds,
            Override::Threshold(threshold) => self.threshold = *threshold,
            Override::Thinking(Thinking::Field)
            | Override::Resample(_)
            | Override::MeasuredConfidence(_)
            | Override::Weights(_)
            | Override::Stop(_)
            | Override::SamplesMax(_)
            | Override::Ahead(_)
            | Override::Modes(_)
            | Override::OnDisagreement(_) => return false,
            Override::Thinking(thinking) => self.thinking = *thinking,
            Override::Constraints(rules) => self.constraints.extend(rules.iter().cloned()),
        }
        true
    }

    fn has_members(&self) -> bool {
        true
    }

    fn out_of_range(&self) -> Option<&'static str> {
        self.fault()
    }

    fn machine(setup: Setup<Self>) -> Panel {
        Panel::new(setup)
    }

    /// The estimate assumes that every reply is as long as allowed, that every turn needs all its repairs, that no ballot is cancelled, and
    /// that all iterations are used.
    fn worst_case(setup: &Setup<Self>) -> WorstCase {
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
