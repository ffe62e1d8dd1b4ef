//! The state of a `vote` run, and its report: the samples, and the grounds on which they ended the run.

use super::params::VoteParams;
use crate::contract::{Degraded, DegradedKind, Outcome, Report, Setup};
use crate::sampling::{Sampler, StopClass, VoteCount, VoteSection, VoterIntroduction};

/// The state of one `vote` run.
#[derive(Clone, Debug)]
pub struct Voting {
    pub(super) setup: Setup<VoteParams>,
    pub(super) sampler: Sampler,
    /// The grounds on which the votes ended the run; `None` while it goes on, and for a run without a stop.
    pub(super) class: Option<StopClass>,
    pub(super) outcome: Option<Outcome>,
}

impl Voting {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub fn new(setup: Setup<VoteParams>) -> Self {
        let voters = setup.params.voters(&setup.agents);
        Self {
            sampler: Sampler::new(&setup, voters, VoterIntroduction::Pack),
            class: None,
            outcome: None,
            setup,
        }
    }

    /// Counts the samples that were looked at.
    pub(super) fn count(&self) -> VoteCount<'_> {
        self.sampler.count(&self.setup)
    }

    /// Makes the report; see [`crate::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<VoteSection> {
        let section = self.sampler.section(&self.setup, self.class, self.setup.params.most());
        self.sampler.report(&self.setup, self.outcome.as_ref(), self.degraded(), section)
    }

    fn degraded(&self) -> Vec<Degraded> {
        let is_agreed = matches!(self.outcome, Some(Outcome::Agreed { .. }));
        let mut found = Vec::new();
        if is_agreed && (self.class == Some(StopClass::D) || self.count().leader().is_none()) {
            let detail = "the votes did not settle on one answer; this is the one with the most".to_owned();
            found.push(Degraded { kind: DegradedKind::Unsettled, detail });
        }
        found
    }
}
