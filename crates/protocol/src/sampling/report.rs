//! The report on samples and votes, at any moment.
//!
//! The input is the samples and the setup. The output is plain data. Nothing here counts: the figures come from the tally.

use serde::Serialize;

use super::compared::ComparedTexts;
use super::mentions::FoundBy;
use super::sample::SampleResult;
use super::sampler::{Sampler, VoteSample};
use super::tally::{StopClass, VoteCount, VotesFor};
use super::trials::{BehaviourSection, Trials};
use crate::contract::{
    AgentReport, BlindVote, CallId, Degraded, Dissent, Fraction, Lead, Method, Outcome, Report, Setup,
};
use crypto::Digest;

/// The part of a report about counted samples. `vote` has it, and so does a panel that counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VoteSection {
    /// The grounds on which the votes ended the run; `None` before its end, without a stop, and for a lead that is less than certain.
    pub class: Option<StopClass>,
    /// The votes for the first answer and for the second.
    pub lead: Lead,
    /// The probability that the first answer is the more frequent one, as an exact fraction.
    pub certainty: Fraction,
    /// The same as a number.
    pub certainty_value: f64,
    /// Every answer with its votes, the most votes first.
    pub answers: Vec<VotedAnswer>,
    /// What the comparison of long texts has found; `None` for answers that were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<ComparedTexts>,
    /// The inputs on which programs were tried; `None` for other answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<BehaviourSection>,
    /// Every sample that was asked for, in the order in which they are looked at. Those after the loss of their
    /// voter have their places among them.
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
    /// The fingerprint of what its program does, if it can be compared. Equal ones are equal answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<Digest>,
    /// What its program did with each input in turn; empty unless it was tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<String>,
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

impl Sampler {
    /// Makes the report of a run: its samples, with the losses and the section that its protocol adds.
    pub(crate) fn report<P, S>(
        &self,
        setup: &Setup<P>,
        outcome: Option<&Outcome>,
        degraded: Vec<Degraded>,
        section: S,
    ) -> Report<S> {
        let agreed = match outcome {
            Some(Outcome::Agreed { sha256, .. }) => Some(*sha256),
            Some(_) | None => None,
        };
        Report {
            rounds: u32::from(self.has_started()),
            blind_vote: self.blind_vote(setup),
            agents: (0..setup.agents.len()).map(|voter| self.agent_report(setup, voter)).collect(),
            dissent: self.dissent(setup, agreed),
            degraded,
            section,
        }
    }

    /// Returns the section of a run that may draw `most` samples, and that the votes have ended on these grounds.
    pub(crate) fn section<P>(&self, setup: &Setup<P>, class: Option<StopClass>, most: u32) -> VoteSection {
        let count = self.count(setup);
        let lead = count.lead();
        let certainty = lead.certainty();
        let asked = u32::try_from(self.samples.len()).unwrap_or(u32::MAX);
        VoteSection {
            class,
            lead,
            certainty,
            certainty_value: (certainty.value() * 1e6).round() / 1e6,
            answers: voted_answers(setup, &count),
            texts: None,
            behaviour: self.trials.as_ref().map(Trials::section),
            samples: self.sample_reports(setup),
            looked_at: u32::try_from(self.looked).unwrap_or(u32::MAX),
            saved: most.saturating_sub(asked),
            tokens: 0,
            tokens_of_all: 0,
        }
    }

    /// Returns the vote over the samples that were looked at.
    fn blind_vote<P>(&self, setup: &Setup<P>) -> BlindVote {
        if self.counts_behaviour() {
            let count = self.count(setup);
            let votes = count.0.iter().flat_map(|one| (0..one.votes).map(|_| Some(one.answer)));
            let counted: u32 = count.0.iter().map(|one| one.votes).sum();
            return BlindVote::from_drafts(votes.chain((counted as usize..self.looked).map(|_| None)));
        }
        BlindVote::from_drafts(self.counted_samples(setup).filter_map(|sample| match sample.result {
            SampleResult::Vote(answer, _) => Some(Some(answer)),
            SampleResult::NoVote(_) | SampleResult::Lost(Some(_)) => Some(None),
            // After the loss of a voter, it is asked for nothing that could be missing.
            SampleResult::Lost(None) => None,
        }))
    }

