//! The arms against the majorities of blind samples at the same tokens.
//!
//! The input is the items of which everything is known. The output is the curve of each bank, and for each arm its difference from the
//! curve at its own tokens, with intervals over items. Every figure of one selection of items is computed from the same sums.
//! The curve, the tokens at which it is read and the arm therefore move together. The comparison at equal tokens is that of Wang et al.
//! (arXiv 2406.06461).

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use super::curve::{first_majority, majorities};
use super::items::{ArmItem, BankItem, Item};
use super::plan::EvalPlan;
use statistics::{Interval, PairedTest, Resampled, UnitRows, student_p};

/// A point of a curve: the majority of this many samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The number of samples.
    pub samples: usize,
    /// The mean number of tokens for an item.
    pub tokens: f64,
    /// The share of items that are right.
    pub right: f64,
    /// The interval of this share over items.
    pub interval: Interval,
}

/// What a bank says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The model as it was named.
    pub model: String,
    /// The majority of each number of samples.
    pub points: Vec<CurvePoint>,
    /// The share of items of which at least one sample is right.
    pub any_right: f64,
    /// The control: the difference between the second sample and the first one of each item, which are alike. Its
    /// interval is that of noise. `None` without a second sample.
    pub control: Option<(f64, Interval)>,
}

/// An arm against the curve of its model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Against {
    /// The share of items that are right by the curve at the arm's tokens.
    pub curve: f64,
    /// The difference of the arm from that.
    pub difference: f64,
    /// The interval and the error of the difference.
    #[serde(flatten)]
    pub found: Resampled,
    /// The probability of a difference as far from zero, if zero were the true one. One more item is drawn with the others, and speaks
    /// wholly for the other side. Without it, an arm that is right on all of a few items would never be doubted, because no selection of
    /// them doubts it. Of clusters, it is that of Student's test.
    pub p: f64,
    /// The ends that the interval has if one more unit speaks wholly for either side. Few differing items bound a difference only so.
    #[serde(skip)]
    pub bounds: Interval,
    /// Whether the arm takes more tokens than the whole curve, so that it is compared with the curve's end.
    pub is_dearer: bool,
    /// The most samples that the arm's tokens would buy, whose majority the exact test compares with.
    pub samples: usize,
    /// The items on which the arm is right, and the majority of so many samples in their drawn order is wrong.
    pub better: u64,
    /// The items on which it is the other way round.
    pub worse: u64,
    /// The exact test of these two numbers.
    pub exact: PairedTest,
}

/// The effect of the talk of an arm, against the plain vote over its own blind drafts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TalkOfArm {
    /// The items that were right before any talk and in the end.
    pub kept: u64,
    /// The items that were right before any talk only.
    pub lost: u64,
    /// The items that are right in the end only.
    pub gained: u64,
    /// The items that were never right.
    pub missed: u64,
    /// The items on which a right draft was tied with another one, and that are right in the end.
    pub untied: u64,
    /// The items of such a tie that are not right in the end.
    pub untied_wrong: u64,
    /// The mean difference that the talk made, where chance breaks a tie of the drafts.
    pub difference: f64,
    /// The interval and the error of the difference.
    #[serde(flatten)]
    pub found: Resampled,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    /// The number of items, or of clusters of items, that were drawn again for the intervals.
    pub(super) units: usize,
    /// The curve of each bank that has one, by its place.
    pub(super) curves: BTreeMap<usize, Curve>,
    /// The comparison of each arm.
    pub(super) against: Vec<Against>,
    /// The talk of each arm whose agents can talk.
    pub(super) talks: Vec<Option<TalkOfArm>>,
}

/// The columns of the table of sums.
struct SumColumns {
    /// The columns of each curve: the majority of each number of samples.
    curves: BTreeMap<usize, Range<usize>>,
    /// The first column of the arms. Each has its tokens, whether it is right, and the difference that talk made.
    arms: usize,
    /// The column of the number of items.
    items: usize,
    /// The column of the items of the one unit more that speaks against every arm. It is in no other figure.
    doubt: usize,
}

/// The number of columns of a curve besides its majorities: its tokens, whether any sample is right, and the control.
const BESIDES: usize = 3;

/// The least p-value that the number of selections can tell.
const P_MIN: f64 = 1e-4;

/// The share by which a quotient of sums of tokens may be wrong: an arm that takes exactly K samples buys K of them.
const ROUNDING: f64 = 1e-9;

/// The number of columns of an arm.
const OF_ARM: usize = 3;

