//! The ledger of a budget: its runs as their records leave them, the round that is being made, and the next one.
//!
//! The input is runs in any order, and rulings in the order of the records. The output is the next ruling with its runs, or the first
//! recorded ruling that the rule does not give. A live batch, one that was interrupted, and `verify` all use this ledger.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::{BudgetEnd, BudgetRuling, PacedName, PacedRun, RoundPlan, RunPosition, SamplePermit, thresholds};
use crate::contract::Fraction;
use crate::core::BasisPoints;

/// The runs under one budget of tokens.
#[derive(Clone, Debug)]
pub struct PacingLedger {
    /// The budget in tokens.
    budget: u64,
    runs: BTreeMap<PacedName, PacedRun>,
    /// The number of rounds that have begun.
    rounds: u32,
    /// The threshold of the last round; the lowest one before the first round.
    threshold: BasisPoints,
    /// Whether no further round begins.
    is_over: bool,
    /// The ruling that is being made, with the runs whose record of it is still missing.
    due: Option<RoundPlan>,
}

/// A ledger that cannot continue, or a ruling that the rule does not give.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum PacingError {
    /// A round would begin before the last one has ended.
    #[error(
        "{0} has begun, and it neither waits for the budget nor has ended; no further round begins before it does"
    )]
    UnderWay(PacedName),
    /// A recorded ruling differs from the one that follows from the records before it.
    #[error("{name} has {found}, and the records before it give {expected}")]
    Differs {
        name: Box<PacedName>,
        found: BudgetRuling,
        /// The ruling that is due, in words.
        expected: String,
    },
}

/// A run that waits. The order is that in which runs draw.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct WaitingRun<'a> {
    certainty: Fraction,
    name: &'a PacedName,
}

impl PacingLedger {
    /// Begins a ledger without a run; `budget` is in tokens.
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            runs: BTreeMap::new(),
            rounds: 0,
            threshold: BasisPoints::ZERO,
            is_over: false,
            due: None,
        }
    }

    /// Notes how the records of a run leave it.
    pub fn note(&mut self, name: PacedName, run: PacedRun) {
        self.runs.insert(name, run);
    }

    /// Returns the tokens of all runs.
    pub fn spent(&self) -> u64 {
        self.runs.values().fold(0, |sum: u64, run| sum.saturating_add(run.tokens))
    }

    /// Returns the rest of the ruling that is being made, or begins the next one. Returns `None` if no run waits.
    ///
    /// # Errors
    ///
    /// [`PacingError::UnderWay`] names a run that has to wait or end first.
    pub fn begin_next(&mut self) -> Result<Option<&RoundPlan>, PacingError> {
        if self.due.is_none() {
            self.due = self.plan()?;
        }
        Ok(self.due.as_ref())
    }

    /// Takes a recorded ruling on a run, in the order of the records.
    ///
    /// # Errors
    ///
    /// [`PacingError`] if the rulings of a round before are missing, or if this is not the ruling that follows.
    pub fn take(&mut self, name: &PacedName, found: BudgetRuling) -> Result<(), PacingError> {
        self.begin_next()?;
        let Some(due) = &mut self.due else { return Err(differs(name, found, "none")) };
        if due.ruling != found || !due.runs.remove(name) {
            let first = due.runs.first().map(|first| format!(", as for {first}")).unwrap_or_default();
            return Err(differs(name, found, &format!("{}{first}", due.ruling)));
        }
        if due.runs.is_empty() {
            self.due = None;
        }
        Ok(())
    }

    /// Plans the next ruling, from runs that wait or have ended.
    fn plan(&mut self) -> Result<Option<RoundPlan>, PacingError> {
        let mut waiting = BTreeSet::new();
        for (name, run) in &self.runs {
            match run.position {
                RunPosition::UnderWay => return Err(PacingError::UnderWay(name.clone())),
                RunPosition::Waiting(certainty) => drop(waiting.insert(WaitingRun { certainty, name })),
                RunPosition::Ended => {}
            }
        }
        let Some(first) = waiting.first() else { return Ok(None) };
        let spent = self.spent();
        let threshold = self.next_threshold(first.certainty);
        let below = waiting.iter().filter(|run| !run.certainty.reaches(threshold)).count();
        let fitting = if self.is_over { 0 } else { self.count_fitting(below) };
        self.is_over |= fitting < below;
        let count = if fitting == 0 { waiting.len() } else { fitting };
        let runs = waiting.into_iter().take(count).map(|run| run.name.clone()).collect();
        if fitting == 0 {
            return Ok(Some(RoundPlan { ruling: BudgetRuling::Close(BudgetEnd { spent }), runs }));
        }
        (self.rounds, self.threshold) = (self.rounds + 1, threshold);
        let ruling = BudgetRuling::Permit(SamplePermit { round: self.rounds, threshold, spent });
        Ok(Some(RoundPlan { ruling, runs }))
    }

    /// Returns the threshold of the next round, where `least` is the lowest certainty.
    fn next_threshold(&self, least: Fraction) -> BasisPoints {
        let next = thresholds().find(|entry| *entry >= self.threshold && !least.reaches(*entry));
        // No certainty reaches the last entry, which is 1.
        next.unwrap_or(self.threshold)
    }

    /// Returns how many runs of a round with so many fit into what is left of the budget. A sample takes the mean of all samples.
    fn count_fitting(&self, most: usize) -> usize {
        let spent = u128::from(self.spent());
        let samples = self.runs.values().map(|run| u128::from(run.samples)).sum::<u128>();
        let left = u128::from(self.budget).saturating_sub(spent);
        // The estimate of n samples is spent × n / samples, rounded up. It is at most `left` for the same n as without the rounding.
        match (left * samples).checked_div(spent) {
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX).min(most),
            None => most,
        }
    }
}

