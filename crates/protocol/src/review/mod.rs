//! The opinions of reviewers on a change: the part of `approval` that asks models.
//!
//! ```text
//!  diff ──► parts     whole files where they fit, else pieces of one; a note replaces binary content
//!             │
//!             ▼
//!  review   every reviewer reads every part alone: findings, each on a line of the diff, then its verdict
//!             │
//!             ▼
//!  confirm  (`confirm`) every reviewer judges the findings of the others, without their names
//!             │
//!             ▼
//!  opinion  one for each reviewer: it rejects if it rejects a part, abstains if a part could not be judged, else approves
//!             │
//!             ▼
//!  verdict  a critical finding of a reviewer that rejects is a veto, if the roleset says so; else a quorum must approve
//! ```
//!
//! The input is a task whose documents are diffs. The output is opinions. Who may sign them, and what follows for a repository, is decided
//! elsewhere ([`quorum`]).
//!
//! # Invariants
//!
//! - **Reviews are blind.** No reviewer's prompt contains a word of another reviewer, or the author's own words about the change. Only when
//!   all reviews are written does a reviewer read the findings of others, and its own review stays as it is.
//! - **A finding is on an existing line.** The line is chosen from the diff, or looked up in it. A line that is not in the diff is sent
//!   back.
//! - **Silence and abstention never help.** The quorum is taken of all reviewers, whether they answer or not.
//! - **A confidence is a figure for people**, and never a weight.
//! - **Every run ends.** There are at most two forms for each reviewer and part, and each form has at most `1 + max_repairs` attempts.

mod confirmation;
mod diff;
mod diff_names;
mod form;
mod machine;
mod params;
mod prompt;
mod report;
mod state;

use std::ops::RangeInclusive;

use super::contract::{CallId, Override, ProtocolParams, Setup, Step, Task, Thinking, WorstCase, tokens};
use crate::text::{CanonicalRule, Constraint};

pub(crate) use confirmation::CONFIRMATION;
pub use confirmation::ReviewedFinding;
pub use diff::{DiffLine, DiffSign, PARTS_MAX, added_lines, diff_lines};
pub use form::Finding;
pub use params::{ApprovalParams, REVIEWERS_MAX};
pub use report::{ApprovalSection, ReviewerReport};
pub use state::Review;

/// A number of parts for which the words about them are as long as they can be.
const PARTS_IN_WORDS: usize = 100;

impl ProtocolParams for ApprovalParams {
    type Machine = Review;

    fn protocol(&self) -> &'static str {
        "approval"
    }

    fn rules(&self) -> &'static str {
        prompt::RULES
    }

    fn agents(&self) -> RangeInclusive<usize> {
        1..=REVIEWERS_MAX
    }

    fn constraints(&self) -> &[Constraint] {
        &[]
    }

    fn constraints_mut(&mut self) -> Option<&mut Vec<Constraint>> {
        None
    }

    fn apply(&mut self, change: &Override) -> bool {
        match change {
            Override::Thinking(Thinking::Field)
            | Override::MaxRounds(_)
            | Override::Threshold(_)
            | Override::Resample(_)
            | Override::MeasuredConfidence(_)
            | Override::Weights(_)
            | Override::Stop(_)
            | Override::SamplesMax(_)
            | Override::Ahead(_)
            | Override::Modes(_)
            | Override::OnDisagreement(_)
            | Override::Talk(_)
            | Override::Constraints(_) => return false,
            Override::Thinking(thinking) => self.thinking = *thinking,
        }
        true
    }

    fn reads_pieces(&self) -> bool {
        false
    }

    fn out_of_range(&self) -> Option<&'static str> {
        self.fault()
    }

    fn unreadable(&self, task: &Task, _: &CanonicalRule) -> Option<&'static str> {
        self.unreadable_task(task)
    }

    fn machine(setup: Setup<Self>) -> Review {
        Review::new(setup)
    }

    /// Every reply is as long as allowed, and every form needs all its repairs.
    fn worst_case(setup: &Setup<Self>) -> WorstCase {
        let parts = diff::parts(&setup.task.documents, setup.params.part_tokens);
        let mut total = WorstCase::default();
        for (reviewer, agent) in setup.agents.iter().enumerate() {
            let system = tokens(&setup.system(reviewer)) + tokens(prompt::RULES);
            for part in &parts {
                let call =
                    CallId { part: 0, round: 1, agent: reviewer, draft: 0, step: Step::Think, attempt: 0 };
                let prompt = prompt::review(setup, call, part, PARTS_IN_WORDS);
                let mut conversation =
                    system + tokens(&prompt.situation) + tokens(&prompt.think) + tokens(&prompt.write);
                let reply = u64::from(agent.max_tokens);
                let (mut again, reviewers) = (conversation, setup.agents.len() as u64);
                total.add_form(&mut conversation, setup.params.thinking, setup.params.max_repairs, reply);
                if setup.params.confirm && reviewers > 1 {
                    again += (reviewers - 1) * form::FINDINGS_TOKENS_MAX;
                    total.add_form(&mut again, setup.params.thinking, setup.params.max_repairs, reply);
                }
            }
        }
        total
    }
}
