//! The counting of votes, and the rule by which they are enough. The verdict of a run is in [`machine`](super::machine).
//!
//! The input is samples in their order. The output is the answers with their votes, and whether they end the run. What comes after the
//! last sample that was looked at counts for nothing.

use serde::Serialize;

use super::params::VoteParams;
use super::sample::SampleResult;
use crate::contract::{Answer, Lead, Method, VoteStop};

/// The grounds on which a vote ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum StopClass {
    /// The leading answer is certain enough, and at least two unlike voters have found it.
    A,
    /// The first samples of the first two voters are equal, and the voters are unlike.
    B,
    /// The leading answer is certain enough, and one voter alone has found it, or voters of one method on one model.
    C,
    /// No answer is certain enough, and none can become so.
    D,
}

impl StopClass {
    /// Returns the letter of the class.
    pub fn letter(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        }
    }
}

/// An answer with its votes.
#[derive(Clone, Debug)]
pub(super) struct VotesFor<'a> {
    pub(super) answer: &'a Answer,
    pub(super) votes: u32,
    /// The voters that have found it, each once.
    pub(super) voters: Vec<usize>,
    /// Samples that have found it, one of each source.
    pub(super) sources: Vec<CountedSample<'a>>,
}

/// A sample that was looked at.
#[derive(Clone, Debug)]
pub(super) struct CountedSample<'a> {
    pub(super) voter: usize,
    pub(super) method: Method,
    /// The bare name of the model that drew it, if it is known.
    pub(super) model: Option<String>,
    pub(super) result: &'a SampleResult,
}

impl CountedSample<'_> {
    /// Returns true if two samples have one source. Two voters of one method on one model are one source.
    fn shares_source_with(&self, other: &Self) -> bool {
        match (&self.model, &other.model) {
            (Some(own), Some(others)) => self.method == other.method && own == others,
            (None, None) => self.voter == other.voter,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// The votes of the samples that were looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct VoteCount<'a>(pub(super) Vec<VotesFor<'a>>);

impl<'a> VoteCount<'a> {
    /// Counts samples. The answer with the most votes comes first; of equal ones, the one that came first.
    pub(super) fn new(samples: impl Iterator<Item = CountedSample<'a>>) -> Self {
        let mut counted: Vec<VotesFor<'a>> = Vec::new();
        for sample in samples {
            let SampleResult::Vote(answer, _) = sample.result else { continue };
            let digest = answer.canonical.digest;
            let at = counted.iter().position(|one| one.answer.canonical.digest == digest);
            let at = at.unwrap_or_else(|| {
                counted.push(VotesFor { answer, votes: 0, voters: Vec::new(), sources: Vec::new() });
                counted.len() - 1
            });
            let VotesFor { votes, voters, sources, .. } = &mut counted[at];
            *votes += 1;
            if !voters.contains(&sample.voter) {
                voters.push(sample.voter);
            }
            if !sources.iter().any(|other| sample.shares_source_with(other)) {
                sources.push(sample);
            }
        }
        // The sort is stable.
        counted.sort_by_key(|one| std::cmp::Reverse(one.votes));
        Self(counted)
    }

    /// Returns the lead of the first answer over the second.
    pub(super) fn lead(&self) -> Lead {
        let mut votes = self.0.iter().map(|one| one.votes);
        Lead { leader: votes.next().unwrap_or(0), runner_up: votes.next().unwrap_or(0) }
    }

    /// Returns the answer with more votes than any other.
    pub(super) fn leader(&self) -> Option<&VotesFor<'a>> {
        let Lead { leader, runner_up } = self.lead();
        if leader > runner_up { self.0.first() } else { None }
    }

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
        if !self.lead().certainty().reaches(share) {
            return None;
        }
        Some(if is_shared { StopClass::A } else { StopClass::C })
    }
}