/// Compares all arms over these items, of which every arm and curve is known. Returns `None` without an item.
pub(super) fn compare(plan: &EvalPlan, items: &[&Item]) -> Option<Comparison> {
    if items.is_empty() {
        return None;
    }
    let columns = SumColumns::new(plan, items);
    let rows = columns.rows(plan, items);
    let sums = rows.sums();
    let found = rows.resample(plan.seed, |sums, figures| columns.figures(plan, sums, figures));
    let mut figures = Vec::new();
    columns.figures(plan, &sums, &mut figures);
    let units = rows.len() - 1;
    let is_clustered = plan.cluster.is_some();
    let figures = figures.into_iter().zip(found);
    let mut figures = figures.map(|(figure, found)| {
        (figure, if is_clustered { found.of_few_units(figure, units, items.len()) } else { found })
    });
    let mut curves = BTreeMap::new();
    for (bank, range) in &columns.curves {
        curves.insert(*bank, read_curve(plan, &sums, &columns, *bank, range, &mut figures));
    }
    let count = items.len() as f64;
    let mut against = Vec::new();
    let mut talks = Vec::new();
    for (at, arm) in plan.arms.iter().enumerate() {
        let ((difference, found), (talked, talk_found)) = (figures.next()?, figures.next()?);
        let ((_, low), (_, high)) = (figures.next()?, figures.next()?);
        // One more cluster that speaks wholly for the other side would outweigh any difference within clusters.
        let (p, bounds) = if is_clustered {
            // Clusters that all speak for one side are as sure as their signs at the most.
            let p =
                student_p(difference, found.error, units as f64 - 1.0).max(2.0 * 0.5_f64.powf(units as f64));
            (p, found.interval)
        } else {
            let bounds = Interval { low: low.interval.low, high: high.interval.high };
            (2.0 * low.below.min(high.above), bounds)
        };
        let p = p.clamp(P_MIN, 1.0);
        // Where no selection differs, an interval without width would say that no further item can.
        let found = if found.interval.low < found.interval.high {
            found
        } else {
            Resampled { interval: bounds, ..found }
        };
        let points = &curves[&arm.curve].points;
        let [tokens, right, _] = columns.arm(&sums, at);
        let bought = tokens / count / points.first().map_or(f64::NAN, |point| point.tokens);
        let samples = whole(bought, points.len()).max(1);
        let (better, worse) = count_differing(items, at, arm.curve, samples);
        against.push(Against {
            curve: right / count - difference,
            difference,
            found,
            p,
            bounds,
            is_dearer: bought > points.len() as f64 * (1.0 + ROUNDING),
            samples,
            better,
            worse,
            exact: PairedTest::new(better, worse),
        });
        talks.push(TalkOfArm::new(items, at, talked, talk_found));
    }
    Some(Comparison { units, curves, against, talks })
}

/// Returns the numbers of items on which only an arm is right, and only the majority of the first samples of a bank.
fn count_differing(items: &[&Item], arm: usize, bank: usize, samples: usize) -> (u64, u64) {
    let (mut better, mut worse) = (0, 0);
    for item in items {
        let is_right = item.arms[arm].as_ref().is_some_and(|arm| arm.is_right);
        let majority = item.banks[bank].as_ref().is_some_and(|bank| first_majority(&bank.samples, samples));
        better += u64::from(is_right && !majority);
        worse += u64::from(!is_right && majority);
    }
    (better, worse)
}

impl SumColumns {
    fn new(plan: &EvalPlan, items: &[&Item]) -> Self {
        let mut next = 0;
        let mut curves = BTreeMap::new();
        for (bank, _) in plan.banks.iter().enumerate().filter(|(_, bank)| bank.is_curve) {
            // An item with fewer samples than others would bend the curve, and other arms may need more of them than the curve has.
            let counts = items.iter().filter_map(|item| Some(item.banks[bank].as_ref()?.samples.len()));
            let samples = counts.min().unwrap_or_default().min(plan.samples as usize);
            curves.insert(bank, next..next + samples);
            next += samples + BESIDES;
        }
        Self {
            curves,
            arms: next,
            items: next + OF_ARM * plan.arms.len(),
            doubt: next + OF_ARM * plan.arms.len() + 1,
        }
    }

    /// Returns a row for each item, or for each cluster of items.
    fn rows(&self, plan: &EvalPlan, items: &[&Item]) -> UnitRows {
        let of_items = items.iter().map(|item| (item.cluster.as_deref(), self.row(plan, item)));
        let mut rows = UnitRows::of_items(self.doubt + 1, of_items);
        let mut doubt = vec![0.0; self.doubt + 1];
        doubt[self.doubt] = items.len() as f64 / rows.len() as f64;
        rows.push(&doubt);
        rows
    }

    fn row(&self, plan: &EvalPlan, item: &Item) -> Vec<f64> {
        let mut row = vec![0.0; self.doubt + 1];
        for (bank, range) in &self.curves {
            let Some(BankItem { samples, tokens, .. }) = &item.banks[*bank] else { continue };
            row[range.clone()].copy_from_slice(&majorities(&samples[..range.len()]));
            row[range.end] = *tokens;
            row[range.end + 1] = f64::from(samples[..range.len()].iter().any(|sample| sample.is_right));
            if range.len() > 1 {
                row[range.end + 2] = f64::from(samples[1].is_right) - f64::from(samples[0].is_right);
            }
        }
        for (at, arm) in item.arms.iter().enumerate().take(plan.arms.len()) {
            let Some(ArmItem { prompt, completion, is_right, blind, .. }) = arm else { continue };
            let of_arm = &mut row[self.arms + OF_ARM * at..];
            of_arm[0] = prompt.saturating_add(*completion) as f64;
            of_arm[1] = f64::from(*is_right);
            of_arm[2] = blind.map_or(0.0, |blind| of_arm[1] - blind.share());
        }
        row[self.items] = 1.0;
        row
    }

