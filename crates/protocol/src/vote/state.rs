//! The state of a `vote` run: the samples, and how far they were looked at.

use super::options::LetteredOptions;
use super::params::VoteParams;
use super::prompt;
use super::sample::{Judge, OpenSample, SampleResult};
use super::tally::{CountedSample, StopClass, VoteCount};
use crate::contract::{CallId, Executions, Outcome, Setup, Step};
use crate::core::bare_model;
use crate::text::vacuity::PromptEcho;
use crate::text::{CanonicalKind, Canonicalizer};

/// The state of one `vote` run.
#[derive(Clone, Debug)]
pub struct Voting {
    pub(super) setup: Setup<VoteParams>,
    pub(super) executions: Executions,
    pub(super) canonicalizer: Canonicalizer,
    /// The options of the question, if its prompt has any.
    pub(super) options: Option<LetteredOptions>,
    pub(super) prompt_echo: PromptEcho,
    /// The voters that are asked, by their indexes among the agents.
    pub(super) voters: Vec<usize>,
    /// The samples that were asked for, in their order.
    pub(super) samples: Vec<VoteSample>,
    /// The number of samples that were looked at. They are complete; the further ones may be.
    pub(super) looked: usize,
    /// The grounds on which the votes ended the run; `None` while it goes on, and for a run without a stop.
    pub(super) class: Option<StopClass>,
    pub(super) outcome: Option<Outcome>,
}

/// One sample of a run.
#[derive(Clone, Debug)]
pub(super) enum VoteSample {
    Open(Box<OpenSample>),
    Complete {
        result: SampleResult,
        /// The model that drew it, if it is known.
        model: Option<String>,
    },
}

impl Voting {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub fn new(setup: Setup<VoteParams>) -> Self {
        let user_words = setup.user_words(&setup.params.constraints);
        let own_words = prompt::own_words(&setup);
        let own_words = own_words.each_ref().map(String::as_str);
        let prompt_echo = setup.prompt_echo(&user_words, &own_words);
        let options = if setup.canonical.kind == CanonicalKind::Choice {
            LetteredOptions::find(&setup.task.prompt, &setup.canonical.choices)
        } else {
            None
        };
        Self {
            executions: Executions::new(&setup),
            canonicalizer: Canonicalizer::new(&setup.canonical),
            options,
            prompt_echo,
            voters: setup.params.voters(&setup.agents),
            samples: Vec::new(),
            looked: 0,
            class: None,
            outcome: None,
            setup,
        }
    }

    /// Returns the voter of a sample. It depends on the sample's number alone, and so does its call.
    pub(super) fn voter(&self, sample: usize) -> usize {
        self.voters[sample % self.voters.len()]
    }

    /// Returns the first call of a sample. A voter's samples have the same calls whichever other voters are asked, so that they can be
    /// drawn once for many ways to count them.
    pub(super) fn call(&self, sample: usize) -> CallId {
        let draft = u32::try_from(sample / self.voters.len()).unwrap_or(u32::MAX);
        CallId { part: 0, round: 1, agent: self.voter(sample), draft, step: Step::Sample, attempt: 0 }
    }

    pub(super) fn judge(&self) -> Judge<'_> {
        Judge {
            setup: &self.setup,
            canonicalizer: &self.canonicalizer,
            options: self.options.as_ref(),
            prompt_echo: &self.prompt_echo,
            executions: &self.executions,
        }
    }

    /// Returns the samples that were looked at.
    pub(super) fn counted_samples(&self) -> impl Iterator<Item = CountedSample<'_>> {
        self.samples.iter().take(self.looked).enumerate().filter_map(|(number, sample)| {
            let VoteSample::Complete { result, model } = sample else { return None };
            let voter = self.voter(number);
            let (method, model) = (self.setup.agents[voter].method, model.as_deref().map(bare_model));
            Some(CountedSample { voter, method, model, result })
        })
    }

    /// Counts the samples that were looked at.
    pub(super) fn count(&self) -> VoteCount<'_> {
        VoteCount::new(self.counted_samples())
    }
}
