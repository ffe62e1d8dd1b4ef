//! The summary of an evaluation: every figure that its report shows.
//!
//! The input is the plan and the results by item. The output is `summary.json`. All shares of arms are over the same items,
//! those of which everything is known, so that no arm looks better for the items that it lacks. Everything follows from results on record,
//! so the same results give the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::comparison::{Against, Comparison, Curve, TalkOfArm, compare};
use super::data::is_public;
use super::items::{ArmItem, BlindLead, EvalResults, Item};
use super::plan::EvalPlan;
use super::verdict::EvalVerdict;
use protocol::OutcomeKind;
use protocol::text::CanonicalKind;
use statistics::{Interval, wilson, wilson_of_clusters};

/// The number of bins of a calibration, from one half to one.
const BINS: usize = 5;

/// The summary of an evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The version of the format.
    pub v: u32,
    /// The name of the data.
    pub data: String,
    /// Whether the data has the name of a known public set, which models may have read while they were trained.
    pub is_public: bool,
    /// The kind of all answers.
    pub kind: CanonicalKind,
    /// The number of items of the plan.
    pub planned: usize,
    /// The number of items of which everything is known.
    pub items: usize,
    /// The number of items, or of clusters of items, over which the intervals are.
    pub units: usize,
    /// The smallest difference of interest.
    pub effect: f64,
    /// The arm of the primary comparison.
    pub primary: String,
    /// Whether this is a pilot, which gives no verdict.
    pub pilot: bool,
    /// The majorities of blind samples, for each model.
    pub curves: Vec<Curve>,
    /// The arms, in the order of the plan.
    pub arms: Vec<ArmSummary>,
}

/// The figures of one arm.
#[derive(Clone, Debug, Serialize)]
pub struct ArmSummary {
    pub name: String,
    pub roleset: String,
    pub protocol: String,
    /// The model as it was named.
    pub model: String,
    /// The models that have answered.
    pub models: BTreeSet<String>,
    /// Whether these are the models of the samples that it is compared with, in every run alike.
    pub has_same_models: bool,
    /// Whether this is the arm of the primary comparison.
    pub is_primary: bool,
    /// The items whose run has ended by its protocol, complete or not.
    pub runs: usize,
    /// The items on which the arm gives the right answer, of all.
    pub right: ShareOf,
    /// The items on which it gives an answer.
    pub answered: ShareOf,
    /// The items with the right answer, of those with an answer.
    pub right_when_answered: ShareOf,
    /// The mean resources for an item.
    pub cost: CostOf,
    /// The comparison with the curve; absent without an item.
    pub against: Option<Against>,
    /// The p-value of the difference; that of any arm but the primary one is corrected for all of these (Holm 1979). Absent where there is
    /// no verdict.
    pub p: Option<f64>,
    /// The verdict; absent for points of the curve, in a pilot, and until every item is complete.
    pub verdict: Option<EvalVerdict>,
    /// The effect of the talk; absent for a way without one.
    pub talk: Option<TalkOfArm>,
    /// How often the answers of each ground are right.
    pub grounds: BTreeMap<String, ShareOf>,
    /// How good the vetoes are; absent without one.
    pub vetoes: Option<Vetoes>,
    /// How often the leading answer of a vote is right, by the certainty of its lead.
    pub calibration: Vec<Bin>,
    /// The errors among the answers that are surest, as more of them are taken.
    pub risk: Vec<RiskPoint>,
    /// The items that talk made right and wrong, by the number of rounds.
    pub flips: BTreeMap<u32, Flips>,
}

/// A share of items, with the interval of Wilson, or that for clusters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareOf {
    /// The items that count.
    pub count: usize,
    pub of: usize,
    /// The share; null without an item.
    pub share: Option<f64>,
    /// The interval; null without an item.
    pub interval: Option<Interval>,
}