    /// Computes every figure from the sums of a selection of items. For each curve, these are its points, the share of items with any right
    /// sample, and the control. For each arm, they are its difference from the curve, the difference that talk made,
    /// and the first of these with the unit of doubt on either side.
    fn figures(&self, plan: &EvalPlan, sums: &[f64], figures: &mut Vec<f64>) {
        // A selection may have no item at all, where there are few.
        let items = sums[self.items].max(f64::MIN_POSITIVE);
        let (doubt, all) = (sums[self.doubt], sums[self.items] + sums[self.doubt]);
        for range in self.curves.values() {
            figures.extend(sums[range.clone()].iter().map(|sum| sum / items));
            figures.extend([sums[range.end + 1] / items, sums[range.end + 2] / items]);
        }
        for (at, arm) in plan.arms.iter().enumerate() {
            let [tokens, right, talked] = self.arm(sums, at);
            let range = &self.curves[&arm.curve];
            let curve = on_curve(&sums[range.clone()], tokens / sums[range.end]) / items;
            let difference = right / items - curve;
            let whole = difference * sums[self.items];
            figures.extend([difference, talked / items, (whole - doubt) / all, (whole + doubt) / all]);
        }
    }

    /// Returns the sums of an arm: its tokens, its right items, and the difference that talk made.
    fn arm(&self, sums: &[f64], at: usize) -> [f64; OF_ARM] {
        let from = self.arms + OF_ARM * at;
        [sums[from], sums[from + 1], sums[from + 2]]
    }
}

/// Returns the value of a curve at a number of samples that need not be whole: linear between two points, and the first or the last point
/// outside of them.
fn on_curve(points: &[f64], samples: f64) -> f64 {
    let below = whole(samples, points.len());
    match (below.checked_sub(1).and_then(|at| points.get(at)), points.get(below)) {
        (Some(low), Some(high)) => low + (high - low) * (samples - below as f64),
        (Some(point), None) | (None, Some(point)) => *point,
        (None, None) => 0.0,
    }
}

/// Returns the greatest whole number that is not above a number of samples, and at most `most`.
fn whole(samples: f64, most: usize) -> usize {
    (1..=most).filter(|whole| *whole as f64 <= samples * (1.0 + ROUNDING)).count()
}

fn read_curve(
    plan: &EvalPlan,
    sums: &[f64],
    columns: &SumColumns,
    bank: usize,
    range: &Range<usize>,
    figures: &mut impl Iterator<Item = (f64, Resampled)>,
) -> Curve {
    let tokens = sums[range.end] / sums[columns.items];
    let points = figures.by_ref().take(range.len()).zip(1_usize..);
    let points: Vec<CurvePoint> = points
        .map(|((right, found), samples)| CurvePoint {
            samples,
            tokens: tokens * samples as f64,
            right,
            interval: Interval { low: found.interval.low.max(0.0), high: found.interval.high.min(1.0) },
        })
        .collect();
    let any_right = figures.next().map_or(0.0, |(share, _)| share);
    let control = match figures.next() {
        Some((difference, found)) if range.len() > 1 => Some((difference, found.interval)),
        Some(_) | None => None,
    };
    Curve { model: plan.banks[bank].model.clone(), points, any_right, control }
}

impl TalkOfArm {
    /// Returns `None` for an arm whose agents cannot talk.
    fn new(items: &[&Item], arm: usize, difference: f64, found: Resampled) -> Option<Self> {
        let (kept, lost, gained, missed, untied, untied_wrong) = (0, 0, 0, 0, 0, 0);
        let mut talk = Self { kept, lost, gained, missed, untied, untied_wrong, difference, found };
        let mut can_talk = false;
        for item in items.iter().filter_map(|item| item.arms[arm].as_ref()) {
            let Some(before) = item.blind else { continue };
            can_talk = true;
            *match (before.is_right(), item.is_right) {
                (Some(true), true) => &mut talk.kept,
                (Some(true), false) => &mut talk.lost,
                (Some(false), true) => &mut talk.gained,
                (Some(false), false) => &mut talk.missed,
                (None, true) => &mut talk.untied,
                (None, false) => &mut talk.untied_wrong,
            } += 1;
        }
        if can_talk { Some(talk) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_is_interpolated_and_held_at_ends() {
        let points = [0.5, 0.6, 0.8];
        for (samples, value) in [
            (0.2, 0.5),
            (1.0, 0.5),
            (1.5, 0.55),
            (2.0, 0.6),
            (2.75, 0.75),
            (3.0, 0.8),
            (9.0, 0.8),
            (f64::NAN, 0.5),
        ] {
            assert!((on_curve(&points, samples) - value).abs() < 1e-12, "{samples}");
        }
        assert!(on_curve(&[], 2.0).abs() < 1e-12);
    }
}
