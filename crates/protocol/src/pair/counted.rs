//! The form `differing`: blind answers of both agents are counted first, and both declare what code has found.
//!
//! ```text
//!  answers        the agents answer by turns, each alone with its own pack ([`Counting`])
//!     │  ├─ no answer leads ────────────────────────────────────────► no agreement
//!     │  ├─ one leads ──────────────────────────┐
//!     │  ├─ two long texts that say the same ───┤  the first agent's text
//!     │  └─ two long texts that differ ─► the talk, as with `talk: always`
//!     ▼                                         ▼
//!  declarations   each agent declares the text final, by its handle
//!     ├─ both have ─────────────────────────────────────────────────► agreed (independent, voted or endorsed)
//!     └─ one has not ───────────────────────────────────────────────► no agreement
//! ```
//!
//! No number, choice, JSON value or short text is talked about: talk made more right answers wrong than wrong answers right.

use super::agent::{Answer, ProposedText};
use super::declaring::Declarations;
use super::machine::Pair;
use super::params::PairParams;
use super::report::PairSection;
use super::talk::Talk;
use super::task_prompt;
use crate::contract::{
    Action, Degraded, DegradedKind, Event, Executions, How, NoAgreement, Outcome, Protocol, Report, Setup,
    Thinking, Unexpected, WorstCase, tokens,
};
use crate::sampling::{
    AnswerExtent, ComparedTexts, CountDecision, CountProgress, CountRule, Counting, LongTexts, SampleForm,
    VoterIntroduction,
};
use crate::text::is_short;

/// The first answers: one of each agent.
const FIRST: usize = 2;
/// The most answers that are drawn for a lead that is certain, as in a vote.
const MOST: usize = 8;

/// The state of a pair whose blind answers are counted.
#[derive(Clone, Debug)]
pub struct CountedPair {
    counting: Counting,
    /// The talk in which the agents declare the counted text; its setup is that of the run.
    talk: Talk,
    stage: Stage,
    outcome: Option<Outcome>,
}

/// The part of the run that waits for replies.
#[derive(Clone, Debug)]
enum Stage {
    /// Blind answers.
    Answers,
    /// The declarations of a text on which the answers agree in this way.
    Declarations(Box<Declarations>, How),
    /// The talk about long texts that differ.
    Talk(Box<Pair>),
}

fn rule(setup: &Setup<PairParams>) -> CountRule {
    CountRule {
        first: FIRST,
        most: MOST,
        ahead: FIRST,
        needs_certainty: false,
        on_disagreement: setup.params.on_disagreement,
        long_texts: LongTexts::LeftToCaller,
    }
}

/// Both agents answer by their own packs. A text that may be long is the whole reply.
fn form(setup: &Setup<PairParams>) -> SampleForm {
    let is_whole = setup.canonical.kind.may_be_long();
    let answer = if is_whole { AnswerExtent::Whole } else { AnswerExtent::Line };
    SampleForm { introduction: VoterIntroduction::Pack, answer }
}

/// Returns the most that the answers and the declarations of a run can cost.
pub(super) fn worst_case(setup: &Setup<PairParams>) -> WorstCase {
    let mut total = rule(setup).worst_case(setup, &[0, 1], form(setup));
    let text = setup.agents.iter().map(|agent| 2 * agent.text_chars_max() as u64).max().unwrap_or(0);
    for (agent, own) in setup.agents.iter().enumerate() {
        let words = task_prompt::declare(setup, agent, "");
        let mut conversation =
            tokens(&own.name_and_field()) + tokens(&words.situation) + tokens(&words.write) + text;
        total.add_form(
            &mut conversation,
            Thinking::None,
            setup.params.max_repairs,
            u64::from(own.max_tokens),
        );
    }
    total
}

impl CountedPair {
    /// Makes the machine for a run that has not started. `setup` must have exactly two agents.
    pub(super) fn new(setup: Setup<PairParams>) -> Self {
        let counting = Counting::new(&setup, vec![0, 1], form(&setup), rule(&setup));
        Self { counting, talk: Talk::new(setup), stage: Stage::Answers, outcome: None }
    }

