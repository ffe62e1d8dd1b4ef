//! The most that a run can cost, computed before anything is spent.

use super::ballot::FEEDBACK_CHARS_MAX;
use super::params::PanelSetup;
use super::prompt::{self, RULES};
use crate::contract::{CallId, QUOTED, Step, WorstCase, tokens};

/// The tokens of the controller's own words in one turn: an upper bound of the texts in `prompt`.
const TURN_WORDS: u64 = 800;
/// The same bound for the words of a ballot's form about one answer.
const LABEL_WORDS: u64 = 40;
/// Returns the most that a run with this setup can use.
///
/// The estimate assumes that every reply is as long as allowed, that every turn needs all its repairs, that no ballot is cancelled, and
/// that all iterations are used.
pub(super) fn worst_case(setup: &PanelSetup) -> WorstCase {
    let replies: Vec<u64> = setup.agents.iter().map(|agent| u64::from(agent.max_tokens)).collect();
    let others = setup.agents.len().saturating_sub(1) as u64;
    let answers: u64 = replies.iter().map(|reply| QUOTED * reply + LABEL_WORDS).sum();
    let feedback = others * QUOTED * FEEDBACK_CHARS_MAX as u64;
    let call = CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Think, attempt: 0 };
    let task = tokens(&prompt::generation(setup, call, &[]).situation);
    let mut total = WorstCase::default();
    for (member, reply) in replies.iter().enumerate() {
        let system = tokens(&setup.system(member)) + tokens(RULES);
        for _ in 0..setup.params.max_iterations {
            for seen in [feedback, answers] {
                let mut conversation = system + 2 * task + TURN_WORDS + seen;
                total.add_form(&mut conversation, setup.params.thinking, setup.params.max_repairs, *reply);
            }
        }
    }
    total
}
