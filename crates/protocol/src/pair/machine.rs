//! The machine of `pair`: events in, actions out. The module documentation has the diagram.
//!
//! The input is events, each of which goes to the present state. The output is the actions of the state that follows. Only here does one
//! state lead to another; no state holds or calls a second one.

use super::agent::Floor;
use super::comparing::TextComparison;
use super::envelope_draft::EnvelopeDraft;
use super::opening::BlindOpening;
use super::params::PairParams;
use super::report::{self, PairSection};
use super::talk::Talk;
use super::transition::Transition;
use super::{agreement, arbitrating, deadlock, speaking, turn_end, turn_order};
use crate::contract::{
    Action, CallId, Event, Executions, NoAgreement, Outcome, Protocol, Reply, Report, Setup, Unexpected,
};
use crate::turn::Arbitration;

/// The number of failed turns in a row after which an agent ends the talk.
const FAILED_IN_A_ROW_MAX: u32 = 2;

/// One `pair` run.
#[derive(Clone, Debug)]
pub struct Pair {
    talk: Talk,
    state: PairState,
}

/// The state of a run.
#[derive(Clone, Debug)]
enum PairState {
    New,
    /// Blind drafts are being made.
    Opening(BlindOpening),
    /// One agent has the floor.
    Speaking(EnvelopeDraft),
    /// The agent that has the round compares two texts.
    Comparing(TextComparison),
    /// An arbiter has been asked.
    Arbitrating(Arbitration),
    Done(Outcome),
}

impl Pair {
    /// Makes the machine for a run that has not started.
    ///
    /// `setup` must have exactly two agents, as every loaded roleset has.
    pub fn new(setup: Setup<PairParams>) -> Self {
        Self { talk: Talk::new(setup), state: PairState::New }
    }

    /// Makes the machine of a talk that follows a round of blind answers, with what was executed for these.
    pub(super) fn after_answers(setup: Setup<PairParams>, executions: Executions) -> Self {
        let mut pair = Self::new(setup);
        pair.talk.round = 1;
        pair.talk.executions = executions;
        pair
    }

    fn take_reply(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        let talk = &mut self.talk;
        let transition = match &mut self.state {
            PairState::Opening(state) => state.reply(talk, call, reply),
            PairState::Speaking(draft) => speaking::take_reply(draft, talk, call, reply),
            PairState::Comparing(state) => state.reply(talk, call, reply),
            PairState::Arbitrating(question) => arbitrating::take_reply(question, talk, call, reply),
            PairState::New | PairState::Done(_) => None,
        };
        Ok(self.follow(transition.ok_or(Unexpected::NotAsked(call))?))
    }

    /// Follows a transition. Returns the actions of the state that it leads to.
    fn follow(&mut self, transition: Transition) -> Vec<Action> {
        let talk = &mut self.talk;
        match transition {
            Transition::Stay(actions) => actions,
            Transition::Draft(numbers) => {
                let (opening, actions) = BlindOpening::new(talk, numbers);
                self.state = PairState::Opening(opening);
                actions
            }
            Transition::Turn { mover, floor } => self.begin_turn(mover, floor),
            Transition::Compare { mover, accepted, own, other } => {
                let (comparing, actions) = TextComparison::new(talk, mover, Some(accepted), own, other);
                self.state = PairState::Comparing(comparing);
                actions
            }
            Transition::LastWord(mover) => self.give_floor(mover, Floor::LastWord),
            Transition::EndTurn { mover, accepted } => {
                turn_end::record_envelope(talk, mover, *accepted);
                let next = self.choose_next(mover, false);
                self.follow(next)
            }
            Transition::KeepOwnText(mover) => {
                turn_end::record_kept_text(talk, mover);
                let next = self.choose_next(mover, false);
                self.follow(next)
            }
            Transition::FailTurn(mover) => {
                talk.count_failure(mover);
                let next = self.choose_next(mover, true);
                self.follow(next)
            }
            Transition::Arbitrate(candidates) => {
                let Some(arbiter) = talk.setup.arbiter.clone() else {
                    return self.follow(Transition::without_agreement(NoAgreement::Deadlock));
                };
                let (question, actions) = arbitrating::begin(talk, arbiter, candidates);
                self.state = PairState::Arbitrating(question);
                actions
            }
            Transition::Finish(outcome) => {
                self.state = PairState::Done(outcome.clone());
                vec![Action::Finish(outcome)]
            }
        }
    }

    /// Gives `mover` the floor for a round, or ends the talk when the rounds are used up.
    fn begin_turn(&mut self, mover: usize, floor: Floor) -> Vec<Action> {
        let talk = &mut self.talk;
        if talk.round >= talk.setup.params.max_rounds {
            return self.follow(Transition::without_agreement(NoAgreement::MaxRounds));
        }
        talk.round += 1;
        if floor == Floor::LastWord
            && let Some((comparing, actions)) = TextComparison::before_last_word(talk, mover)
        {
            self.state = PairState::Comparing(comparing);
            return actions;
        }
        self.give_floor(mover, floor)
    }

    fn give_floor(&mut self, mover: usize, floor: Floor) -> Vec<Action> {
        let (draft, actions) = speaking::begin(&mut self.talk, mover, floor);
        self.state = PairState::Speaking(draft);
        actions
    }

    /// Decides how the talk continues after a turn of `mover`, which has been recorded.
    fn choose_next(&mut self, mover: usize, failed: bool) -> Transition {
        let talk = &mut self.talk;
        agreement::follow_lead(talk);
        if let Some(outcome) = agreement::find_agreement(&talk.seats, &talk.proposals) {
            return Transition::Finish(outcome);
        }
        if talk.seats[mover].failed_in_a_row >= FAILED_IN_A_ROW_MAX {
            return Transition::without_agreement(NoAgreement::InvalidReplies);
        }
        if let Some(reason) = agreement::find_futility(talk) {
            return Transition::without_agreement(reason);
        }
        if let Some(transition) = deadlock::after_ruling(talk, mover) {
            return transition;
        }
        if deadlock::is_reached(talk) {
            return deadlock::way_out(talk, mover);
        }
        let peer_name = &talk.setup.agents[1 - mover].name;
        let solo_turns = talk.setup.params.solo_turns;
        let next = turn_order::next_mover(&mut talk.seats[mover], mover, peer_name, solo_turns, failed);
        Transition::Turn { mover: next, floor: talk.floor() }
    }
}

impl AsMut<Executions> for Pair {
    fn as_mut(&mut self) -> &mut Executions {
        &mut self.talk.executions
    }
}

impl Protocol for Pair {
    type Section = PairSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.talk.remark = None;
        match event {
            Event::Started if matches!(self.state, PairState::New) => {
                self.talk.round += 1;
                Ok(self.follow(Transition::Draft(0..1)))
            }
            Event::Replied { call, reply } => self.take_reply(*call, reply),
            Event::Started
            | Event::Lost { .. }
            | Event::Found { .. }
            | Event::Executed { .. }
            | Event::Permitted
            | Event::Closed => Err(event.into()),
        }
    }

    fn report(&self) -> Report<PairSection> {
        let agreed = match &self.state {
            PairState::Done(Outcome::Agreed { sha256, .. }) => Some(*sha256),
            PairState::Done(_)
            | PairState::New
            | PairState::Opening(_)
            | PairState::Speaking(_)
            | PairState::Comparing(_)
            | PairState::Arbitrating(_) => None,
        };
        report::report(&self.talk, agreed)
    }

    fn remark(&self) -> Option<&'static str> {
        self.talk.remark
    }
}
