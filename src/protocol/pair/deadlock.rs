//! What is tried before a talk that has come to a standstill ends without agreement.
//!
//! In: the machine as it stands when both agents have moved and nothing changed. Out: the next turn, or the
//! end. First each works the task out once more, then each has a last word, then an arbiter chooses, each of
//! them once: so this ends.

use super::agent::{AgentState, handle};
use super::judge_prompt;
use super::state::{Pair, PairPhase};
use crate::protocol::contract::{Action, CallId, NoAgreement, Reply, Step};
use crate::protocol::turn::{Arbitration, Ruling, mark};
use crate::text::Status;

impl Pair {
    /// Both have moved and nothing changed. Before the talk ends, each agent works the task out once more
    /// unseen, which may find its peer's text, or a better one to talk about; and has a last word after it,
    /// in the conversation that this has begun: what it has said so far no longer holds it.
    pub(super) fn deadlock(&mut self, mover: usize) -> Vec<Action> {
        let order = [1 - mover, mover];
        if let Some(agent) = order.into_iter().find(|&agent| self.seats[agent].solo_attempts == 0) {
            return self.take_turn(agent, true);
        }
        let is_talk = !self.nothing_is_taken_over();
        if let Some(agent) = order.into_iter().find(|&agent| is_talk && !self.seats[agent].had_last_word) {
            self.seats[agent].had_last_word = true;
            let Some(call) = self.next_round(agent, false) else {
                return self.finish_without(NoAgreement::MaxRounds);
            };
            return match self.weigh_first(call) {
                Some(ask) => vec![Action::Ask(ask)],
                None => self.speak(call, false),
            };
        }
        let mut candidates: Vec<usize> = self.seats.iter().filter_map(AgentState::stands_for).collect();
        candidates
            .dedup_by(|a, b| self.proposals[*a].answer.canonical == self.proposals[*b].answer.canonical);
        match &self.setup.arbiter {
            Some(arbiter) if !self.arbiter_asked && candidates.len() == 2 => {
                let call =
                    CallId { part: 0, round: self.round, agent: 2, draft: 0, step: Step::Choose, attempt: 0 };
                // The order of the texts is drawn, so that being first favours neither author.
                candidates.sort_by_key(|&index| mark(self.setup.seed ^ index as u64, call));
                let texts: Vec<_> = candidates.iter().map(|&i| (i, &self.proposals[i])).collect();
                let question = judge_prompt::arbiter(&self.setup, &texts, &mark(self.setup.seed, call));
                let handles = candidates.iter().copied().map(handle).collect();
                let (open, ask) = Arbitration::open(call, arbiter, self.setup.seed, question, handles);
                self.arbitration = Some((open, candidates));
                self.arbiter_asked = true;
                self.phase = PairPhase::Arbitrating;
                vec![Action::Ask(ask)]
            }
            Some(_) | None => self.finish_without(NoAgreement::Deadlock),
        }
    }

    pub(super) fn ruling(
        &mut self,
        mut open: Arbitration,
        candidates: Vec<usize>,
        reply: &Reply,
    ) -> Vec<Action> {
        let Some(arbiter) = &self.setup.arbiter else {
            return self.finish_without(NoAgreement::Deadlock);
        };
        match open.reply(arbiter, self.setup.seed, self.setup.params.max_repairs, reply) {
            Ruling::Ask(ask) => {
                self.arbitration = Some((open, candidates));
                vec![Action::Ask(ask)]
            }
            Ruling::None => {
                self.arbiter_failed = true;
                self.finish_without(NoAgreement::Deadlock)
            }
            Ruling::Chose(chosen, reason) => {
                let index = candidates[chosen];
                self.arbiter_choice = Some((index, reason));
                // Whoever did not write the chosen text has to decide first.
                self.idle = [0; 2];
                self.turn(1 - self.proposals[index].author)
            }
        }
    }

    /// After the arbiter's choice each agent that does not stand for it has one turn.
    pub(super) fn after_ruling(&mut self) -> Vec<Action> {
        let chosen =
            self.arbiter_choice.as_ref().map(|(index, _)| self.proposals[*index].answer.canonical.clone());
        if let PairPhase::Talking { mover, .. } = self.phase {
            self.idle[mover] += 1;
        }
        let accepts = |seat: &AgentState| {
            let text = seat.stands_for().map(|index| self.proposals[index].answer.canonical.clone());
            seat.status() == Some(Status::Solved) && text == chosen
        };
        let waiting = (0..2).find(|&agent| self.idle[agent] == 0 && !accepts(&self.seats[agent]));
        let refused = (0..2).any(|agent| self.idle[agent] > 0 && !accepts(&self.seats[agent]));
        match waiting {
            Some(agent) if !refused => self.turn(agent),
            Some(_) | None => self.finish_without(NoAgreement::Deadlock),
        }
    }
}
