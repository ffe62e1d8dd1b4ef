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
mod cost;
mod lineup;
mod machine;
mod params;
mod prompt;
mod report;
mod state;
mod stats;
mod tally;

use std::ops::RangeInclusive;

use super::contract::{Override, ProtocolParams, Setup, Thinking, WorstCase};
use crate::text::Constraint;

pub use ballot::{Mark, SCORE_MAX, SCORE_MIN, Scores, TOTAL_MAX};
pub use lineup::Lineup;
pub use params::{MEMBERS_MAX, MEMBERS_MIN, PanelParams, PanelSetup};
pub use report::{Evaluated, PanelSection, Placed, Proposed};
pub use state::Panel;
pub use stats::{Judged, kendall_tau_b, preference};
pub use tally::{Standing, Tallied};

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
            | Override::Vote(_) => return false,
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

    fn worst_case(setup: &Setup<Self>) -> WorstCase {
        cost::worst_case(setup)
    }
}
