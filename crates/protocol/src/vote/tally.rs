//! The rule by which votes are enough. The verdict of a run is in [`machine`](super::machine).
//!
//! The input is counted samples and the parameters. The output is whether they end the run, and on which grounds.

use super::params::VoteParams;
use crate::contract::{Lead, VoteStop};
use crate::sampling::{StopClass, VoteCount};

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
        let Lead { leader, runner_up } = self.lead();
        for further in 1..left {
            let leader = leader + u32::try_from(further).unwrap_or(u32::MAX);
            if (Lead { leader, runner_up }).certainty().reaches(share) {
                return further;
            }
        }
        left
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
