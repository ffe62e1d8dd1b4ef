//! The machine of `vote`: events in, actions out. The module documentation has the diagram.

use super::state::Voting;
use crate::contract::{
    Action, CallId, Event, Executions, How, NoAgreement, OnDisagreement, Outcome, Protocol, Reply, Report,
    Unexpected,
};
use crate::sampling::{StopClass, VoteSection};

impl Voting {
    /// Asks for as many samples as may be asked for beyond those that were looked at. Unless a number is set, that is one of each
    /// voter, and no more than the run needs even if they all agree.
    fn ask_ahead(&mut self) -> Vec<Action> {
        let (params, looked, voters) = (&self.setup.params, self.sampler.looked, self.sampler.voters.len());
        let ahead = match params.ahead {
            Some(ahead) => ahead as usize,
            None => self.count().needed(params, looked, voters).min(voters),
        };
        let count = (params.most() as usize).min(looked + ahead);
        self.sampler.ask_up_to(&self.setup, count)
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
            if let Some(outcome) = self.verdict() {
                actions.extend(self.finish(outcome));
                return actions;
            }
            actions.extend(self.ask_ahead());
        }
        actions
    }

    /// Returns the outcome if the samples that were looked at decide it.
    fn verdict(&mut self) -> Option<Outcome> {
        let looked = u32::try_from(self.sampler.looked).unwrap_or(u32::MAX);
        let params = &self.setup.params;
        let count = self.count();
        let takes_any = params.on_disagreement == OnDisagreement::Leader;
        // Of several answers with the most votes none leads, unless any answer will do. Then it is the one that came first.
        let leader = if takes_any { count.0.first() } else { count.leader() };
        let leader = leader.map(|one| one.answer.clone());
        let class = count.enough(params, looked, self.sampler.voters.len());
        // A vote that ends without an answer in any case ends at once.
        let is_open = count.can_be_enough(params, looked, self.sampler.voters.len());
        let is_last = looked >= params.most() || !(is_open || takes_any);
        if class.is_none() && !is_last {
            return None;
        }
        let (is_empty, has_stop) = (count.0.is_empty(), params.enough().is_some());
        let is_decided = class.is_some() || takes_any || !has_stop;
        self.class = if class.is_none() && has_stop { Some(StopClass::D) } else { class };
        Some(match leader {
            Some(answer) if is_decided => {
                Outcome::Agreed { how: How::Voted, text: answer.shown, sha256: answer.canonical.digest }
            }
            Some(_) | None if is_empty => Outcome::NoAgreement { reason: NoAgreement::NoDrafts },
            Some(_) | None => Outcome::NoAgreement { reason: NoAgreement::Unsettled },
        })
    }

    /// Ends the run. Samples that are still in the making count for nothing.
    fn finish(&mut self, outcome: Outcome) -> Vec<Action> {
        self.outcome = Some(outcome.clone());
        self.sampler.finish(outcome)
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
            Event::Started => Err(Unexpected::StartedTwice),
            Event::Replied { call, reply } => self.replied(*call, reply),
            Event::Found { round, .. } => Err(Unexpected::NotSearched(*round)),
            Event::Executed { key, .. } => Err(Unexpected::NotExecuted(*key)),
        }
    }

    fn report(&self) -> Report<VoteSection> {
        self.make_report()
    }

    fn remark(&self) -> Option<&'static str> {
        None
    }
}
