//! The bars that an evaluation must reach: a share that an arm must reach, and an earlier evaluation.
//!
//! The input is a summary, or the results of two evaluations of the same tasks. The output is the reason why a bar is missed, if it is. A
//! bar on a share is compared with the lower end of its interval, so that few items never pass by luck.

use std::collections::HashMap;

use super::error::EvalError;
use super::items::{ArmItem, EvalResults};
use super::notes::points;
use super::plan::EvalPlan;
use super::summary::{ArmSummary, ShareOf, Summary};
use crate::batch::TaskLine;
use crate::statistics::{PairedTest, Resampled, UnitRows};
use crate::text::counted;

/// A share that the primary arm must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    measure: Measure,
    least: f64,
}

/// A bar, and whether it was reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JudgedBar {
    /// The bar.
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
    /// # Errors
    ///
    /// Returns the accepted form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = || "write right=0.80, answered=0.90 or right-when-answered=0.95".to_owned();
        let (name, least) = text.split_once('=').ok_or_else(form)?;
        let measure = match name {
            "right" => Measure::Right,
            "answered" => Measure::Answered,
            "right-when-answered" => Measure::RightWhenAnswered,
            _ => return Err(form()),
        };
        let least = least.parse().ok().filter(|least| (0.0..=1.0).contains(least)).ok_or_else(form)?;
        Ok(Self { measure, least })
    }

    /// Holds the primary arm of a summary against the bar.
    #[must_use]
    pub fn judge(self, summary: &Summary) -> JudgedBar {
        let arm = summary.arms.iter().find(|arm| arm.is_primary);
        let (name, of): (_, fn(&ArmSummary) -> &ShareOf) = match self.measure {
            Measure::Right => ("right", |arm| &arm.right),
            Measure::Answered => ("answered", |arm| &arm.answered),
            Measure::RightWhenAnswered => ("right when answered", |arm| &arm.right_when_answered),
        };
        let low = arm.and_then(|arm| of(arm).interval).map_or(0.0, |interval| interval.low);
        let words = format!(
            "{}: {name} may be as low as {:.1} %, and the bar is {:.1} %",
            summary.primary,
            low * 100.0,
            self.least * 100.0
        );
        JudgedBar {
            name: format!("{name} at least {:.1} %", self.least * 100.0),
            is_reached: low >= self.least,
            words,
        }
    }
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
    /// # Errors
    ///
    /// Returns [`EvalError::OtherData`] if no task that both have ended is the same.
    pub fn new(
        (plan, tasks, results): (&EvalPlan, &[TaskLine], &EvalResults),
        (old_plan, old_tasks, old): (&EvalPlan, &[TaskLine], &EvalResults),
    ) -> Result<Self, EvalError> {
        let before: HashMap<&str, (&TaskLine, bool)> = right(old_plan, old_tasks, old)
            .map(|(task, is_right)| (task.id.as_str(), (task, is_right)))
            .collect();
        let share = |is_right: bool| f64::from(is_right);
        let mut rows = UnitRows::new(2);
        let (mut better, mut worse) = (0, 0);
        for (task, is_right) in right(plan, tasks, results) {
            let known = before.get(task.id.as_str()).filter(|(known, _)| *known == task);
            if let Some((_, was_right)) = known {
                rows.push(&[share(is_right) - share(*was_right), 1.0]);
                better += u64::from(is_right && !was_right);
                worse += u64::from(!is_right && *was_right);
            }
        }
        let mean = |sums: &[f64]| sums[0] / sums[1];
        let found = rows.resampled(plan.seed, |sums, figures| figures.push(mean(sums)));
        let other = || EvalError::OtherData { now: plan.data.clone(), before: old_plan.data.clone() };
        let found = *found.first().ok_or_else(other)?;
        let exact = PairedTest::new(better, worse);
        Ok(Self { items: rows.len(), difference: mean(&rows.sums()), found, exact })
    }

    /// Returns true if the whole interval is below zero, and the exact test does not take that for chance.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.found.interval.high < 0.0 && self.exact.p < 0.05
    }

    /// Returns the comparison of an arm with one of the baseline as a bar, which is reached unless the arm is worse.
    #[must_use]
    pub fn judge(&self, arm: &str, before: &str) -> JudgedBar {
        let other = if arm == before { String::new() } else { format!(" (there {before})") };
        let words = format!("{arm}: {}{other}", self.in_words());
        JudgedBar { name: "not worse than the baseline".to_owned(), is_reached: !self.is_worse(), words }
    }

    /// Returns the comparison in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let difference = points(self.difference, self.found.interval);
        format!("{difference} points since the baseline, over {}", counted(self.items, "task"))
    }
}

/// Returns whether the primary arm is right, for each task whose run has ended.
fn right<'a>(
    plan: &EvalPlan,
    tasks: &'a [TaskLine],
    results: &'a EvalResults,
) -> impl Iterator<Item = (&'a TaskLine, bool)> {
    let at = plan.arms.iter().position(|arm| arm.name == plan.primary);
    let of_arm = move |arms: &[Option<ArmItem>]| Some(arms.get(at?)?.as_ref()?.is_right);
    tasks.iter().zip(&results.items).filter_map(move |(task, item)| Some((task, of_arm(&item.arms)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_names_a_measure_and_a_share() {
        assert_eq!(Bar::parse("right=0.8"), Ok(Bar { measure: Measure::Right, least: 0.8 }));
        for text in ["right", "right=80", "wrong=0.8", "right=x", "=0.8"] {
            assert!(Bar::parse(text).unwrap_err().contains("right=0.80"), "{text}");
        }
    }
}