/// The mean resources for an item.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostOf {
    /// The tokens of prompts and replies.
    pub tokens: f64,
    /// The tokens of prompts.
    pub prompt: f64,
    /// The tokens of prompts that servers had computed before.
    pub cached: f64,
    /// The tokens of replies.
    pub completion: f64,
    pub calls: f64,
    /// The seconds of a run from begin to end; null for an arm that counts the samples of a bank.
    pub seconds: Option<f64>,
    /// The cost in US dollars; null if a price is not known.
    pub usd: Option<f64>,
}

/// How good the vetoes of an arm are, by the plain vote over the blind drafts that would have been the answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Vetoes {
    /// The vetoes of a wrong answer, of all vetoes.
    pub precision: ShareOf,
    /// The vetoes of a wrong answer, of all wrong answers.
    pub recall: ShareOf,
}

/// The votes whose lead has about the same certainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// The mean certainty.
    pub certainty: f64,
    /// How often the leading answer is right.
    pub right: ShareOf,
}

/// The answers of an arm that are at least so sure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RiskPoint {
    /// What these answers have in common.
    pub from: String,
    /// The share of items with such an answer.
    pub coverage: f64,
    /// The wrong ones of these answers.
    pub errors: ShareOf,
}

/// The items that the talk of runs with some number of rounds has flipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Flips {
    pub runs: usize,
    /// The items that became right.
    pub gained: usize,
    /// The items that became wrong.
    pub lost: usize,
}

impl ShareOf {
    fn of<'a>(items: impl Iterator<Item = &'a ArmItem>, counts: impl Fn(&ArmItem) -> bool) -> Self {
        let (mut count, mut of) = (0, 0);
        let mut clusters: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for item in items {
            let is_counted = counts(item);
            count += usize::from(is_counted);
            of += 1;
            if let Some(cluster) = item.cluster {
                let sums = clusters.entry(cluster).or_default();
                *sums = (sums.0 + f64::from(is_counted), sums.1 + 1.0);
            }
        }
        let share = if of > 0 { Some(count as f64 / of as f64) } else { None };
        let clusters: Vec<(f64, f64)> = clusters.into_values().collect();
        let interval = share.map(|share| match clusters.as_slice() {
            [] => wilson(share, of as f64),
            clusters => wilson_of_clusters(clusters),
        });
        Self { count, of, share, interval }
    }
}

impl Summary {
    /// Returns whether every item of the plan is complete.
    pub fn is_complete(&self) -> bool {
        self.items == self.planned
    }

    /// Computes the summary of an evaluation.
    pub fn new(plan: &EvalPlan, results: &EvalResults) -> Self {
        let items: Vec<&Item> = results.complete(plan).collect();
        let compared = compare(plan, &items);
        let arms = (0..plan.arms.len()).map(|at| {
            let runs = results.items.iter().filter(|item| item.arms[at].is_some()).count();
            let of_arm: Vec<&ArmItem> = items.iter().filter_map(|item| item.arms[at].as_ref()).collect();
            let summary = summarize(plan, at, runs, &of_arm, compared.as_ref());
            let of_curve = items.iter().filter_map(|item| item.banks[plan.arms[at].curve].as_ref());
            let curve: BTreeSet<&BTreeSet<String>> = of_curve.map(|bank| &bank.models).collect();
            let own: BTreeSet<&BTreeSet<String>> = of_arm.iter().map(|run| &run.models).collect();
            // The arm's models are one set, and every run of it and of the curve has them all.
            let has_same_models = own == curve && own.len() <= 1;
            ArmSummary { has_same_models, p: if has_same_models { summary.p } else { None }, ..summary }
        });
        let mut arms: Vec<ArmSummary> = arms.collect();
        correct(&mut arms);
        let units = compared.as_ref().map_or(0, |compared| compared.units);
        // What ends first is what is easy, so a part of the items says little about the whole.
        if plan.pilot || items.len() < plan.items {
            for arm in &mut arms {
                arm.p = None;
            }
        } else {
            judge(&mut arms, units, items.len(), plan.effect);
        }
        Self {
            v: EvalPlan::VERSION,
            data: plan.data.clone(),
            is_public: is_public(&plan.data),
            kind: plan.kind,
            planned: plan.items,
            items: items.len(),
            units,
            effect: plan.effect,
            primary: plan.primary.clone(),
            pilot: plan.pilot,
            curves: compared.map(|compared| compared.curves.into_values().collect()).unwrap_or_default(),
            arms,
        }
    }
}

