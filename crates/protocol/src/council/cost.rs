//! The most that a run can cost, computed before anything is spent.

use super::evidence::Sources;
use super::examples;
use super::params::CouncilParams;
use super::prompt::{self, RULES};
use super::verdict::Member;
use crate::contract::{CallId, PASSAGES_MAX, QUOTED, Setup, Step, WorstCase, tokens};

/// The tokens of the controller's own words in one turn: an upper bound of the texts in `prompt`.
const TURN_WORDS: u64 = 800;
/// The same bound for one refusal of a choice.
const REFUSAL_WORDS: u64 = 300;
/// The same bound for the frame of one passage: its name and the name of its file.
const FRAME_WORDS: u64 = 60;

/// Returns the most that a run with this setup can use.
///
/// The estimate assumes that every reply is as long as allowed, that every turn needs all its repairs, and that all rounds are used.
pub(super) fn worst_case(setup: &Setup<CouncilParams>) -> WorstCase {
    let replies: Vec<u64> = setup.agents.iter().map(|agent| u64::from(agent.max_tokens)).collect();
    let longest = replies.iter().copied().max().unwrap_or(0);
    let task = tokens(&first_prompt(setup));
    let passages = if setup.searches() {
        2 * setup.params.passages_tokens_max + PASSAGES_MAX as u64 * FRAME_WORDS
    } else {
        0
    };
    let (thinking, max_repairs) = (setup.params.thinking, setup.params.max_repairs);
    let mut total = WorstCase::default();
    let logos = Member::Logos.index();
    let system = Member::ALL.map(|member| tokens(&setup.system(member.index())) + tokens(RULES));
    let mut alone = system[logos] + task + TURN_WORDS;
    total.add_form(&mut alone, thinking, max_repairs, replies[logos]);
    for member in Member::ALL {
        let mut conversation = system[member.index()];
        if member == Member::Ethos {
            conversation +=
                examples::conversation(setup).messages()[1..].iter().map(|m| tokens(&m.content)).sum::<u64>();
        }
        for _ in 0..setup.params.max_rounds {
            // The others' texts, the feedback and the task are in the prompt again at every turn.
            conversation += task + TURN_WORDS + 2 * QUOTED * longest + passages;
            total.add_form(&mut conversation, thinking, max_repairs, replies[member.index()]);
        }
    }
    if let Some(arbiter) = &setup.arbiter {
        let answers = u64::from(setup.params.max_rounds) * 2 * QUOTED * longest;
        let mut conversation = tokens(&arbiter.pack) + 2 * task + TURN_WORDS + answers;
        for _ in 0..=max_repairs {
            total.add_call(conversation, u64::from(arbiter.max_tokens));
            conversation += REFUSAL_WORDS;
        }
    }
    total
}

/// Returns the task and its documents as agents see them.
fn first_prompt(setup: &Setup<CouncilParams>) -> String {
    let call = CallId { part: 0, round: 0, agent: 0, draft: 0, step: Step::Think, attempt: 0 };
    prompt::blind(setup, &Sources::of_task(&setup.task), call).situation
}
