//! The most that a run can cost, computed before anything is spent.

use super::machine::Pair;
use super::params::{Adopt, PairParams};
use crate::contract::{Action, AgentSetup, Event, Protocol, Setup, Thinking, WorstCase};

/// The tokens of the controller's own words in one turn: an upper bound of the texts in `prompt`, without the packs.
const TURN_WORDS: u64 = 700;
/// The same bound for one refusal.
const REPAIR_WORDS: u64 = 150;

/// Returns the most that a run with this setup can use.
///
/// The estimate assumes that every reply is as long as allowed, that every turn needs all its repairs, and that all turns are in one
/// conversation.
pub(super) fn worst_case(setup: &Setup<PairParams>) -> WorstCase {
    let params = &setup.params;
    let reply = setup.agents.iter().map(|a: &AgentSetup| u64::from(a.max_tokens)).max().unwrap_or(0);
    let opening = opening_tokens(setup);
    // The estimate of a prompt is a third of its bytes, and a character has at most four bytes.
    let text = setup.agents.iter().map(|a| 4 * a.text_chars_max() as u64 / 3).max().unwrap_or(0);
    let comparing = setup.agents.iter().map(|a| a.comparing.len() as u64).max().unwrap_or(0).div_ceil(3);
    let mut total = WorstCase::default();

    let drafts = 2 * (1 + u64::from(params.resample));
    for _ in 0..drafts {
        let mut conversation = opening;
        add_draft(&mut total, &mut conversation, setup, reply);
    }
    let mut conversation = opening + draft_growth(setup, reply);
    for _ in 1..params.max_rounds {
        // Both texts, the task and the peer's other words are in the prompt again at every turn.
        conversation += TURN_WORDS + comparing + 2 * text + reply + opening;
        add_draft(&mut total, &mut conversation, setup, reply);
    }
    // Where no text is taken over, an arbiter may still put one before the agents.
    if params.weigh && (setup.adopt() != Adopt::Never || setup.arbiter.is_some()) {
        let turns = u64::from(params.max_rounds.saturating_sub(1));
        // Two texts are shown without their history in both orders: once a turn, and twice with an agent's last word.
        for _ in 0..2 * (turns + turns.min(2)) {
            total.add_call(2 * opening + 2 * text + TURN_WORDS, reply);
        }
    }
    if let Some(arbiter) = &setup.arbiter {
        let reply_max = u64::from(arbiter.max_tokens);
        for _ in 0..=params.max_repairs {
            total.add_call(2 * opening + 2 * reply + TURN_WORDS, reply_max);
        }
    }
    total
}

fn add_draft(total: &mut WorstCase, conversation: &mut u64, setup: &Setup<PairParams>, reply: u64) {
    if setup.params.thinking == Thinking::Free {
        total.add_call(*conversation, reply);
        *conversation += reply + REPAIR_WORDS;
    }
    for _ in 0..=setup.params.max_repairs {
        total.add_call(*conversation, reply);
        *conversation += reply + REPAIR_WORDS;
    }
}

fn draft_growth(setup: &Setup<PairParams>, reply: u64) -> u64 {
    let (mut scratch, mut conversation) = (WorstCase::default(), 0);
    add_draft(&mut scratch, &mut conversation, setup, reply);
    conversation
}

/// Returns the larger of the two opening prompts, by estimate.
fn opening_tokens(setup: &Setup<PairParams>) -> u64 {
    let actions = Pair::new(setup.clone()).step(&Event::Started).unwrap_or_default();
    let tokens = actions.iter().map(|action| match action {
        Action::Ask(ask) => ask.prompt_tokens_estimate(),
        Action::Search(_)
        | Action::Execute(_)
        | Action::Cancel(_)
        | Action::AwaitPermit
        | Action::Finish(_) => 0,
    });
    tokens.max().unwrap_or(0)
}
