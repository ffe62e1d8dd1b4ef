//! Counted answers: the number of blind samples that are drawn, and their decision.
//!
//! ```text
//!  first answers   as many as the rule says
//!     │  ├─ all are equal ─────────────────► independent
//!     │  ├─ one is certain enough ─────────► voted, class A or C
//!     ▼
//!  further answers, up to the most that the rule allows
//!     │  ├─ one is certain enough ─────────► voted, class A or C
//!     │  ├─ the last one, and one leads ───► voted
//!     │  └─ none has an answer ────────────► no agreement
//!     ▼
//!  a tie           further samples one after another, until one answer leads, at most three
//!     ├─ one leads ───────────────────────► voted
//!     └─ still a tie ─────────────────────► no agreement, class D; or, where any answer will do, the one that came first of those
//!                                           with the most votes
//! ```
//!
//! A long text is not found twice in the same words, so long texts are compared and not counted. Of a few drafts, the one that is nearest to
//! all others is the answer. Code must find nothing that two of them state differently.
//!
//! The input is a setup, a rule and events. The output is requests, and at last the decision. No sample is judged, and none is seen by
//! another voter.

use super::compared::ComparedTexts;
use super::prompt::SampleForm;
use super::report::VoteSection;
use super::sampler::{Sampler, worst_case};
use super::tally::{CERTAIN, StopClass};
use crate::contract::{
    Action, Answer, Degraded, DegradedKind, Event, Executions, How, Lead, NoAgreement, OnDisagreement,
    Outcome, ProtocolParams, Report, Setup, Unexpected, WorstCase,
};
use crate::text::is_short;
use crypto::Digest;

/// The most further samples after a tie.
const TIE_SAMPLES: usize = 3;

/// The rule by which counted answers decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountRule {
    /// The number of first answers. Nothing is decided before them, and if all are equal, nothing is drawn after them.
    pub(crate) first: usize,
    /// The most samples that are drawn for a lead that is certain. A tie adds a few.
    pub(crate) most: usize,
    /// The most samples that are asked for beyond those that were looked at.
    pub(crate) ahead: usize,
    /// Whether a lead that is less than certain decides nothing, as in a vote. Otherwise the most votes decide in the end, and only a tie
    /// stays open.
    pub(crate) needs_certainty: bool,
    /// What a tie that stays decides, or a lead that is less than certain.
    pub(crate) on_disagreement: OnDisagreement,
    /// What follows if an answer is a long text.
    pub(crate) long_texts: LongTexts,
}

/// What follows if an answer is a long text, which is not found twice in the same words.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LongTexts {
    /// This many are drawn, and the one that is nearest to all others is the answer, if they say the same.
    Medoid {
        /// The number of drafts that are compared, if that many are valid.
        least: usize,
        /// The most drafts that are drawn.
        most: usize,
    },
    /// The caller decides, once the first answers are there. It also decides if none of them is valid.
    LeftToCaller,
}

/// Blind samples with the rule by which they decide.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    pub(crate) sampler: Sampler,
    rule: CountRule,
    /// A or C for a lead that is certain enough, D for a tie that stays.
    pub(crate) class: Option<StopClass>,
    /// What the comparison of long texts has found, once it has decided.
    texts: Option<ComparedTexts>,
}

/// What the samples have decided.
#[derive(Clone, Debug)]
pub(crate) enum CountDecision {
    /// This answer is the one of the voters.
    Answer { how: How, answer: Answer },
    /// The samples decide on no answer.
    NoAnswer(NoAgreement),
    /// A text is long, or no text is valid. The caller decides about these answers, in their order.
    LongTexts(Vec<Answer>),
}

/// What follows from an event.
pub(crate) enum CountProgress {
    Ask(Vec<Action>),
    /// The samples are decided. The actions cancel what is still open.
    Decided(CountDecision, Vec<Action>),
}

impl CountRule {
    /// Returns the most samples that may be drawn for short answers.
    fn most_counted(self) -> usize {
        if self.needs_certainty { self.most } else { self.most + TIE_SAMPLES }
    }

    /// Returns the most that samples by this rule cost.
    pub(crate) fn worst_case<P: ProtocolParams>(
        self,
        setup: &Setup<P>,
        voters: &[usize],
        form: SampleForm,
    ) -> WorstCase {
        let drafts = match self.long_texts {
            LongTexts::Medoid { most, .. } => most,
            LongTexts::LeftToCaller => 0,
        };
        worst_case(setup, voters, form, drafts.max(self.most_counted()))
    }
}

