//! The counting of votes: which answers are equal, how often each was found, and by how many sources.
//!
//! The input is samples in their order. The output is the answers with their votes. What comes after the last sample that was looked at
//! counts for nothing.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sample::SampleResult;
use crate::contract::{Answer, Lead, Method};
use crate::core::BasisPoints;
use crate::text::ShortAnswer;
use crypto::Digest;

/// The grounds on which a vote ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum StopClass {
    /// The leading answer is certain enough, and at least two unlike voters have found it.
    A,
    /// The first samples of the first two voters are equal, and the voters are unlike.
    B,
    /// The leading answer is certain enough, and one voter alone has found it, or voters of one method on one model.
    C,
    /// No answer is certain enough, and none can become so; in a panel that counts, a tie stays.
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

/// The certainty of a lead that is enough, unless a run asks for more.
pub(crate) const CERTAIN: BasisPoints = BasisPoints::of_ten_thousand(9_000);

/// An answer with its votes.
#[derive(Clone, Debug)]
pub(crate) struct VotesFor<'a> {
    pub(crate) answer: &'a Answer,
    pub(crate) votes: u32,
    /// The voters that have found it, each once.
    pub(crate) voters: Vec<usize>,
    /// Samples that have found it, one of each source.
    pub(crate) sources: Vec<CountedSample<'a>>,
}

/// A sample that was looked at.
#[derive(Clone, Debug)]
pub(crate) struct CountedSample<'a> {
    /// Its place among all samples, from 0.
    pub(super) number: usize,
    pub(crate) voter: usize,
    pub(crate) method: Method,
    /// The bare name of the model that drew it, if it is known.
    pub(crate) model: Option<String>,
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

/// Which answers count as one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sameness<'a> {
    /// Those with one canonical form.
    Canonical,
    /// Those with one canonical form, and short texts that are the same answer to this prompt.
    ShortAnswer { prompt: &'a str },
    /// Programs with one fingerprint, by the numbers of their samples. One without a fingerprint counts for nothing. The shortest program
    /// stands for all that are equal to it.
    Behaviour { fingerprints: &'a BTreeMap<usize, Digest> },
}

impl Sameness<'_> {
    /// Returns the words of an answer that is compared by them.
    fn read(self, answer: &Answer) -> Option<ShortAnswer> {
        match self {
            Self::Canonical | Self::Behaviour { .. } => None,
            Self::ShortAnswer { .. } => ShortAnswer::new(&answer.shown),
        }
    }

    /// Returns true if two answers that were read are the same one.
    fn is_same(self, one: Option<&ShortAnswer>, other: Option<&ShortAnswer>) -> bool {
        match (self, one, other) {
            (Self::ShortAnswer { prompt }, Some(one), Some(other)) => one.is_same_as(other, prompt),
            (Self::ShortAnswer { .. } | Self::Canonical | Self::Behaviour { .. }, _, _) => false,
        }
    }

    /// Returns the digest by which the answer of this sample is compared, if it counts.
    fn digest(self, number: usize, answer: &Answer) -> Option<Digest> {
        match self {
            Self::Canonical | Self::ShortAnswer { .. } => Some(answer.canonical.digest),
            Self::Behaviour { fingerprints } => fingerprints.get(&number).copied(),
        }
    }
}

/// The votes of the samples that were looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct VoteCount<'a>(pub(crate) Vec<VotesFor<'a>>);

impl<'a> VoteCount<'a> {
    /// Counts samples. The answer with the most votes comes first; of equal ones, the one that came first.
    ///
    /// `sameness` decides whether a sample counts for an answer that came before it.
    pub(super) fn new(samples: impl Iterator<Item = CountedSample<'a>>, sameness: Sameness<'_>) -> Self {
        let mut counted: Vec<VotesFor<'a>> = Vec::new();
        // The words and the digest of each counted answer, at its place.
        let mut words: Vec<Option<ShortAnswer>> = Vec::new();
        let mut digests: Vec<Digest> = Vec::new();
        for sample in samples {
            let SampleResult::Vote(answer, _) = sample.result else { continue };
            let Some(digest) = sameness.digest(sample.number, answer) else { continue };
            let own = sameness.read(answer);
            let at = digests.iter().zip(&words).position(|(other, words)| {
                *other == digest || sameness.is_same(words.as_ref(), own.as_ref())
            });
            let at = at.unwrap_or_else(|| {
                counted.push(VotesFor { answer, votes: 0, voters: Vec::new(), sources: Vec::new() });
                words.push(own);
                digests.push(digest);
                counted.len() - 1
            });
            let VotesFor { answer: shortest, votes, voters, sources } = &mut counted[at];
            *votes += 1;
            if matches!(sameness, Sameness::Behaviour { .. }) && answer.shown.len() < shortest.shown.len() {
                *shortest = answer;
            }
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
    pub(crate) fn lead(&self) -> Lead {
        let mut votes = self.0.iter().map(|one| one.votes);
        Lead { leader: votes.next().unwrap_or(0), runner_up: votes.next().unwrap_or(0) }
    }

    /// Returns the class of the lead, if it is at least this certain: A for an answer of several sources, C for one of a single source.
    pub(crate) fn class(&self, share: BasisPoints) -> Option<StopClass> {
        let leader = self.leader()?;
        if !self.lead().certainty().reaches(share) {
            return None;
        }
        Some(if leader.sources.len() >= 2 { StopClass::A } else { StopClass::C })
    }

    /// Returns the answer with more votes than any other.
    pub(crate) fn leader(&self) -> Option<&VotesFor<'a>> {
        let Lead { leader, runner_up } = self.lead();
        if leader > runner_up { self.0.first() } else { None }
    }
}