    /// Follows what the counted answers have decided.
    fn follow(&mut self, decision: CountDecision) -> Result<Vec<Action>, Unexpected> {
        match decision {
            CountDecision::Answer { how, answer } => Ok(self.declare(how, answer)),
            CountDecision::NoAnswer(_) => Ok(self.finish(decision.into_outcome())),
            CountDecision::LongTexts(texts) => {
                if let [first, second] = texts.as_slice()
                    && self.are_alike(first, second)
                {
                    return Ok(self.declare(How::Endorsed, first.clone()));
                }
                let mut pair = Box::new(Pair::after_answers(
                    self.talk.setup.clone(),
                    self.counting.sampler.executions.clone(),
                ));
                let actions = pair.step(&Event::Started)?;
                self.stage = Stage::Talk(pair);
                Ok(actions)
            }
        }
    }

    /// Returns true for the first two answers if they are long texts that are alike, and state nothing differently as far as code finds it.
    fn are_alike(&self, first: &Answer, second: &Answer) -> bool {
        let are_long = !is_short(&first.shown) && !is_short(&second.shown);
        if !are_long || self.counting.sampler.looked != FIRST {
            return false;
        }
        let compared = ComparedTexts::new(self.talk.setup.canonical.kind, &[first, second]);
        compared.is_some_and(|compared| compared.are_alike())
    }

    fn declare(&mut self, how: How, answer: Answer) -> Vec<Action> {
        // An execution for an answer is not repeated for its declaration.
        self.talk.executions = self.counting.sampler.executions.clone();
        self.talk.round = 1;
        let (declarations, actions) = Declarations::begin(&mut self.talk, answer);
        self.stage = Stage::Declarations(Box::new(declarations), how);
        actions
    }

    fn finish_declared(&mut self, how: How, are_declared: bool) -> Vec<Action> {
        let outcome = match self.talk.proposals.first() {
            Some(ProposedText { answer, .. }) if are_declared => {
                Outcome::Agreed { how, text: answer.shown.clone(), sha256: answer.canonical.digest }
            }
            Some(_) | None => Outcome::NoAgreement { reason: NoAgreement::NotDeclared },
        };
        self.finish(outcome)
    }

    fn finish(&mut self, outcome: Outcome) -> Vec<Action> {
        self.outcome = Some(outcome.clone());
        vec![Action::Finish(outcome)]
    }
}

impl AsMut<Executions> for CountedPair {
    fn as_mut(&mut self) -> &mut Executions {
        match &mut self.stage {
            Stage::Answers => self.counting.as_mut(),
            Stage::Declarations(..) => &mut self.talk.executions,
            Stage::Talk(pair) => (**pair).as_mut(),
        }
    }
}

impl Protocol for CountedPair {
    type Section = PairSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        self.talk.remark = None;
        match &mut self.stage {
            Stage::Answers => match self.counting.step(&self.talk.setup, event)? {
                CountProgress::Ask(actions) => Ok(actions),
                CountProgress::Decided(decision, mut actions) => {
                    actions.extend(self.follow(decision)?);
                    Ok(actions)
                }
            },
            Stage::Declarations(declarations, how) => {
                let how = *how;
                let Event::Replied { call, reply } = event else { return Err(event.into()) };
                let actions =
                    declarations.reply(&mut self.talk, *call, reply).ok_or(Unexpected::NotAsked(*call))?;
                if !declarations.are_complete() {
                    return Ok(actions);
                }
                let are_declared = declarations.finish(&mut self.talk);
                Ok(self.finish_declared(how, are_declared))
            }
            Stage::Talk(pair) => pair.step(event),
        }
    }

    fn report(&self) -> Report<PairSection> {
        // What a talk has reached follows from its own drafts alone.
        if let Stage::Talk(pair) = &self.stage {
            return pair.report();
        }
        let outcome = self.outcome.as_ref();
        let section = PairSection { arbiter: None, vote: Some(self.counting.section(&self.talk.setup)) };
        let mut report = self.counting.report(&self.talk.setup, outcome, section);
        report.rounds = report.rounds.max(self.talk.round);
        for (agent, seat) in report.agents.iter_mut().zip(&self.talk.seats) {
            agent.status = seat.status();
            agent.repairs += seat.repairs;
            agent.failed_turns += seat.failed_turns;
            if agent.text.is_none() && outcome.is_some() {
                let detail = format!("{} found no valid answer of its own", agent.name);
                report.degraded.push(Degraded { kind: DegradedKind::BlindDraftMissing, detail });
            }
        }
        report
    }

    fn remark(&self) -> Option<&'static str> {
        match &self.stage {
            Stage::Answers | Stage::Declarations(..) => self.talk.remark,
            Stage::Talk(pair) => pair.remark(),
        }
    }
}
