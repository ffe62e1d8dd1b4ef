//! The most that a run may cost, before anything is spent.

use super::verdict::Member;
use super::{Council, Setup};
use crate::protocol::{Action, Event, Protocol, Thinking, WorstCase};

/// Tokens of the controller's own words in one turn, an upper bound of `prompt`'s texts.
const TURN_WORDS: u64 = 700;
/// The same for one refusal.
const REPAIR_WORDS: u64 = 150;

/// Returns the most that a run with this setup can use.
///
/// Every reply is taken to be as long as allowed, every turn to need all its repairs, and all rounds to be
/// used.
#[must_use]
pub fn worst_case(setup: &Setup) -> WorstCase {
    let reply = setup.agents.iter().map(|agent| u64::from(agent.max_tokens)).max().unwrap_or(0);
    let opening = opening_tokens(setup);
    // A passage enters as a JSON string, which can make it longer by half.
    let passages = if setup.searches() { setup.params.passages_tokens_max * 3 / 2 } else { 0 };
    let mut total = WorstCase::default();
    add_form(&mut total, &mut opening.clone(), setup, reply);
    for _ in Member::ALL {
        let mut conversation = opening;
        for _ in 0..setup.params.max_rounds {
            // What the others wrote, and the task, enter again with every turn.
            conversation += TURN_WORDS + 2 * reply + opening + passages;
            add_form(&mut total, &mut conversation, setup, reply);
        }
    }
    if let Some(arbiter) = &setup.arbiter {
        let rounds = u64::from(setup.params.max_rounds);
        for _ in 0..=setup.params.max_repairs {
            total.add_call(2 * opening + 2 * rounds * reply + TURN_WORDS, u64::from(arbiter.max_tokens));
        }
    }
    total
}

fn add_form(total: &mut WorstCase, conversation: &mut u64, setup: &Setup, reply: u64) {
    let thinks = u32::from(setup.params.thinking == Thinking::Free);
    for _ in 0..thinks + 1 + setup.params.max_repairs {
        total.add_call(*conversation, reply);
        *conversation += reply + REPAIR_WORDS;
    }
}

/// Returns the larger of the two opening prompts, by estimate.
fn opening_tokens(setup: &Setup) -> u64 {
    let actions = Council::new(setup.clone()).step(&Event::Started).unwrap_or_default();
    let tokens = actions.iter().map(|action| match action {
        Action::Ask(ask) => ask.prompt_tokens_estimate(),
        Action::Search(_) | Action::Finish(_) => 0,
    });
    tokens.max().unwrap_or(0)
}
