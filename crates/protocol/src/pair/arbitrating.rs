//! The state of arbitration: an arbiter has been asked to choose one of two texts.
//!
//! The input is the arbiter, the proposals that it may choose from, and its replies. The output is requests, and at last its choice. The
//! choice is noted in the talk, and the agent that has to accept it gets the next turn. A choice is never an agreement.

use super::agent::handle;
use super::talk::{ArbiterVerdict, Talk};
use super::task_prompt;
use super::transition::Transition;
use crate::contract::{Action, AgentSetup, CallId, NoAgreement, Reply, Step};
use crate::turn::{Arbitration, TurnProgress, mark};

/// The index of the arbiter in calls, which comes after the two agents.
const ARBITER: usize = 2;

/// Asks the arbiter which of the proposals answers the task.
pub(super) fn begin(
    talk: &mut Talk,
    arbiter: AgentSetup,
    mut candidates: Vec<usize>,
) -> (Arbitration, Vec<Action>) {
    let (call, seed) = (talk.call(ARBITER, Step::Choose), talk.setup.seed);
    // The order of the texts is drawn, so that being first favours neither author.
    candidates.sort_by_key(|&index| mark(seed ^ index as u64, call));
    let words =
        task_prompt::write_arbiter_prompt(&talk.setup, &talk.proposals, &candidates, &mark(seed, call));
    let handles = candidates.iter().copied().map(handle).collect();
    talk.arbiter = ArbiterVerdict::Asked(candidates);
    let (question, ask) = Arbitration::open(call, arbiter, seed, words, handles);
    (question, vec![Action::Ask(ask)])
}

/// Takes a reply. Returns `None` if the reply is not to the open call.
pub(super) fn take_reply(
    question: &mut Arbitration,
    talk: &mut Talk,
    call: CallId,
    reply: &Reply,
) -> Option<Transition> {
    let ArbiterVerdict::Asked(candidates) = &talk.arbiter else { return None };
    if call != question.call() {
        return None;
    }
    Some(match question.reply(talk.setup.seed, talk.setup.params.max_repairs, reply) {
        TurnProgress::Ask(ask) => Transition::Stay(vec![Action::Ask(ask)]),
        TurnProgress::Failed => {
            talk.arbiter = ArbiterVerdict::Failed;
            Transition::without_agreement(NoAgreement::Deadlock)
        }
        TurnProgress::Valid(ruling) => {
            let index = candidates[ruling.index];
            talk.arbiter = ArbiterVerdict::Chose { index, reason: ruling.reason, heard: [false; 2] };
            // The agent that did not write the chosen text has to decide first.
            Transition::Turn { mover: 1 - talk.proposals[index].author, floor: talk.floor() }
        }
    })
}
