//! The machine of `vote`: events in, actions out. The module documentation has the diagram.

use super::params::SAMPLES_FIRST;
use super::state::Voting;
use crate::contract::{
    Action, CallId, Event, Executions, How, NoAgreement, OnDisagreement, Outcome, Protocol, Reply, Report,
    Unexpected,
};
use crate::sampling::{StopClass, VoteSection};

/// The fewest programs that do the same for an agreement that is not settled. Chance rarely gives two wrong programs one behaviour.
const LEAST_ALIKE: u32 = 2;

impl Voting {
    /// Asks for as many samples as may be asked for beyond those that were looked at. Unless a number is set, that is one of each
    /// voter, and no more than the run needs even if they all agree.
    fn ask_ahead(&mut self) -> Vec<Action> {
        let count = self.allowed();
        self.sampler.ask_up_to(&self.setup, count)
    }

    /// Returns the number of samples that may be asked for by now. Those of a paced vote beyond the first ones need a permit each.
    fn allowed(&self) -> usize {
        let (params, looked, voters) = (&self.setup.params, self.sampler.looked, self.sampler.voters.len());
        let most = params.most() as usize;
        if params.paced {
            return most.min(SAMPLES_FIRST as usize + self.permits);
        }
        let ahead = match params.ahead {
            Some(ahead) => ahead as usize,
            None => self.count().needed(params, looked, voters).min(voters),
        };
        most.min(looked + ahead)
    }

    fn replied(&mut self, call: CallId, reply: &Reply) -> Result<Vec<Action>, Unexpected> {
        match self.sampler.take(&self.setup, call, reply)? {
            Some(ask) => Ok(vec![Action::Ask(ask)]),
            None => Ok(self.look()),
        }
    }

    /// Looks at samples in their order, as far as they are complete, until they are enough.
    fn look(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while self.sampler.look_at_next() {
            actions.extend(self.sampler.give_up_lost_voter());
            if let Some(outcome) = self.verdict() {
                actions.extend(self.finish(outcome));
                return actions;
            }
            actions.extend(self.ask_ahead());
        }
        if self.setup.params.paced && self.sampler.looked == self.allowed() {
            self.is_waiting = true;
            actions.push(Action::AwaitPermit);
        }
        actions
    }

    /// Takes a permit for one more sample.
    fn take_permit(&mut self) -> Result<Vec<Action>, Unexpected> {
        self.end_waiting()?;
        self.permits += 1;
        let mut actions = self.ask_ahead();
        // A sample that is complete without a call is looked at, so that the run never waits for a reply that no call brings.
        actions.extend(self.look());
        Ok(actions)
    }

    /// Ends a run that gets no more permits, by the samples that it has.
    fn close(&mut self) -> Result<Vec<Action>, Unexpected> {
        self.end_waiting()?;
        let outcome = self.decide(None);
        Ok(self.finish(outcome))
    }

    /// Ends the wait for a permit.
    fn end_waiting(&mut self) -> Result<(), Unexpected> {
        if std::mem::take(&mut self.is_waiting) { Ok(()) } else { Err(Unexpected::NotAwaited) }
    }

    /// Returns the outcome if the samples that were looked at decide it.
    fn verdict(&mut self) -> Option<Outcome> {
        let looked = u32::try_from(self.sampler.looked).unwrap_or(u32::MAX);
        let params = &self.setup.params;
        let count = self.count();
        let class = count.enough(params, looked, self.sampler.voters.len());
        // A vote that ends without an answer in any case ends at once. A leader is enough for a paced vote.
        // Two programs that do the same are enough in the end.
        let is_open = params.paced
            || self.sampler.tries_programs()
            || count.can_be_enough(params, looked, self.sampler.voters.len());
        let takes_any = params.on_disagreement == OnDisagreement::Leader;
        let is_last = looked >= params.most() || !(is_open || takes_any);
        if class.is_none() && !is_last {
            return None;
        }
        Some(self.decide(class))
    }

    /// Returns the outcome of the samples that were looked at; `class` is the one by which they are enough, if they are.
    fn decide(&mut self, class: Option<StopClass>) -> Outcome {
        let (params, count) = (&self.setup.params, self.count());
        let takes_any = params.on_disagreement == OnDisagreement::Leader;
        // Of several answers with the most votes none leads, unless any answer will do. Then it is the one that came first.
        let leader = if takes_any { count.0.first() } else { count.leader() };
        let is_found_twice = self.sampler.counts_behaviour() && count.lead().leader >= LEAST_ALIKE;
        let leader = leader.map(|one| one.answer.clone());
        let (is_empty, has_stop) = (count.0.is_empty(), params.enough().is_some());
        let is_decided = class.is_some() || takes_any || !has_stop || params.paced || is_found_twice;
        self.class = if class.is_none() && has_stop { Some(StopClass::D) } else { class };
        match leader {
            Some(answer) if is_decided => {
                let how = if is_found_twice { How::Behaved } else { How::Voted };
                Outcome::Agreed { how, text: answer.shown, sha256: answer.canonical.digest }
            }
            Some(_) | None if is_empty => Outcome::NoAgreement { reason: NoAgreement::NoDrafts },
            Some(_) | None => Outcome::NoAgreement { reason: NoAgreement::Unsettled },
        }
    }

    /// Ends the run. Samples that are still in the making count for nothing.
    fn finish(&mut self, outcome: Outcome) -> Vec<Action> {
        self.outcome = Some(outcome.clone());
        let mut actions = self.sampler.cancel_open();
        actions.push(Action::Finish(outcome));
        actions
    }
}

impl AsMut<Executions> for Voting {
    fn as_mut(&mut self) -> &mut Executions {
        &mut self.sampler.executions
    }
}

impl Protocol for Voting {
    type Section = VoteSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        match event {
            // A setup that passes its check has a voter.
            Event::Started if self.sampler.voters.is_empty() => {
                Ok(self.finish(Outcome::NoAgreement { reason: NoAgreement::NoDrafts }))
            }
            Event::Started if !self.sampler.has_started() => Ok(self.ask_ahead()),
            Event::Replied { call, reply } => self.replied(*call, reply),
            Event::Lost { call, cause } => {
                self.sampler.lose(&self.setup, *call, cause)?;
                Ok(self.look())
            }
            Event::Permitted => self.take_permit(),
            Event::Closed => self.close(),
            Event::Started | Event::Found { .. } | Event::Executed { .. } => Err(event.into()),
        }
    }

    fn report(&self) -> Report<VoteSection> {
        self.make_report()
    }

    fn remark(&self) -> Option<&'static str> {
        None
    }
}
