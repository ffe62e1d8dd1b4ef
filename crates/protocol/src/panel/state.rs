//! The state of a `panel` run: the iterations and their results.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ballot::Mark;
use super::lineup::Lineup;
use super::params::PanelParams;
use super::prompt;
use super::tally::AnswerTally;
use crate::contract::{Answer, CallId, Executions, Outcome, Setup};
use crate::text::Canonicalizer;
use crate::text::vacuity::PromptEcho;
use crate::turn::Draft;

/// The state of one `panel` run.
#[derive(Clone, Debug)]
pub struct Panel {
    pub(super) setup: Setup<PanelParams>,
    pub(super) executions: Executions,
    pub(super) canonicalizer: Canonicalizer,
    pub(super) prompt_echo: PromptEcho,
    pub(super) phase: PanelPhase,
    /// The forms in the making, by the call that each waits for.
    pub(super) open: BTreeMap<CallId, Draft>,
    /// The members whose form of this phase has not been asked for.
    pub(super) waiting: VecDeque<usize>,
    /// The iterations that are over, and last the one under way.
    pub(super) iterations: Vec<Iteration>,
    /// The members whose servers have failed. They are not asked again.
    pub(super) lost: BTreeSet<usize>,
    pub(super) repairs: Vec<u32>,
    pub(super) failed_turns: Vec<u32>,
    pub(super) outcome: Option<Outcome>,
    pub(super) remark: Option<&'static str>,
}

/// The step that the run waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PanelPhase {
    New,
    Generation,
    Evaluation,
    Done,
}

/// One generation and its evaluation.
#[derive(Clone, Debug)]
pub(super) struct Iteration {
    /// Each member's answer, once it has a valid one.
    pub(super) answers: Vec<Option<Answer>>,
    /// Each member's line-up of the answers, once they are in.
    pub(super) lineups: Vec<Lineup>,
    /// Each member's ballot.
    pub(super) ballots: Vec<Ballot>,
}

/// The state of a member's ballot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Ballot {
    /// It has not come in.
    Open,
    /// It was valid.
    Cast(Vec<Mark>),
    /// It was never valid, or its author was lost.
    Void,
    /// It could no longer change anything.
    Cancelled,
    /// There was nothing to judge.
    NotNeeded,
}

impl Iteration {
    pub(super) fn new(members: usize) -> Self {
        Self { answers: vec![None; members], lineups: Vec::new(), ballots: vec![Ballot::Open; members] }
    }

    /// Returns the members that have an answer.
    pub(super) fn answering_members(&self) -> Vec<usize> {
        (0..self.answers.len()).filter(|&member| self.answers[member].is_some()).collect()
    }

    /// Returns every mark with its evaluator.
    pub(super) fn marks(&self) -> impl Iterator<Item = (usize, &Mark)> {
        self.ballots.iter().enumerate().flat_map(|(evaluator, ballot)| {
            let marks: &[Mark] = if let Ballot::Cast(marks) = ballot { marks } else { &[] };
            marks.iter().map(move |mark| (evaluator, mark))
        })
    }

    /// Adds up the ballots that have come in.
    pub(super) fn tally(&self) -> Vec<AnswerTally> {
        let mut found = Vec::new();
        for (member, answer) in self.answers.iter().enumerate() {
            let Some(answer) = answer else { continue };
            let (mut sum, mut ballots) = (0, 0);
            for (_, mark) in self.marks().filter(|(_, mark)| mark.target == member) {
                sum += mark.scores.total();
                ballots += 1;
            }
            let (mut open, mut judges) = (0, 0);
            for (lineup, ballot) in self.lineups.iter().zip(&self.ballots) {
                if lineup.place(member).is_some() {
                    judges += 1;
                    open += u32::from(*ballot == Ballot::Open);
                }
            }
            found.push(AnswerTally { member, sha256: answer.canonical.digest, sum, ballots, open, judges });
        }
        found
    }

    /// Returns the feedback on a member's answer.
    pub(super) fn feedback(&self, member: usize) -> Vec<String> {
        let marks = self.marks().filter(|(_, mark)| mark.target == member && !mark.feedback.is_empty());
        let mut feedback: Vec<String> = marks.map(|(_, mark)| mark.feedback.clone()).collect();
        // The order follows from the words, not from their authors.
        feedback.sort();
        feedback.dedup();
        feedback
    }

    /// Returns whether every member gave the same answer as in another iteration.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        let texts = self.answers.iter().flatten().map(|answer| &answer.canonical);
        self.answering_members() == other.answering_members()
            && texts.eq(other.answers.iter().flatten().map(|answer| &answer.canonical))
    }
}

impl Panel {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub fn new(setup: Setup<PanelParams>) -> Self {
        let members = setup.agents.len();
        let user_words = setup.user_words(&setup.params.constraints);
        let own_words = prompt::own_words(&setup);
        let own_words = own_words.each_ref().map(String::as_str);
        Self {
            executions: Executions::new(&setup),
            canonicalizer: Canonicalizer::new(&setup.canonical),
            prompt_echo: setup.prompt_echo(&user_words, &own_words),
            phase: PanelPhase::New,
            open: BTreeMap::new(),
            waiting: VecDeque::new(),
            iterations: Vec::new(),
            lost: BTreeSet::new(),
            repairs: vec![0; members],
            failed_turns: vec![0; members],
            outcome: None,
            remark: None,
            setup,
        }
    }

    /// Returns the number of the iteration under way, from 1.
    pub(super) fn iteration(&self) -> u32 {
        u32::try_from(self.iterations.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn now(&mut self) -> &mut Iteration {
        let members = self.setup.agents.len();
        if self.iterations.is_empty() {
            self.iterations.push(Iteration::new(members));
        }
        let last = self.iterations.len() - 1;
        &mut self.iterations[last]
    }
}
