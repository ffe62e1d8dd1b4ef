//! The counting of votes, and the rule by which they are enough.
//!
//! The input is samples in their order. The output is the answers with their votes, and whether they end the run. What comes after the
//! last sample that was looked at counts for nothing.

use serde::Serialize;

use super::params::VoteParams;
use super::sample::Drawn;
use crate::contract::{Answer, Lead, Method, StopRule};

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
    /// The sources that have found it, each once.
    pub(super) sources: Vec<VoteSource>,
}

/// The source of a sample. Two voters of one method on one model are one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum VoteSource {
    /// A method on a model, by the bare name of the model.
    Model { method: Method, name: String },
    /// A voter whose model is not known.
    Voter(usize),
}

/// A sample that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Looked<'a> {
    pub(super) voter: usize,
    pub(super) source: VoteSource,
    pub(super) drawn: &'a Drawn,
}

/// The votes of the samples that were looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct VoteCount<'a>(pub(super) Vec<VotesFor<'a>>);

impl<'a> VoteCount<'a> {
    /// Counts samples. The answer with the most votes comes first; of equal ones, the one that came first.
    pub(super) fn new(looked: impl Iterator<Item = Looked<'a>>) -> Self {
        let mut counted: Vec<VotesFor<'a>> = Vec::new();
        for Looked { voter, source, drawn } in looked {
            let Drawn::Vote(answer, _) = drawn else { continue };
            let digest = answer.canonical.digest;
            let at = counted.iter().position(|one| one.answer.canonical.digest == digest);
            let at = at.unwrap_or_else(|| {
                counted.push(VotesFor { answer, votes: 0, voters: Vec::new(), sources: Vec::new() });
                counted.len() - 1
            });
            counted[at].votes += 1;
            if !counted[at].voters.contains(&voter) {
                counted[at].voters.push(voter);
            }
            if !counted[at].sources.contains(&source) {
                counted[at].sources.push(source);
            }
        }
        // The sort is stable.
        counted.sort_by_key(|one| std::cmp::Reverse(one.votes));
        Self(counted)
    }

    /// Returns the lead of the first answer over the second.
    pub(super) fn lead(&self) -> Lead {
        let votes = |place: usize| self.0.get(place).map_or(0, |one| one.votes);
        Lead { leader: votes(0), runner_up: votes(1) }
    }

    /// Returns the answer with more votes than any other.
    pub(super) fn leader(&self) -> Option<&VotesFor<'a>> {
        let Lead { leader, runner_up } = self.lead();
        self.0.first().filter(|_| leader > runner_up)
    }

    /// Returns true if the votes can still be enough, after `looked` samples of `voters` voters. Without a stop, all samples are drawn.
    pub(super) fn can_be_enough(&self, params: &VoteParams, looked: u32, voters: usize) -> bool {
        let left = params.most().saturating_sub(looked);
        let Lead { leader, runner_up } = self.lead();
        let best = Lead { leader: leader + left, runner_up };
        let is_early = params.stop == StopRule::Fast && voters >= 2 && looked < 2 && left > 0;
        is_early || params.enough().is_none_or(|share| best.certainty().reaches(share))
    }

    /// Returns the fewest further samples after which the votes can be enough.
    pub(super) fn needed(&self, params: &VoteParams, looked: usize, voters: usize) -> usize {
        let left = (params.most() as usize).saturating_sub(looked);
        let Some(share) = params.enough() else { return left };
        if params.stop == StopRule::Fast && voters >= 2 && looked < 2 {
            return left.min(2 - looked);
        }
        let Lead { leader, runner_up } = self.lead();
        let is_enough = |further: &usize| {
            let further = u32::try_from(*further).unwrap_or(u32::MAX);
            Lead { leader: leader + further, runner_up }.certainty().reaches(share)
        };
        (1..left).find(is_enough).unwrap_or(left)
    }

    /// Returns the class by which these votes are enough, after `looked` samples of `voters` voters. Class D is not among them.
    pub(super) fn enough(&self, params: &VoteParams, looked: u32, voters: usize) -> Option<StopClass> {
        let share = params.enough()?;
        let leader = self.leader()?;
        let is_shared = leader.sources.len() >= 2;
        // The first samples of the first two voters come first.
        if params.stop == StopRule::Fast && looked == 2 && voters >= 2 && leader.votes == 2 && is_shared {
            return Some(StopClass::B);
        }
        let is_certain = self.lead().certainty().reaches(share);
        is_certain.then_some(if is_shared { StopClass::A } else { StopClass::C })
    }
}
