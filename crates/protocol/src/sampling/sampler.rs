//! The samples of a run: who draws each, and how far they were looked at.
//!
//! The input is the setup, the number of samples that may be asked for, replies and losses. The output is requests and the count. Samples
//! are looked at in their order, so neither the order of replies nor the number that is asked for ahead changes the count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::options::LetteredOptions;
use super::prompt::{self, AnswerExtent, SampleForm};
use super::sample::{OpenSample, SampleCheck, SampleResult};
use super::tally::{CountedSample, Sameness, VoteCount};
use super::trials::{INPUT_TOKENS_MAX, Trials};
use crate::contract::{
    Action, Answer, Ask, CallId, Executions, Method, ProtocolParams, Reply, Setup, Step, Thinking,
    Unexpected, WorstCase, tokens,
};
use crate::core::bare_model;
use crate::text::vacuity::PromptEcho;
use crate::text::{CanonicalKind, Canonicalizer};

/// The tokens of the controller's own words in one sample: an upper bound of the texts in `prompt`.
const SAMPLE_WORDS: u64 = 300;

/// The samples of one run.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    pub(crate) executions: Executions,
    canonicalizer: Canonicalizer,
    /// The options of the question, if its prompt has any.
    pub(super) options: Option<LetteredOptions>,
    prompt_echo: PromptEcho,
    form: SampleForm,
    /// The voters that are asked, by their indexes among the agents.
    pub(crate) voters: Vec<usize>,
    /// The samples that were asked for, in their order.
    pub(super) samples: Vec<VoteSample>,
    /// The number of samples that were looked at. They are complete; the further ones may be.
    pub(crate) looked: usize,
    /// The trials of programs that are compared by what they do, if the answers are such programs.
    pub(super) trials: Option<Trials>,
    /// The number of replies of each voter that went back to it.
    pub(super) sent_back: BTreeMap<usize, u32>,
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

impl VoteSample {
    /// Returns a sample whose voter was lost, by this failure or an earlier one.
    fn lost(cause: Option<String>) -> Self {
        Self::Complete { result: SampleResult::Lost(cause), model: None }
    }

    fn is_lost(&self) -> bool {
        matches!(self, Self::Complete { result: SampleResult::Lost(_), .. })
    }
}

