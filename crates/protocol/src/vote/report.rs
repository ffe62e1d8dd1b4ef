//! The report of a run, at any moment: every sample, the votes, and how certain the leading answer is.

use serde::Serialize;

use super::mentions::FoundBy;
use super::sample::SampleResult;
use super::state::{VoteSample, Voting};
use super::tally::{StopClass, VotesFor};
use crate::contract::{
    AgentReport, BlindVote, CallId, Degraded, DegradedKind, Dissent, Fraction, Lead, Method, Outcome, Report,
};
use crypto::Digest;

/// The part of a report that only `vote` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VoteSection {
    /// The grounds on which the votes ended the run; `None` while it goes on, and for a run without a stop.
    pub class: Option<StopClass>,
    /// The votes for the first answer and for the second.
    pub lead: Lead,
    /// The probability that the first answer is the more frequent one, as an exact fraction.
    pub certainty: Fraction,
    /// The same as a number.
    pub certainty_value: f64,
    /// Every answer with its votes, the most votes first.
    pub answers: Vec<VotedAnswer>,
    /// Every sample that was asked for, in the order in which they are looked at.
    pub samples: Vec<SampleReport>,
    /// The number of samples that count.
    pub looked_at: u32,
    /// The number of samples that the limit allows and that were not asked for.
    pub saved: u32,
    /// The tokens of the replies of all samples. The caller fills them in, because it knows the usage.
    pub tokens: u64,
    /// The tokens that a plain majority of all samples of the limit would take, at the mean of those that count. The caller fills
    /// them in as well.
    pub tokens_of_all: u64,
}

/// An answer with its votes.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct VotedAnswer {
    /// The answer, in the layout of the first sample that found it.
    pub text: String,
    /// The digest of its canonical form.
    pub sha256: Digest,
    /// The number of votes.
    pub votes: u32,
    /// The names of the voters that have found it.
    pub voters: Vec<String>,
}

/// One sample.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct SampleReport {
    /// The name of its voter.
    pub voter: String,
    /// The method of its voter.
    pub method: Method,
    /// The model that drew it. Where no model has answered yet, the caller fills in the one that is called.
    pub model: String,
    /// The tokens of its replies. The caller fills them in, because it knows the usage.
    pub tokens: u64,
    /// Whether it counts: it was looked at before the run ended.
    pub counts: bool,
    /// The answer; `None` for a sample that is no vote, or is not complete.
    pub text: Option<String>,
    /// The digest of the answer's canonical form.
    pub sha256: Option<Digest>,
    /// The rule that found the answer.
    pub found_by: Option<FoundBy>,
    /// The reason why it is no vote; `None` for a vote, and while it is not complete.
    pub no_vote: Option<String>,
    /// The choice of the task that the voter saw at each letter in turn; `None` if the options were not lettered.
    pub order: Option<Vec<String>>,
    /// The first call of the sample; not shown.
    #[serde(skip)]
    pub call: CallId,
}

impl Voting {
    /// Makes the report; see [`crate::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<VoteSection> {
        Report {
            rounds: u32::from(!self.samples.is_empty()),
            blind_vote: self.blind_vote(),
            agents: (0..self.setup.agents.len()).map(|voter| self.agent(voter)).collect(),
            dissent: self.dissent(),
            degraded: self.degraded(),
            section: self.section(),
        }
    }

    fn name(&self, voter: usize) -> String {
        self.setup.agents[voter].name.clone()
    }

    fn blind_vote(&self) -> BlindVote {
        BlindVote::from_drafts(self.counted_samples().map(|sample| match sample.result {
            SampleResult::Vote(answer, _) => Some(answer),
            SampleResult::NoVote(_) => None,
        }))
    }

    fn section(&self) -> VoteSection {
        let count = self.count();
        let (lead, asked) = (count.lead(), u32::try_from(self.samples.len()).unwrap_or(u32::MAX));
        let certainty = lead.certainty();
        let samples = self.samples.iter().enumerate();
        VoteSection {
            class: self.class,
            lead,
            certainty,
            certainty_value: (certainty.value() * 1e6).round() / 1e6,
            answers: count.0.iter().map(|counted| self.voted_answer(counted)).collect(),
            samples: samples.map(|(number, sample)| self.sample(number, sample)).collect(),
            looked_at: u32::try_from(self.looked).unwrap_or(u32::MAX),
            saved: self.setup.params.most().saturating_sub(asked),
            tokens: 0,
            tokens_of_all: 0,
        }
    }

    fn voted_answer(&self, counted: &VotesFor<'_>) -> VotedAnswer {
        let VotesFor { answer, votes, voters, .. } = counted;
        VotedAnswer {
            text: answer.shown.clone(),
            sha256: answer.canonical.digest,
            votes: *votes,
            voters: voters.iter().map(|voter| self.name(*voter)).collect(),
        }
    }

    fn sample(&self, number: usize, sample: &VoteSample) -> SampleReport {
        let voter = self.voter(number);
        let (result, model) = match sample {
            VoteSample::Complete { result, model } => (Some(result), model.clone()),
            VoteSample::Open(_) => (None, None),
        };
        let (answer, found_by, no_vote) = match result {
            Some(SampleResult::Vote(answer, found_by)) => (Some(answer), Some(*found_by), None),
            Some(SampleResult::NoVote(why)) => (None, None, Some(why.clone())),
            None => (None, None, None),
        };
        SampleReport {
            voter: self.name(voter),
            method: self.setup.agents[voter].method,
            model: model.unwrap_or_default(),
            tokens: 0,
            counts: number < self.looked,
            text: answer.map(|answer| answer.shown.clone()),
            sha256: answer.map(|answer| answer.canonical.digest),
            found_by,
            no_vote,
            order: self.order(number),
            call: self.call(number),
        }
    }

    /// Returns the order in which a sample in words saw the options.
    fn order(&self, number: usize) -> Option<Vec<String>> {
        let options = self.options.as_ref()?;
        if self.setup.agents[self.voter(number)].method != Method::Words {
            return None;
        }
        Some(options.choices_in_order(&options.draw(self.setup.seed, self.call(number))))
    }

    /// Returns the report on one voter: the last answer that it has found.
    fn agent(&self, voter: usize) -> AgentReport {
        let (mut last, mut failed_turns) = (None, 0);
        for sample in self.counted_samples().filter(|sample| sample.voter == voter) {
            match sample.result {
                SampleResult::Vote(answer, _) => last = Some(answer),
                SampleResult::NoVote(_) => failed_turns += 1,
            }
        }
        AgentReport {
            name: self.name(voter),
            status: None,
            text: last.map(|answer| answer.shown.clone()),
            sha256: last.map(|answer| answer.canonical.digest),
            changes: 0,
            repairs: 0,
            failed_turns,
        }
    }

    /// Returns every answer but the agreed one, the one with the most votes first.
    fn dissent(&self) -> Vec<Dissent> {
        let agreed = match &self.outcome {
            Some(Outcome::Agreed { sha256, .. }) => Some(*sha256),
            Some(_) | None => None,
        };
        let count = self.count();
        let others = count.0.iter().filter(|counted| Some(counted.answer.canonical.digest) != agreed);
        let dissent = others.map(|VotesFor { answer, votes, voters, .. }| Dissent {
            agent: voters.iter().map(|voter| self.name(*voter)).collect::<Vec<_>>().join("+"),
            stage: "blind",
            text: answer.shown.clone(),
            sha256: answer.canonical.digest,
            why: format!("it has {votes} of {} votes", count.0.iter().map(|one| one.votes).sum::<u32>()),
        });
        dissent.collect()
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