impl CountDecision {
    /// Returns the outcome of a run that ends with this decision.
    pub(crate) fn into_outcome(self) -> Outcome {
        match self {
            Self::Answer { how, answer } => {
                Outcome::Agreed { how, text: answer.shown, sha256: answer.canonical.digest }
            }
            Self::NoAnswer(reason) => Outcome::NoAgreement { reason },
            // A caller that wants to decide itself does so before.
            Self::LongTexts(_) => Outcome::NoAgreement { reason: NoAgreement::Unsettled },
        }
    }
}

impl AsMut<Executions> for Counting {
    fn as_mut(&mut self) -> &mut Executions {
        &mut self.sampler.executions
    }
}

impl Counting {
    /// Makes the samples of a run that has not started.
    pub(crate) fn new<P: ProtocolParams>(
        setup: &Setup<P>,
        voters: Vec<usize>,
        form: SampleForm,
        rule: CountRule,
    ) -> Self {
        Self { sampler: Sampler::new(setup, voters, form), rule, class: None, texts: None }
    }

    /// Takes an event of the run. Samples are looked at in their order, as far as they are complete.
    pub(crate) fn step<P: ProtocolParams>(
        &mut self,
        setup: &Setup<P>,
        event: &Event,
    ) -> Result<CountProgress, Unexpected> {
        match event {
            Event::Started if !self.sampler.has_started() => Ok(CountProgress::Ask(self.ask_ahead(setup))),
            Event::Replied { call, reply } => match self.sampler.take(setup, *call, reply)? {
                Some(ask) => Ok(CountProgress::Ask(vec![Action::Ask(ask)])),
                None => Ok(self.look(setup)),
            },
            Event::Lost { call, cause } => {
                self.sampler.lose(setup, *call, cause)?;
                Ok(self.look(setup))
            }
            Event::Started
            | Event::Found { .. }
            | Event::Executed { .. }
            | Event::Permitted
            | Event::Closed => Err(event.into()),
        }
    }

    fn look<P: ProtocolParams>(&mut self, setup: &Setup<P>) -> CountProgress {
        let mut actions = Vec::new();
        while self.sampler.look_at_next() {
            actions.extend(self.sampler.give_up_lost_voter());
            if let Some(decision) = self.decide(setup) {
                actions.extend(self.sampler.cancel_open());
                return CountProgress::Decided(decision, actions);
            }
            actions.extend(self.ask_ahead(setup));
        }
        CountProgress::Ask(actions)
    }

    /// Asks for the samples that are needed next, as far ahead as the rule allows.
    fn ask_ahead<P: ProtocolParams>(&mut self, setup: &Setup<P>) -> Vec<Action> {
        let (looked, CountRule { first, most, .. }) = (self.sampler.looked, self.rule);
        let needed = if looked < first {
            first - looked
        } else if let LongTexts::Medoid { least, .. } = self.rule.long_texts
            && self.has_long_text(setup)
        {
            least.saturating_sub(self.sampler.answers(setup).count()).max(1)
        } else if looked < most {
            self.sampler.count(setup).lead().fewest_until(CERTAIN, most - looked)
        } else {
            1
        };
        self.sampler.ask_up_to(setup, looked + needed.min(self.rule.ahead))
    }

    /// Returns what the samples that were looked at decide, if they do.
    fn decide<P: ProtocolParams>(&mut self, setup: &Setup<P>) -> Option<CountDecision> {
        let CountRule { first, most, needs_certainty, on_disagreement, .. } = self.rule;
        let looked = self.sampler.looked;
        if looked < first {
            return None;
        }
        let count = self.sampler.count(setup);
        let Some(leading) = count.0.first() else {
            // Authors of texts that no rule or check passes write better ones once they read why.
            if setup.canonical.kind.may_be_long() && self.rule.long_texts == LongTexts::LeftToCaller {
                return Some(CountDecision::LongTexts(Vec::new()));
            }
            return if looked < most { None } else { Some(CountDecision::NoAnswer(NoAgreement::NoDrafts)) };
        };
        let is_unanimous = looked == first && leading.votes as usize == first;
        if !is_unanimous && self.has_long_text(setup) {
            return self.decide_long_texts(setup);
        }
        let (leads, class) = (count.leader().is_some(), count.class(CERTAIN));
        let is_last = looked >= if leads { most } else { self.rule.most_counted() };
        // A lead that can no longer become certain ends the run at once, unless the leading answer is wanted in any case.
        let Lead { leader, runner_up } = count.lead();
        let left = u32::try_from(most.saturating_sub(looked)).unwrap_or(u32::MAX);
        let best = Lead { leader: leader.saturating_add(left), runner_up };
        let cannot_settle = needs_certainty
            && on_disagreement == OnDisagreement::Abstain
            && !best.certainty().reaches(CERTAIN);
        if !(is_unanimous || class.is_some() || is_last || cannot_settle) {
            return None;
        }
        let is_settled = is_unanimous || class.is_some() || leads && !needs_certainty;
        let decision = if is_settled || on_disagreement == OnDisagreement::Leader {
            let how = if is_unanimous { How::Independent } else { How::Voted };
            CountDecision::Answer { how, answer: leading.answer.clone() }
        } else {
            CountDecision::NoAnswer(NoAgreement::Unsettled)
        };
        self.class = if is_settled { class } else { Some(StopClass::D) };
        Some(decision)
    }

