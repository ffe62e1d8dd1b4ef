//! The most that a review can cost, computed before anything is spent.

use super::diff;
use super::params::ReviewSetup;
use super::prompt::{self, RULES};
use crate::contract::{CallId, Step, WorstCase, tokens};

/// Returns the most that a review with this setup can use: every reply is as long as allowed, and every form needs all its repairs.
pub(super) fn worst_case(setup: &ReviewSetup) -> WorstCase {
    let parts = diff::parts(&setup.task.documents, setup.params.part_tokens);
    let mut total = WorstCase::default();
    for (reviewer, agent) in setup.agents.iter().enumerate() {
        let system = tokens(&setup.system(reviewer)) + tokens(RULES);
        for part in &parts {
            let call = CallId { part: 0, round: 1, agent: reviewer, draft: 0, step: Step::Think, attempt: 0 };
            let told = prompt::review(setup, call, part, PARTS_IN_WORDS);
            let mut conversation =
                system + tokens(&told.situation) + tokens(&told.think) + tokens(&told.write);
            let reply = u64::from(agent.max_tokens);
            total.add_form(&mut conversation, setup.params.thinking, setup.params.max_repairs, reply);
        }
    }
    total
}

/// A number of parts for which the words about them are as long as they can be.
const PARTS_IN_WORDS: usize = 100;
