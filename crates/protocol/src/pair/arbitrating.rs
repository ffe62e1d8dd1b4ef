//! The state of arbitration: an arbiter has been asked to choose one of two texts.
//!
//! The input is the arbiter, the proposals that it may choose from, and its replies. The output is requests, and at last its choice. The
//! choice is noted in the talk, and the agent that has to accept it gets the next turn. A choice is never an agreement.

use super::agent::handle;
use super::judge_prompt;
use super::talk::{ArbiterVerdict, Talk};
use super::transition::Transition;
use crate::contract::{Action, AgentSetup, CallId, NoAgreement, Reply, Step};
use crate::turn::{Arbitration, Ruling, mark};

/// The index of the arbiter in calls, which comes after the two agents.
const ARBITER: usize = 2;

/// The state in which an arbiter has been asked.
#[derive(Clone, Debug)]
pub(super) struct Arbitrating {
    arbiter: AgentSetup,
    question: Arbitration,
    /// The proposals that it may choose from, in the order in which it sees them.
    candidates: Vec<usize>,
}

impl Arbitrating {
    /// Asks the arbiter which of the proposals answers the task.
    pub(super) fn new(talk: &Talk, arbiter: AgentSetup, mut candidates: Vec<usize>) -> (Self, Vec<Action>) {
        let (call, seed) = (talk.call(ARBITER, Step::Choose), talk.setup.seed);
        // The order of the texts is drawn, so that being first favours neither author.
        candidates.sort_by_key(|&index| mark(seed ^ index as u64, call));
        let texts: Vec<_> = candidates.iter().map(|&i| (i, &talk.proposals[i])).collect();
        let words = judge_prompt::arbiter(&talk.setup, &texts, &mark(seed, call));
        let handles = candidates.iter().copied().map(handle).collect();
        let (question, ask) = Arbitration::open(call, &arbiter, seed, words, handles);
        (Self { arbiter, question, candidates }, vec![Action::Ask(ask)])
    }

    /// Takes a reply. Returns `None` if the reply is not to the open call.
    pub(super) fn reply(&mut self, talk: &mut Talk, call: CallId, reply: &Reply) -> Option<Transition> {
        if call != self.question.call() {
            return None;
        }
        let max_repairs = talk.setup.params.max_repairs;
        Some(match self.question.reply(&self.arbiter, talk.setup.seed, max_repairs, reply) {
            Ruling::Ask(ask) => Transition::Stay(vec![Action::Ask(ask)]),
            Ruling::None => {
                talk.arbiter = ArbiterVerdict::Failed;
                Transition::without_agreement(NoAgreement::Deadlock)
            }
            Ruling::Chose(chosen, reason) => {
                let index = self.candidates[chosen];
                talk.arbiter = ArbiterVerdict::Chose { index, reason, heard: [false; 2] };
                // The agent that did not write the chosen text has to decide first.
                Transition::Turn { mover: 1 - talk.proposals[index].author, floor: talk.floor() }
            }
        })
    }
}