impl Sampler {
    /// Creates the samples of a run that has not started. Each of `voters` is an index of an agent.
    pub(crate) fn new<P: ProtocolParams>(setup: &Setup<P>, voters: Vec<usize>, form: SampleForm) -> Self {
        let user_words = setup.user_words(setup.params.constraints());
        let own_words = prompt::own_words(setup);
        let own_words = own_words.each_ref().map(String::as_str);
        let options = if setup.canonical.kind == CanonicalKind::Choice {
            LetteredOptions::find(&setup.task.prompt, &setup.canonical.choices)
        } else {
            None
        };
        Self {
            executions: Executions::new(setup),
            canonicalizer: Canonicalizer::new(&setup.canonical),
            options,
            prompt_echo: setup.prompt_echo(&user_words, &own_words),
            form,
            trials: Trials::new(setup, &voters),
            voters,
            samples: Vec::new(),
            looked: 0,
            sent_back: BTreeMap::new(),
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

    fn check<'a, P>(&'a self, setup: &'a Setup<P>) -> SampleCheck<'a, P> {
        SampleCheck {
            setup,
            canonicalizer: &self.canonicalizer,
            options: self.options.as_ref(),
            prompt_echo: &self.prompt_echo,
            executions: &self.executions,
            form: self.form,
            function: self.trials.as_ref().map(|trials| trials.function.as_str()),
        }
    }

    /// Asks for samples until this number has been asked for. Those of a voter that was lost in a sample that was looked at are no votes at
    /// once, and are not asked for.
    pub(crate) fn ask_up_to<P: ProtocolParams>(&mut self, setup: &Setup<P>, count: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.samples.is_empty()
            && let Some(trials) = &self.trials
        {
            actions.extend(trials.ask(setup, self.form).map(Action::Ask));
        }
        let lost = self.lost_voters(self.looked);
        while self.samples.len() < count {
            if lost.contains(&self.voter(self.samples.len())) {
                self.samples.push(VoteSample::lost(None));
                continue;
            }
            let open = OpenSample::start(&self.check(setup), self.call(self.samples.len()));
            actions.push(Action::Ask(open.ask(setup)));
            self.samples.push(VoteSample::Open(Box::new(open)));
        }
        actions
    }

    /// Takes the reply to a call. Returns the next request of its sample, or `None` once the sample is complete.
    pub(crate) fn take<P: ProtocolParams>(
        &mut self,
        setup: &Setup<P>,
        call: CallId,
        reply: &Reply,
    ) -> Result<Option<Ask>, Unexpected> {
        if let Some(trials) = &mut self.trials
            && trials.awaits == Some(call)
        {
            trials.take_inputs(&reply.text);
            return Ok(None);
        }
        for number in 0..self.samples.len() {
            let VoteSample::Open(open) = &self.samples[number] else { continue };
            if open.call() != call {
                continue;
            }
            let mut open = open.clone();
            let (sample, ask) = match open.reply(&self.check(setup), reply) {
                ControlFlow::Continue(ask) => (VoteSample::Open(open), Some(ask)),
                ControlFlow::Break(result) => {
                    (VoteSample::Complete { result, model: reply.model.clone() }, None)
                }
            };
            if ask.as_ref().is_some_and(|ask| ask.refused.is_some()) {
                *self.sent_back.entry(call.agent).or_default() += 1;
            }
            self.samples[number] = sample;
            return Ok(ask);
        }
        Err(Unexpected::NotAsked(call))
    }

    /// Takes the loss of a call. Its sample is complete, and no vote.
    pub(crate) fn lose<P: ProtocolParams>(
        &mut self,
        setup: &Setup<P>,
        call: CallId,
        cause: &str,
    ) -> Result<(), Unexpected> {
        let waits = |sample: &VoteSample| matches!(sample, VoteSample::Open(open) if open.call() == call);
        let number = self.samples.iter().position(waits);
        let writes_inputs = self.trials.as_ref().is_some_and(|trials| trials.awaits == Some(call));
        if number.is_none() && !writes_inputs {
            return Err(Unexpected::NotAsked(call));
        }
        let mut lost = self.lost_voters(self.samples.len());
        lost.insert(call.agent);
        if !setup.bears_loss_of(&lost) {
            return Err(Unexpected::NotAsked(call));
        }
        if let Some(number) = number {
            self.samples[number] = VoteSample::lost(Some(cause.to_owned()));
        } else if let Some(trials) = &mut self.trials {
            // The inputs of the task are left.
            trials.take_inputs("");
        }
        Ok(())
    }

    /// Returns the voters whose servers failed in the first `count` samples.
    fn lost_voters(&self, count: usize) -> BTreeSet<usize> {
        (0..count).filter(|number| self.samples[*number].is_lost()).map(|number| self.voter(number)).collect()
    }

    /// Gives up the later samples of a voter if the sample that was looked at last is lost. They are no votes, also where a reply has come,
    /// so that neither the order of replies nor the number that was asked for ahead changes the count.
    pub(crate) fn give_up_lost_voter(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(last) = self.looked.checked_sub(1) else { return actions };
        if !self.samples[last].is_lost() {
            return actions;
        }
        for number in self.looked..self.samples.len() {
            if self.voter(number) != self.voter(last) {
                continue;
            }
            if let VoteSample::Open(open) = &self.samples[number] {
                actions.push(Action::Cancel(open.call()));
            }
            self.samples[number] = VoteSample::lost(None);
        }
        actions
    }

    /// Looks at the next sample. Returns false if it is not complete, or cannot be tried yet.
    pub(crate) fn look_at_next(&mut self) -> bool {
        let number = self.looked;
        let Some(VoteSample::Complete { result, .. }) = self.samples.get_mut(number) else { return false };
        if let Some(trials) = &mut self.trials {
            if trials.awaits.is_some() {
                return false;
            }
            if let SampleResult::Vote(answer, _) = result
                && let Some(fault) = trials.try_program(number, &answer.shown, &self.executions)
            {
                *result = SampleResult::NoVote(fault);
            }
        }
        self.looked += 1;
        true
    }

    /// Returns true once a sample has been asked for.
    pub(crate) fn has_started(&self) -> bool {
        !self.samples.is_empty()
    }

    /// Cancels the calls of samples that are not complete.
    pub(crate) fn cancel_open(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        actions.extend(self.trials.as_ref().and_then(|trials| trials.awaits).map(Action::Cancel));
        for sample in &self.samples {
            if let VoteSample::Open(open) = sample {
                actions.push(Action::Cancel(open.call()));
            }
        }
        actions
    }

    /// Returns the samples that were looked at.
    pub(super) fn counted_samples<'a, P>(
        &'a self,
        setup: &'a Setup<P>,
    ) -> impl Iterator<Item = CountedSample<'a>> {
        self.samples.iter().take(self.looked).enumerate().filter_map(|(number, sample)| {
            let VoteSample::Complete { result, model } = sample else { return None };
            let voter = self.voter(number);
            let (method, model) = (setup.agents[voter].method, model.as_deref().map(bare_model));
            Some(CountedSample { number, voter, method, model, result })
        })
    }