fn differs(name: &PacedName, found: BudgetRuling, expected: &str) -> PacingError {
    PacingError::Differs { name: Box::new(name.clone()), found, expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    use crate::contract::Lead;
    use crate::vote::{SAMPLES_FIRST, VoteParams};

    /// The tokens of each sample in plays where all cost the same.
    const COST: u64 = 10;

    /// A task whose samples are known before they are drawn: votes for the answer of each number.
    #[derive(Clone, Debug)]
    struct KnownTask {
        answers: Vec<u8>,
        drawn: usize,
        tokens: u64,
        is_closed: bool,
    }

    impl KnownTask {
        fn new(answers: Vec<u8>) -> Self {
            Self { answers, drawn: 0, tokens: 0, is_closed: false }
        }

        fn draw(&mut self, cost: u64) {
            self.drawn += 1;
            self.tokens += cost;
        }

        /// Returns the certainty after so many samples.
        fn certainty(&self, drawn: usize) -> Fraction {
            let mut votes = [0_u32; 4];
            for answer in &self.answers[..drawn] {
                votes[usize::from(*answer)] += 1;
            }
            votes.sort_unstable();
            Lead { leader: votes[3], runner_up: votes[2] }.certainty()
        }

        fn run(&self) -> PacedRun {
            let params = VoteParams { paced: true, ..VoteParams::default() };
            let certainty = self.certainty(self.drawn);
            let is_settled = params.enough().is_some_and(|share| certainty.reaches(share));
            let has_ended = self.is_closed || is_settled || self.drawn == params.most() as usize;
            let position = if has_ended { RunPosition::Ended } else { RunPosition::Waiting(certainty) };
            PacedRun { position, tokens: self.tokens, samples: self.drawn as u64 }
        }
    }

    fn name(at: usize) -> PacedName {
        PacedName { task: format!("task {at:03}"), roleset: "r".to_owned(), model: String::new(), seed: 1 }
    }

    fn any_tasks() -> impl Strategy<Value = Vec<KnownTask>> {
        let answers = prop::collection::vec(prop::sample::select(vec![0, 0, 0, 1, 2]), 12..=12);
        prop::collection::vec(answers.prop_map(KnownTask::new), 1..12)
    }

    /// A play of a whole batch: the rulings in their order, and the tasks at the end.
    struct PlayedBatch {
        plans: Vec<RoundPlan>,
        tasks: Vec<KnownTask>,
    }

    /// Plays a batch whose runs are noted in this order; sample `n` of each task costs `cost(n)`.
    fn play(tasks: &[KnownTask], budget: u64, order: &[usize], cost: impl Fn(usize) -> u64) -> PlayedBatch {
        let mut tasks = tasks.to_vec();
        let mut ledger = PacingLedger::new(budget);
        for task in &mut tasks {
            for _ in 0..SAMPLES_FIRST {
                task.draw(cost(task.drawn));
            }
        }
        let mut plans = Vec::new();
        loop {
            for at in order {
                ledger.note(name(*at), tasks[*at].run());
            }
            let Some(plan) = ledger.begin_next().unwrap().cloned() else {
                return PlayedBatch { plans, tasks };
            };
            for (at, task) in tasks.iter_mut().enumerate() {
                if !plan.runs.contains(&name(at)) {
                    continue;
                }
                ledger.take(&name(at), plan.ruling).unwrap();
                match plan.ruling {
                    BudgetRuling::Permit(_) => task.draw(cost(task.drawn)),
                    BudgetRuling::Close(_) => task.is_closed = true,
                }
            }
            plans.push(plan);
        }
    }

    fn in_order(tasks: &[KnownTask]) -> Vec<usize> {
        (0..tasks.len()).collect()
    }

    /// Draws for the least certain task, until each reaches `level` or has ended. Returns the samples of each.
    fn greedy(tasks: &[KnownTask], level: BasisPoints) -> Vec<usize> {
        let mut tasks = tasks.to_vec();
        for task in &mut tasks {
            (0..SAMPLES_FIRST).for_each(|_| task.draw(COST));
        }
        loop {
            let mut least: Option<(Fraction, usize)> = None;
            for (at, task) in tasks.iter().enumerate() {
                if let RunPosition::Waiting(certainty) = task.run().position {
                    least = Some(least.map_or((certainty, at), |known| known.min((certainty, at))));
                }
            }
            match least {
                Some((certainty, at)) if !certainty.reaches(level) => tasks[at].draw(COST),
                Some(_) | None => return tasks.iter().map(|task| task.drawn).collect(),
            }
        }
    }

    proptest! {
        /// With equal costs no budget is exceeded after the first samples, and a round that fits is made whole.
        #[test]
        fn permits_stay_within_the_budget(tasks in any_tasks(), more in 0..800_u64) {
            let first = tasks.len() as u64 * u64::from(SAMPLES_FIRST) * COST;
            let played = play(&tasks, first + more, &in_order(&tasks), |_| COST);
            let spent: u64 = played.tasks.iter().map(|task| task.tokens).sum();
            prop_assert!(spent <= first + more);
            let closes = played.plans.iter().filter(|plan| matches!(plan.ruling, BudgetRuling::Close(_)));
            prop_assert!(closes.count() <= 1);
            let is_cut = played.plans.iter().any(|plan| matches!(plan.ruling, BudgetRuling::Close(_)));
            prop_assert!(!is_cut || first + more - spent < COST || played.tasks.iter().all(|task| task.run().position == RunPosition::Ended));
        }

        /// With unequal costs the excess is at most the error of the estimate of one round.
        #[test]
        fn excess_is_at_most_one_estimate_error(tasks in any_tasks(), budget in 0..2000_u64, costs in prop::collection::vec(1..40_u64, 12)) {
            let played = play(&tasks, budget, &in_order(&tasks), |sample| costs[sample]);
            let spent: u64 = played.tasks.iter().map(|task| task.tokens).sum();
            let first = tasks.len() as u64 * (costs[0] + costs[1]);
            let round = tasks.len() as u64 * costs.iter().max().unwrap();
            prop_assert!(spent <= first.max(budget + round));
        }

        /// No order in which runs are noted changes a round.
        #[test]
        fn order_of_runs_changes_nothing(tasks in any_tasks(), budget in 0..1500_u64, seed in any::<u64>()) {
            let first = play(&tasks, budget, &in_order(&tasks), |sample| sample as u64 + 5);
            let mut order = in_order(&tasks);
            order.sort_by_key(|at| (*at as u64 + 1).wrapping_mul(seed | 1));
            let second = play(&tasks, budget, &order, |sample| sample as u64 + 5);
            prop_assert_eq!(first.plans, second.plans);
        }

        /// When an entry of the list is used up, each task has the samples of the greedy order.
        #[test]
        fn each_level_ends_like_greedy_order(tasks in any_tasks()) {
            let whole = play(&tasks, u64::MAX, &in_order(&tasks), |_| COST);
            let mut drawn = vec![SAMPLES_FIRST as usize; tasks.len()];
            for (at, plan) in whole.plans.iter().enumerate() {
                for (task, drawn) in drawn.iter_mut().enumerate() {
                    *drawn += usize::from(plan.runs.contains(&name(task)));
                }
                let threshold = |plan: &RoundPlan| match plan.ruling {
                    BudgetRuling::Permit(permit) => permit.threshold,
                    BudgetRuling::Close(_) => BasisPoints::of_ten_thousand(10_000),
                };
                let level = threshold(plan);
                if whole.plans.get(at + 1).is_none_or(|next| threshold(next) != level) {
                    prop_assert_eq!(&drawn, &greedy(&tasks, level));
                }
            }
        }

        /// A ledger that is made again from rulings cut off anywhere continues as if it had not been.
        #[test]
        fn interrupted_ledger_continues_the_same(tasks in any_tasks(), budget in 0..1500_u64, cut in 0..60_usize) {
            let whole = play(&tasks, budget, &in_order(&tasks), |_| COST);
            let mut play = InterruptedPlay::begin(&tasks, budget);
            let rulings = whole.plans.iter().flat_map(|plan| plan.runs.iter().map(|run| (run, plan.ruling)));
            for (run, ruling) in rulings.take(cut) {
                play.take(run, ruling);
            }
            while let Some(plan) = play.ledger.begin_next().unwrap().cloned() {
                prop_assert!(whole.plans.iter().any(|known| known.ruling == plan.ruling));
                plan.runs.iter().for_each(|run| play.take(run, plan.ruling));
            }
            for (task, known) in play.tasks.iter().zip(&whole.tasks) {
                prop_assert_eq!((task.drawn, task.is_closed), (known.drawn, known.is_closed));
            }
        }
    }

    /// A play whose ledger takes rulings one by one, as they are in a journal.
    struct InterruptedPlay {
        ledger: PacingLedger,
        tasks: Vec<KnownTask>,
    }

    impl InterruptedPlay {
        fn begin(tasks: &[KnownTask], budget: u64) -> Self {
            let (mut ledger, mut tasks) = (PacingLedger::new(budget), tasks.to_vec());
            for (at, task) in tasks.iter_mut().enumerate() {
                (0..SAMPLES_FIRST).for_each(|_| task.draw(COST));
                ledger.note(name(at), task.run());
            }
            Self { ledger, tasks }
        }

        fn take(&mut self, run: &PacedName, ruling: BudgetRuling) {
            self.ledger.take(run, ruling).unwrap();
            let at = (0..self.tasks.len()).find(|at| name(*at) == *run).unwrap();
            match ruling {
                BudgetRuling::Permit(_) => self.tasks[at].draw(COST),
                BudgetRuling::Close(_) => self.tasks[at].is_closed = true,
            }
            self.ledger.note(name(at), self.tasks[at].run());
        }
    }

    /// No entry of the list joins two certainties that a run of at most 12 samples can wait with.
    #[test]
    fn thresholds_separate_all_possible_certainties() {
        let limit = BasisPoints::of_ten_thousand(9_500);
        let mut found = BTreeSet::new();
        for leader in 0..12 {
            for runner_up in 0..=leader.min(11 - leader) {
                found.insert(Lead { leader, runner_up }.certainty());
            }
        }
        found.retain(|certainty| !certainty.reaches(limit));
        let found: Vec<Fraction> = found.into_iter().collect();
        assert!(found.len() > 20, "{}", found.len());
        for pair in found.windows(2) {
            let separates = |entry: BasisPoints| pair[1].reaches(entry) && !pair[0].reaches(entry);
            assert!(thresholds().any(separates), "{pair:?}");
        }
        assert!(!Lead { leader: 100, runner_up: 0 }.certainty().reaches(thresholds().last().unwrap()));
    }

    fn waiting(leader: u32, runner_up: u32, tokens: u64) -> PacedRun {
        let certainty = Lead { leader, runner_up }.certainty();
        PacedRun { position: RunPosition::Waiting(certainty), tokens, samples: u64::from(leader + runner_up) }
    }

    /// Four runs have used 80 tokens for eight samples, so that a sample counts as 10 tokens.
    fn four_runs(budget: u64) -> PacingLedger {
        let mut ledger = PacingLedger::new(budget);
        for (at, run) in
            [waiting(1, 1, 20), waiting(2, 0, 30), waiting(1, 1, 10), waiting(1, 1, 20)].iter().enumerate()
        {
            ledger.note(name(at), *run);
        }
        ledger
    }

    #[test]
    fn ties_are_broken_by_the_task() {
        let permitted = |budget| {
            let plan = four_runs(budget).begin_next().unwrap().cloned().unwrap();
            (plan.ruling, plan.runs.into_iter().collect::<Vec<_>>())
        };
        let threshold = BasisPoints::of_ten_thousand(5_100);
        let permit = BudgetRuling::Permit(SamplePermit { round: 1, threshold, spent: 80 });
        assert_eq!(permitted(110), (permit, vec![name(0), name(2), name(3)]));
        assert_eq!(permitted(109), (permit, vec![name(0), name(2)]));
        assert_eq!(permitted(90), (permit, vec![name(0)]));
        let end = BudgetRuling::Close(BudgetEnd { spent: 80 });
        assert_eq!(permitted(89), (end, (0..4).map(name).collect()));
        assert_eq!(permitted(0), (end, (0..4).map(name).collect()));
    }

    #[test]
    fn a_ruling_that_does_not_follow_is_refused() {
        let threshold = BasisPoints::of_ten_thousand(5_100);
        let permit = SamplePermit { round: 1, threshold, spent: 80 };
        for (bent, at) in [
            (BudgetRuling::Permit(SamplePermit { round: 2, ..permit }), 0),
            (BudgetRuling::Permit(SamplePermit { spent: 79, ..permit }), 0),
            (
                BudgetRuling::Permit(SamplePermit {
                    threshold: BasisPoints::of_ten_thousand(5_200),
                    ..permit
                }),
                0,
            ),
            (BudgetRuling::Permit(permit), 1),
            (BudgetRuling::Close(BudgetEnd { spent: 80 }), 0),
        ] {
            let why = four_runs(1_000).take(&name(at), bent).unwrap_err();
            assert!(matches!(why, PacingError::Differs { .. }), "{why}");
        }
        let mut ledger = four_runs(1_000);
        assert_eq!(ledger.take(&name(0), BudgetRuling::Permit(permit)), Ok(()));
        // The same permit again, and a later round while two runs lack this one.
        assert!(ledger.take(&name(0), BudgetRuling::Permit(permit)).is_err());
        let later = SamplePermit { round: 2, spent: 90, ..permit };
        assert!(ledger.take(&name(0), BudgetRuling::Permit(later)).is_err());
    }

    #[test]
    fn a_run_under_way_holds_the_round() {
        let mut ledger = four_runs(1_000);
        ledger.note(name(9), PacedRun { position: RunPosition::UnderWay, tokens: 0, samples: 0 });
        assert_eq!(ledger.begin_next(), Err(PacingError::UnderWay(name(9))));
        ledger.note(name(9), PacedRun { position: RunPosition::Ended, tokens: 0, samples: 0 });
        assert!(ledger.begin_next().is_ok());
    }
}