    /// Returns every sample that was asked for.
    fn sample_reports<P>(&self, setup: &Setup<P>) -> Vec<SampleReport> {
        (0..self.samples.len()).map(|number| self.sample_report(setup, number)).collect()
    }

    fn sample_report<P>(&self, setup: &Setup<P>, number: usize) -> SampleReport {
        let voter = &setup.agents[self.voter(number)];
        let (result, model) = match &self.samples[number] {
            VoteSample::Complete { result, model } => (Some(result), model.clone()),
            VoteSample::Open(_) => (None, None),
        };
        let trials = self.trials.as_ref();
        let why_not_compared = trials.and_then(|trials| trials.why_not_compared(number));
        let (answer, found_by) = match result {
            Some(SampleResult::Vote(answer, found_by)) if why_not_compared.is_none() => {
                (Some(answer), Some(*found_by))
            }
            Some(_) | None => (None, None),
        };
        SampleReport {
            voter: voter.name.clone(),
            method: voter.method,
            model: model.unwrap_or_default(),
            tokens: 0,
            counts: number < self.looked,
            text: answer.map(|answer| answer.shown.clone()),
            sha256: answer.map(|answer| answer.canonical.digest),
            behaviour: trials.and_then(Trials::fingerprints).and_then(|of_all| of_all.get(&number).copied()),
            results: trials.map(|trials| trials.shown_results(number)).unwrap_or_default(),
            found_by,
            no_vote: result.and_then(SampleResult::no_vote).or(why_not_compared),
            order: self.order(setup, number),
            call: self.call(number),
        }
    }

    /// Returns the order in which a sample in words saw the options.
    fn order<P>(&self, setup: &Setup<P>, number: usize) -> Option<Vec<String>> {
        let options = self.options.as_ref()?;
        if setup.agents[self.voter(number)].method != Method::Words {
            return None;
        }
        Some(options.choices_in_order(&options.draw(setup.seed, self.call(number))))
    }

    /// Returns the report on one voter: the last answer that it has found.
    fn agent_report<P>(&self, setup: &Setup<P>, voter: usize) -> AgentReport {
        let (mut last, mut failed_turns) = (None, 0);
        for sample in self.counted_samples(setup).filter(|sample| sample.voter == voter) {
            match sample.result {
                SampleResult::Vote(answer, _) => last = Some(answer),
                SampleResult::NoVote(_) => failed_turns += 1,
                // The failure of a server is no turn of its agent.
                SampleResult::Lost(_) => {}
            }
        }
        AgentReport {
            name: setup.agents[voter].name.clone(),
            status: None,
            text: last.map(|answer| answer.shown.clone()),
            sha256: last.map(|answer| answer.canonical.digest),
            changes: 0,
            repairs: self.sent_back.get(&voter).copied().unwrap_or_default(),
            failed_turns,
        }
    }

    /// Returns every answer but the agreed one, the one with the most votes first.
    fn dissent<P>(&self, setup: &Setup<P>, agreed: Option<Digest>) -> Vec<Dissent> {
        let count = self.count(setup);
        let votes_of_all: u32 = count.0.iter().map(|one| one.votes).sum();
        let mut dissent = Vec::new();
        for VotesFor { answer, votes, voters, .. } in &count.0 {
            if Some(answer.canonical.digest) == agreed {
                continue;
            }
            let names: Vec<&str> = voters.iter().map(|voter| setup.agents[*voter].name.as_str()).collect();
            dissent.push(Dissent {
                agent: names.join("+"),
                stage: "blind",
                text: answer.shown.clone(),
                sha256: answer.canonical.digest,
                why: format!("it has {votes} of {votes_of_all} votes"),
            });
        }
        dissent
    }
}

/// Returns every answer with its votes, the most votes first.
fn voted_answers<P>(setup: &Setup<P>, count: &VoteCount<'_>) -> Vec<VotedAnswer> {
    let mut answers = Vec::new();
    for VotesFor { answer, votes, voters, .. } in &count.0 {
        answers.push(VotedAnswer {
            text: answer.shown.clone(),
            sha256: answer.canonical.digest,
            votes: *votes,
            voters: voters.iter().map(|voter| setup.agents[*voter].name.clone()).collect(),
        });
    }
    answers
}