    /// Returns the answers of the samples that were looked at, in their order.
    pub(crate) fn answers<'a, P>(&'a self, setup: &'a Setup<P>) -> impl Iterator<Item = &'a Answer> {
        self.counted_samples(setup).filter_map(|sample| match sample.result {
            SampleResult::Vote(answer, _) => Some(answer),
            SampleResult::NoVote(_) | SampleResult::Lost(_) => None,
        })
    }

    /// Returns true if the answers are programs that are tried.
    pub(crate) fn tries_programs(&self) -> bool {
        self.trials.is_some()
    }

    /// Returns true if programs were tried, and are counted by what they did.
    pub(crate) fn counts_behaviour(&self) -> bool {
        self.trials.as_ref().is_some_and(|trials| trials.fingerprints().is_some())
    }

    /// Counts the samples that were looked at. Where a whole reply in prose is the answer, a short one counts for another that says the same.
    pub(crate) fn count<'a, P>(&'a self, setup: &'a Setup<P>) -> VoteCount<'a> {
        let is_prose = self.form.answer == AnswerExtent::Whole && setup.canonical.kind == CanonicalKind::Text;
        let sameness = if let Some(fingerprints) = self.trials.as_ref().and_then(Trials::fingerprints) {
            Sameness::Behaviour { fingerprints }
        } else if is_prose {
            Sameness::ShortAnswer { prompt: &setup.task.prompt }
        } else {
            Sameness::Canonical
        };
        VoteCount::new(self.counted_samples(setup), sameness)
    }
}

/// Returns the most that so many samples of these voters cost, if every reply is as long as allowed and each answer in a line is asked for
/// in a form as well.
pub(crate) fn worst_case<P: ProtocolParams>(
    setup: &Setup<P>,
    voters: &[usize],
    form: SampleForm,
    samples: usize,
) -> WorstCase {
    let task = tokens(&prompt::words(setup, &setup.task.prompt).situation);
    let mut total = WorstCase::default();
    if voters.is_empty() {
        return total;
    }
    for sample in 0..samples {
        let voter = voters[sample % voters.len()];
        let agent = &setup.agents[voter];
        // A program or a whole reply is the answer itself, and no form follows it.
        let thinking = if agent.method == Method::Program || form.answer == AnswerExtent::Whole {
            Thinking::None
        } else {
            Thinking::Free
        };
        let mut conversation = tokens(&form.introduction.system(setup, voter)) + task + SAMPLE_WORDS;
        // A whole reply that breaks a rule goes back once.
        let is_sent_back = form.answer == AnswerExtent::Whole && !setup.params.constraints().is_empty();
        total.add_form(&mut conversation, thinking, u32::from(is_sent_back), u64::from(agent.max_tokens));
    }
    if setup.canonical.kind == CanonicalKind::Behaviour {
        let agent = &setup.agents[voters[0]];
        let mut conversation = tokens(&form.introduction.system(setup, voters[0])) + task + SAMPLE_WORDS;
        let reply = agent.max_tokens.min(INPUT_TOKENS_MAX);
        total.add_form(&mut conversation, Thinking::None, 0, u64::from(reply));
    }
    total
}