fn summarize(
    plan: &EvalPlan,
    at: usize,
    runs: usize,
    items: &[&ArmItem],
    compared: Option<&Comparison>,
) -> ArmSummary {
    let planned = &plan.arms[at];
    let answered = items.iter().copied().filter(|item| item.answer.is_some());
    let against = compared.map(|compared| compared.against[at]);
    let p = if planned.is_on_curve { None } else { against.map(|against| against.p) };
    ArmSummary {
        name: planned.name.clone(),
        roleset: planned.roleset.clone(),
        protocol: planned.protocol.clone(),
        model: planned.model.clone(),
        models: items.iter().flat_map(|item| item.models.iter().cloned()).collect(),
        has_same_models: true,
        is_primary: planned.name == plan.primary,
        runs,
        right: ShareOf::of(items.iter().copied(), |item| item.is_right),
        answered: ShareOf::of(items.iter().copied(), |item| item.answer.is_some()),
        right_when_answered: ShareOf::of(answered, |item| item.is_right),
        cost: CostOf::new(items, planned.bank.is_some()),
        against,
        p,
        verdict: None,
        talk: compared.and_then(|compared| compared.talks[at]),
        grounds: grounds(items),
        vetoes: vetoes(items),
        calibration: calibration(items),
        risk: risk(items),
        flips: flips(items),
    }
}

impl CostOf {
    fn new(items: &[&ArmItem], is_counted: bool) -> Self {
        let n = items.len().max(1) as f64;
        let prompt = mean(items, |item| item.prompt);
        let completion = mean(items, |item| item.completion);
        let seconds = if is_counted { None } else { Some(mean(items, |item| item.milliseconds) / 1000.0) };
        let costs: Option<Vec<u64>> = items.iter().map(|item| item.cost_micro_usd).collect();
        Self {
            tokens: prompt + completion,
            prompt,
            cached: mean(items, |item| item.cached),
            completion,
            calls: mean(items, |item| item.calls),
            seconds,
            usd: costs.map(|costs| costs.iter().fold(0.0, |sum, cost| sum + *cost as f64) / n / 1e6),
        }
    }
}

fn mean(items: &[&ArmItem], figure: impl Fn(&ArmItem) -> u64) -> f64 {
    items.iter().fold(0.0, |sum, item| sum + figure(item) as f64) / items.len().max(1) as f64
}

/// Corrects the p-values of all arms but the primary one, the smallest first (Holm 1979).
fn correct(arms: &mut [ArmSummary]) {
    let others = arms.iter().enumerate().filter(|(_, arm)| !arm.is_primary);
    let mut others: Vec<(f64, usize)> = others.filter_map(|(at, arm)| Some((arm.p?, at))).collect();
    others.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut least: f64 = 0.0;
    for (place, (p, at)) in others.iter().enumerate() {
        least = least.max(p * (others.len() - place) as f64).min(1.0);
        arms[*at].p = Some(least);
    }
}

/// Gives each arm that is no point of the curve its verdict.
fn judge(arms: &mut [ArmSummary], units: usize, items: usize, effect: f64) {
    for arm in arms {
        let Some((against, p)) = arm.against.zip(arm.p) else { continue };
        arm.verdict = Some(EvalVerdict::new(&against, p, units, items, effect));
    }
}

fn grounds(items: &[&ArmItem]) -> BTreeMap<String, ShareOf> {
    let mut by_ground: BTreeMap<&str, Vec<&ArmItem>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.answer.is_some()) {
        by_ground.entry(item.grounds.as_deref().unwrap_or("none")).or_default().push(item);
    }
    let shares = by_ground
        .into_iter()
        .map(|(ground, items)| (ground.to_owned(), ShareOf::of(items.into_iter(), |item| item.is_right)));
    shares.collect()
}

