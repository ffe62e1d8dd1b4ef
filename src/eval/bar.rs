//! The bars that an evaluation must reach: a share that an arm must reach, and an earlier evaluation.
//!
//! The input is a summary, or the results of two evaluations of the same tasks. The output is the reason why a bar is missed, if it is. A
//! bar on a share is compared with the lower end of its interval, so that few items seldom pass by luck.

use std::collections::HashMap;

use super::error::EvalError;
use super::items::EvalResults;
use super::notes::points;
use super::plan::EvalPlan;
use super::summary::Summary;
use crate::batch::TaskLine;
use protocol::text::counted;
use statistics::{PairedTest, Resampled, UnitRows};

/// The accepted forms of a bar.
const FORM: &str = "write right=0.80, answered=0.90 or right-when-answered=0.95";

/// A share that the primary arm must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    measure: Measure,
    least: f64,
}

/// A bar, and whether it was reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JudgedBar {
    pub name: String,
    /// Whether it was reached.
    pub is_reached: bool,
    /// The comparison in words.
    pub words: String,
}

/// A measure with a bar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Measure {
    Right,
    Answered,
    RightWhenAnswered,
}

impl Bar {
    /// Parses a bar such as `right=0.80`.
    ///
    /// Returns the accepted form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, least) = text.split_once('=').ok_or(FORM)?;
        let measure = match name {
            "right" => Measure::Right,
            "answered" => Measure::Answered,
            "right-when-answered" => Measure::RightWhenAnswered,
            _ => return Err(FORM.to_owned()),
        };
        let least: f64 = least.parse().map_err(|_| FORM)?;
        if !(0.0..=1.0).contains(&least) {
            return Err(FORM.to_owned());
        }
        Ok(Self { measure, least })
    }

    /// Compares the primary arm of a summary with the bar.
    pub fn judge(self, summary: &Summary) -> JudgedBar {
        let arm = summary.arms.iter().find(|arm| arm.is_primary);
        let (name, share) = match self.measure {
            Measure::Right => ("right", arm.map(|arm| arm.right)),
            Measure::Answered => ("answered", arm.map(|arm| arm.answered)),
            Measure::RightWhenAnswered => ("right when answered", arm.map(|arm| arm.right_when_answered)),
        };
        let low = share.and_then(|share| share.interval).map_or(0.0, |interval| interval.low);
        let [found, least] = apart(low * 100.0, self.least * 100.0);
        JudgedBar {
            name: format!("{name} at least {least} %"),
            is_reached: low >= self.least,
            words: format!(
                "{}: {name} may be as low as {found} %, and the bar is {least} %",
                summary.primary
            ),
        }
    }
}

/// Returns two numbers in words, with as many digits as tell them apart.
fn apart(one: f64, other: f64) -> [String; 2] {
    for digits in 1..=6 {
        let written = [one, other].map(|number| format!("{number:.digits$}"));
        if written[0] != written[1] {
            return written;
        }
    }
    [one, other].map(|number| format!("{number:.1}"))
}

/// The comparison of an evaluation with an earlier one, item by item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SinceBaseline {
    /// The items that are the same in both.
    pub items: usize,
    /// The mean difference of the primary arms.
    pub difference: f64,
    /// The interval and the error of the difference.
    pub found: Resampled,
    /// The exact test over the items on which only one of the two is right.
    pub exact: PairedTest,
}

impl SinceBaseline {
    /// Compares the primary arms of two evaluations, each with its tasks and results, over the tasks that are the same.
    ///
    /// Returns [`EvalError::OtherData`] if no task that both have ended is the same.
    pub fn new(
        plan: &EvalPlan,
        tasks: &[TaskLine],
        results: &EvalResults,
        old_plan: &EvalPlan,
        old_tasks: &[TaskLine],
        old_results: &EvalResults,
    ) -> Result<Self, EvalError> {
        let before = grade_primary(old_plan, old_tasks, old_results);
        let before: HashMap<&str, GradedTask> =
            before.into_iter().map(|graded| (graded.task.id.as_str(), graded)).collect();
        let (mut better, mut worse, mut rows) = (0, 0, Vec::new());
        for now in grade_primary(plan, tasks, results) {
            let Some(was) = before.get(now.task.id.as_str()) else { continue };
            if was.task == now.task {
                better += u64::from(now.is_right && !was.is_right);
                worse += u64::from(!now.is_right && was.is_right);
                rows.push((now.cluster, vec![f64::from(now.is_right) - f64::from(was.is_right), 1.0]));
            }
        }
        let items = rows.len();
        let rows = UnitRows::of_items(2, rows.into_iter());
        let found = rows.resample(plan.seed, |sums, figures| figures.push(sums[0] / sums[1]));
        let Some(found) = found.first().copied() else {
            return Err(EvalError::OtherData { now: plan.data.clone(), before: old_plan.data.clone() });
        };
        let sums = rows.sums();
        let difference = sums[0] / sums[1];
        let is_clustered = plan.cluster.is_some();
        let found = if is_clustered { found.of_few_units(difference, rows.len(), items) } else { found };
        Ok(Self { items, difference, found, exact: PairedTest::new(better, worse) })
    }

    /// Returns true if the whole interval is below zero, and the exact test does not take that for chance.
    pub fn is_worse(&self) -> bool {
        self.found.interval.high < 0.0 && self.exact.p < 0.05
    }

    /// Returns the comparison of an arm with one of the baseline as a bar, which is reached unless the arm is worse.
    pub fn judge(&self, arm: &str, before: &str) -> JudgedBar {
        let other = if arm == before { String::new() } else { format!(" (there {before})") };
        let words = format!("{arm}: {}{other}", self.summary());
        JudgedBar { name: "not worse than the baseline".to_owned(), is_reached: !self.is_worse(), words }
    }

    /// Returns the comparison in words.
    pub fn summary(&self) -> String {
        let difference = points(self.difference, self.found.interval);
        format!("{difference} points since the baseline, over {}", counted(self.items, "task"))
    }
}

/// A task, with whether the primary arm is right.
struct GradedTask<'a> {
    task: &'a TaskLine,
    cluster: Option<&'a str>,
    is_right: bool,
}

/// Returns each task whose run of the primary arm has ended.
fn grade_primary<'a>(
    plan: &EvalPlan,
    tasks: &'a [TaskLine],
    results: &'a EvalResults,
) -> Vec<GradedTask<'a>> {
    let Some(at) = plan.arms.iter().position(|arm| arm.name == plan.primary) else { return Vec::new() };
    let mut graded = Vec::new();
    for (task, item) in tasks.iter().zip(&results.items) {
        if let Some(Some(arm)) = item.arms.get(at) {
            graded.push(GradedTask { task, cluster: item.cluster.as_deref(), is_right: arm.is_right });
        }
    }
    graded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bar that is missed by little says by how much.
    #[test]
    fn near_miss_shows_enough_digits() {
        assert_eq!(apart(86.2, 80.0), ["86.2", "80.0"]);
        assert_eq!(apart(86.202_380, 86.202_400), ["86.20238", "86.20240"]);
        assert_eq!(apart(80.0, 80.0), ["80.0", "80.0"]);
    }

    #[test]
    fn a_bar_names_a_measure_and_a_share() {
        assert_eq!(Bar::parse("right=0.8"), Ok(Bar { measure: Measure::Right, least: 0.8 }));
        for text in ["right", "right=80", "wrong=0.8", "right=x", "=0.8"] {
            assert!(Bar::parse(text).unwrap_err().contains("right=0.80"), "{text}");
        }
    }
}
