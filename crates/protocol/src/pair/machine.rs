//! The machine of `pair`: events in, actions out. The module documentation has the diagram.
//!
//! The input is events, each of which goes to the present state. The output is the actions of the state that follows. Only here does one
//! state lead to another; no state holds or calls a second one.

use super::agent::Floor;
use super::arbitrating::Arbitrating;
use super::comparing::Comparing;
use super::opening::BlindOpening;
use super::params::PairSetup;
use super::report::{self, PairSection};
use super::speaking::Speaking;
use super::talk::Talk;
use super::transition::Transition;
use super::turn_end::{self, TurnEnd};
use super::{agreement, deadlock, settling, turn_order};
use crate::contract::{
    Action, CallId, Event, Executions, NoAgreement, Outcome, Protocol, Reply, Report, Unexpected,
};
use crate::turn::Executes;

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
    /// Nothing has happened.
    New,
    /// Blind drafts are being made.
    Opening(BlindOpening),
    /// One agent has the floor.
    Speaking(Speaking),
    /// The agent that has the round compares two texts.
    Comparing(Comparing),
    /// An arbiter has been asked.
    Arbitrating(Arbitrating),
    /// The run has ended.
    Done(Outcome),
}

impl Pair {
    /// Makes the machine for a run that has not started.
    ///
    /// `setup` must have exactly two agents, as every loaded roleset has.
    pub fn new(setup: PairSetup) -> Self {
        Self { talk: Talk::new(setup), state: PairState::New }
    }

    fn replied(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        let talk = &mut self.talk;
        let transition = match &mut self.state {
            PairState::Opening(state) => state.reply(talk, call, reply),
            PairState::Speaking(state) => state.reply(talk, call, reply),
            PairState::Comparing(state) => state.reply(talk, call, reply),
            PairState::Arbitrating(state) => state.reply(talk, call, reply),
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
                let opening = BlindOpening::new(talk, numbers);
                self.enter(PairState::Opening, opening)
            }
            Transition::Turn { mover, floor } => self.begin_turn(mover, floor),
            Transition::Compare { mover, accepted, own, other } => {
                let comparing = Comparing::before_concession(talk, mover, accepted, own, other);
                self.enter(PairState::Comparing, comparing)
            }
            Transition::LastWord(mover) => {
                let speaking = Speaking::new(talk, mover, Floor::LastWord);
                self.enter(PairState::Speaking, speaking)
            }
            Transition::EndTurn { mover, ended } => {
                let next = self.after_turn(mover, ended);
                self.follow(next)
            }
            Transition::Arbitrate(candidates) => {
                let Some(arbiter) = talk.setup.arbiter.clone() else {
                    return self.follow(Transition::without_agreement(NoAgreement::Deadlock));
                };
                let arbitrating = Arbitrating::new(talk, arbiter, candidates);
                self.enter(PairState::Arbitrating, arbitrating)
            }
            Transition::Finish(outcome) => {
                self.enter(PairState::Done, (outcome.clone(), vec![Action::Finish(outcome)]))
            }
        }
    }

    fn enter<S>(&mut self, state: fn(S) -> PairState, (entered, actions): (S, Vec<Action>)) -> Vec<Action> {
        self.state = state(entered);
        actions
    }

    /// Gives `mover` the floor for a round, or ends the talk when the rounds are used up.
    fn begin_turn(&mut self, mover: usize, floor: Floor) -> Vec<Action> {
        let talk = &mut self.talk;
        if talk.round >= talk.setup.params.max_rounds {
            return self.follow(Transition::without_agreement(NoAgreement::MaxRounds));
        }
        talk.round += 1;
        let comparing = match floor {
            Floor::LastWord => Comparing::before_last_word(talk, mover),
            Floor::Alone | Floor::InSight => None,
        };
        if let Some(comparing) = comparing {
            return self.enter(PairState::Comparing, comparing);
        }
        let speaking = Speaking::new(talk, mover, floor);
        self.enter(PairState::Speaking, speaking)
    }

    /// Decides how the talk continues after a turn of `mover`.
    fn after_turn(&mut self, mover: usize, ended: TurnEnd) -> Transition {
        let talk = &mut self.talk;
        let failed = matches!(ended, TurnEnd::Failed);
        turn_end::settle(talk, mover, ended);
        settling::follow_lead(talk);
        if let Some(outcome) = agreement::reached(&talk.seats, &talk.proposals) {
            return Transition::Finish(outcome);
        }
        if talk.seats[mover].failed_in_a_row >= FAILED_IN_A_ROW_MAX {
            return Transition::without_agreement(NoAgreement::InvalidReplies);
        }
        if let Some(reason) = settling::futility(talk) {
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
        let next = turn_order::after_turn(&mut talk.seats[mover], mover, peer_name, solo_turns, failed);
        Transition::Turn { mover: next, floor: talk.floor() }
    }
}

impl Executes for Pair {
    fn executions(&mut self) -> &mut Executions {
        &mut self.talk.executions
    }
}

impl Protocol for Pair {
    type Section = PairSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.talk.remark = None;
        match event {
            Event::Started if matches!(self.state, PairState::New) => {
                self.talk.round = 1;
                Ok(self.follow(Transition::Draft(0..1)))
            }
            Event::Started => Err(Unexpected::StartedTwice),
            Event::Replied { call, reply } => self.replied(*call, reply),
            Event::Found { round, .. } => Err(Unexpected::NotSearched(*round)),
            Event::Executed { key, .. } => Err(Unexpected::NotExecuted(*key)),
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