    fn has_long_text<P>(&self, setup: &Setup<P>) -> bool {
        setup.canonical.kind.may_be_long()
            && self.sampler.answers(setup).any(|answer| !is_short(&answer.shown))
    }

    /// Returns what texts decide of which one at least is long, if they do.
    fn decide_long_texts<P: ProtocolParams>(&mut self, setup: &Setup<P>) -> Option<CountDecision> {
        let texts: Vec<&Answer> = self.sampler.answers(setup).collect();
        let LongTexts::Medoid { least, most } = self.rule.long_texts else {
            return Some(CountDecision::LongTexts(texts.into_iter().cloned().collect()));
        };
        let looked = self.sampler.looked;
        let compared = ComparedTexts::new(setup.canonical.kind, &texts)?;
        let is_early = looked == self.rule.first && texts.len() == looked && compared.are_alike();
        if !is_early && texts.len() < least && looked < most {
            return None;
        }
        let answer = texts[compared.medoid].clone();
        // One draft alone agrees with nothing.
        let is_agreed = texts.len() >= 2 && compared.are_alike();
        self.texts = Some(compared);
        if is_agreed {
            return Some(CountDecision::Answer { how: How::Medoid, answer });
        }
        self.class = Some(StopClass::D);
        Some(match self.rule.on_disagreement {
            OnDisagreement::Leader => CountDecision::Answer { how: How::Medoid, answer },
            OnDisagreement::Abstain => CountDecision::NoAnswer(NoAgreement::DraftsDiffer),
        })
    }

    /// Returns the part of a report about the samples. Of long texts, the one that is nearest to all others comes first.
    pub(crate) fn section<P>(&self, setup: &Setup<P>) -> VoteSection {
        let most = match (self.rule.long_texts, &self.texts) {
            (LongTexts::Medoid { most, .. }, Some(_)) => most,
            (LongTexts::Medoid { .. } | LongTexts::LeftToCaller, _) => self.rule.most_counted(),
        };
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let mut section = self.sampler.section(setup, self.class, most);
        section.texts.clone_from(&self.texts);
        if let Some(nearest) = self.find_nearest(setup) {
            section.answers.sort_by_key(|answer| answer.sha256 != nearest);
        }
        section
    }

    /// Makes the report of a run, with the section that its protocol adds.
    pub(crate) fn report<P, S>(&self, setup: &Setup<P>, outcome: Option<&Outcome>, section: S) -> Report<S> {
        let mut report = self.sampler.report(setup, outcome, self.degraded(outcome), section);
        if let Some(nearest) = self.find_nearest(setup) {
            report.dissent.sort_by_key(|dissent| dissent.sha256 != nearest);
        }
        report
    }

    /// Returns the long text that is nearest to all others, if texts were compared.
    fn find_nearest<P>(&self, setup: &Setup<P>) -> Option<Digest> {
        let medoid = self.texts.as_ref()?.medoid;
        self.sampler.answers(setup).nth(medoid).map(|answer| answer.canonical.digest)
    }

    /// Returns the loss of a run that ended with an answer that did not settle.
    fn degraded(&self, outcome: Option<&Outcome>) -> Vec<Degraded> {
        if self.class != Some(StopClass::D) || !matches!(outcome, Some(Outcome::Agreed { .. })) {
            return Vec::new();
        }
        let detail = match self.texts {
            Some(_) => "the drafts differ; this one is the nearest to all others",
            None => {
                "the votes did not settle on one answer; of those with the most votes, this one came first"
            }
        };
        vec![Degraded { kind: DegradedKind::Unsettled, detail: detail.to_owned() }]
    }
}
