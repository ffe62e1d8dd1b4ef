//! The state of a `vote` run, with its report: the samples, the rule by which they are enough, and the grounds on which they ended the run.
//! The verdict is in [`machine`](super::machine).

use super::params::VoteParams;
use crate::contract::{Degraded, DegradedKind, Lead, Outcome, Report, Setup, VoteStop};
use crate::sampling::{
    AnswerExtent, SampleForm, Sampler, StopClass, VoteCount, VoteSection, VoterIntroduction,
};
use crate::text::CanonicalKind;

/// Returns how voters are asked: by their own packs. They end with the answer alone, or write nothing but a program.
pub(super) fn form(setup: &Setup<VoteParams>) -> SampleForm {
    let is_program = setup.canonical.kind == CanonicalKind::Behaviour;
    let answer = if is_program { AnswerExtent::Whole } else { AnswerExtent::Line };
    SampleForm { introduction: VoterIntroduction::Pack, answer }
}

/// The state of one `vote` run.
#[derive(Clone, Debug)]
pub struct Voting {
    pub(super) setup: Setup<VoteParams>,
    pub(super) sampler: Sampler,
    /// The number of samples that were permitted beyond the first ones; 0 unless the vote is paced.
    pub(super) permits: usize,
    /// Whether the run waits for a permit, with all of its samples looked at.
    pub(super) is_waiting: bool,
    /// The grounds on which the votes ended the run; `None` while it goes on, and for a run without a stop.
    pub(super) class: Option<StopClass>,
    pub(super) outcome: Option<Outcome>,
}

impl Voting {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub fn new(setup: Setup<VoteParams>) -> Self {
        let voters = setup.params.voters(&setup.agents);
        Self {
            sampler: Sampler::new(&setup, voters, form(&setup)),
            permits: 0,
            is_waiting: false,
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
        let is_tie = self.count().leader().is_none();
        if is_agreed && (self.class == Some(StopClass::D) || is_tie) {
            let which = if is_tie { "of those with the most, it came first" } else { "it has the most" };
            let detail = format!("the votes did not settle on this answer; {which}");
            found.push(Degraded { kind: DegradedKind::Unsettled, detail });
        }
        found
    }
}

impl VoteCount<'_> {
    /// Returns true if the votes can still be enough, after `looked` samples of `voters` voters. Without a stop, all samples are drawn.
    pub(super) fn can_be_enough(&self, params: &VoteParams, looked: u32, voters: usize) -> bool {
        let left = params.most().saturating_sub(looked);
        let Lead { leader, runner_up } = self.lead();
        let best = Lead { leader: leader + left, runner_up };
        let is_early = params.stop == VoteStop::Fast && voters >= 2 && looked < 2 && left > 0;
        is_early || params.enough().is_none_or(|share| best.certainty().reaches(share))
    }

    /// Returns the fewest further samples after which the votes can be enough.
    pub(super) fn needed(&self, params: &VoteParams, looked: usize, voters: usize) -> usize {
        let left = (params.most() as usize).saturating_sub(looked);
        let Some(share) = params.enough() else { return left };
        if params.stop == VoteStop::Fast && voters >= 2 && looked < 2 {
            return left.min(2 - looked);
        }
        self.lead().fewest_until(share, left)
    }

    /// Returns the class by which these votes are enough, after `looked` samples of `voters` voters. Class D is not among them.
    pub(super) fn enough(&self, params: &VoteParams, looked: u32, voters: usize) -> Option<StopClass> {
        let share = params.enough()?;
        let leader = self.leader()?;
        let is_shared = leader.sources.len() >= 2;
        // The first samples of the first two voters come first.
        if params.stop == VoteStop::Fast && looked == 2 && voters >= 2 && leader.votes == 2 && is_shared {
            return Some(StopClass::B);
        }
        self.class(share)
    }
}