fn vetoes(items: &[&ArmItem]) -> Option<Vetoes> {
    // A tie of drafts would have been no answer.
    let vetoed = items.iter().copied().filter(|item| is_vetoed(item) && has_clear_vote(item));
    let precision = ShareOf::of(vetoed, was_wrong);
    let recall = ShareOf::of(items.iter().copied().filter(|item| was_wrong(item)), is_vetoed);
    if precision.of > 0 { Some(Vetoes { precision, recall }) } else { None }
}

fn is_vetoed(item: &ArmItem) -> bool {
    item.outcome == OutcomeKind::Vetoed
}

fn has_clear_vote(item: &ArmItem) -> bool {
    item.blind.is_some_and(|blind| blind.is_right().is_some())
}

/// Returns whether the vote over blind drafts was wrong. It was neither right nor wrong if it was tied.
fn was_wrong(item: &ArmItem) -> bool {
    item.blind.and_then(BlindLead::is_right) == Some(false)
}

fn calibration(items: &[&ArmItem]) -> Vec<Bin> {
    let mut bins: BTreeMap<usize, Vec<&ArmItem>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.answer.is_some()) {
        let Some(certainty) = item.certainty else { continue };
        let place = (1..BINS).filter(|bin| (certainty - 0.5) * 2.0 * BINS as f64 >= *bin as f64).count();
        bins.entry(place).or_default().push(item);
    }
    let mut calibration = Vec::new();
    for items in bins.into_values() {
        let certainty = items.iter().filter_map(|item| item.certainty).sum::<f64>() / items.len() as f64;
        let right = ShareOf::of(items.into_iter(), |item| item.is_right);
        calibration.push(Bin { certainty, right });
    }
    calibration
}

fn is_independent(item: &ArmItem) -> bool {
    item.grounds.as_deref() == Some("independent")
}

/// Returns a figure by which the answers of one arm are ordered, the surest with the greatest.
fn sureness(item: &ArmItem) -> f64 {
    match item.certainty {
        Some(certainty) => certainty,
        None if is_independent(item) => 2.0,
        None => -f64::from(item.rounds),
    }
}

/// Returns the errors among the surest answers: of votes by the certainty of the lead; of talks first those on which agents agreed
/// independently, and then those that took fewer rounds.
fn risk(items: &[&ArmItem]) -> Vec<RiskPoint> {
    let mut answered: Vec<&ArmItem> = items.iter().copied().filter(|item| item.answer.is_some()).collect();
    answered.sort_by(|one, other| sureness(other).total_cmp(&sureness(one)));
    let mut covered = 0;
    let mut points = Vec::new();
    for group in answered.chunk_by(|one, other| sureness(one).total_cmp(&sureness(other)).is_eq()) {
        covered += group.len();
        let from = match group[0].certainty {
            Some(certainty) => format!("{:.1} % certain", certainty * 100.0),
            None if is_independent(group[0]) => "independent".to_owned(),
            None => format!("within {} rounds", group[0].rounds),
        };
        let coverage = covered as f64 / items.len() as f64;
        let errors = ShareOf::of(answered[..covered].iter().copied(), |item| !item.is_right);
        points.push(RiskPoint { from, coverage, errors });
    }
    points
}

fn flips(items: &[&ArmItem]) -> BTreeMap<u32, Flips> {
    let mut flips: BTreeMap<u32, Flips> = BTreeMap::new();
    for item in items {
        let Some(before) = item.blind else { continue };
        let of_rounds = flips.entry(item.rounds).or_default();
        of_rounds.runs += 1;
        of_rounds.gained += usize::from(item.is_right && before.is_right() == Some(false));
        of_rounds.lost += usize::from(!item.is_right && before.is_right() == Some(true));
    }
    flips
}
