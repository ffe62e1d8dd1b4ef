//! The bars that an evaluation is held against: a share that an arm must reach, and an earlier evaluation.
//!
//! The input is a summary, or the results of two evaluations of the same tasks. The output is the reason why a bar is missed, if it is. A
//! bar on a share is held against the lower end of its interval, so that few items never pass by luck.

use std::collections::HashMap;

use super::error::EvalError;
use super::items::{ArmItem, EvalResults};
use super::notes::points;
use super::plan::EvalPlan;
use super::summary::{ArmSummary, ShareOf, Summary};
use crate::statistics::UnitRows;

/// A share that the primary arm must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    measure: Measure,
    least: f64,
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

    /// Returns why the primary arm of a summary misses the bar, if it does.
    #[must_use]
    pub fn missed(self, summary: &Summary) -> Option<String> {
        let arm = summary.arms.iter().find(|arm| arm.is_primary)?;
        let (name, of): (_, fn(&ArmSummary) -> &ShareOf) = match self.measure {
            Measure::Right => ("right", |arm| &arm.right),
            Measure::Answered => ("answered", |arm| &arm.answered),
            Measure::RightWhenAnswered => ("right when answered", |arm| &arm.right_when_answered),
        };
        let low = of(arm).interval.map_or(0.0, |interval| interval.low);
        (low < self.least).then(|| {
            format!(
                "{}: {name} may be as low as {:.1} %, and the bar is {:.1} %",
                arm.name,
                low * 100.0,
                self.least * 100.0
            )
        })
    }
}

/// Returns why the primary arm is worse than that of an earlier evaluation, if it is.
///
/// # Errors
///
/// Returns [`EvalError::OtherData`] if the two have no item in common.
pub fn worse_than(
    (plan, results): (&EvalPlan, &EvalResults),
    (old_plan, old): (&EvalPlan, &EvalResults),
) -> Result<Option<String>, EvalError> {
    plan.require_data_of(old_plan)?;
    let before: HashMap<&str, bool> = right(old_plan, old).collect();
    let share = |is_right: bool| f64::from(u8::from(is_right));
    let mut rows = UnitRows::new(2);
    for (id, is_right) in right(plan, results) {
        if let Some(was_right) = before.get(id) {
            rows.push(&[share(is_right) - share(*was_right), 1.0]);
        }
    }
    let mean = |sums: &[f64]| sums[0] / sums[1];
    let found = rows.resampled(plan.seed, |sums, figures| figures.push(mean(sums)));
    let Some(found) = found.first() else {
        return Err(EvalError::OtherData { now: plan.data.clone(), before: old_plan.data.clone() });
    };
    let told = || {
        let difference = points(mean(&rows.sums()), found.interval);
        format!("{} is worse than the baseline's {}: {difference} points", plan.primary, old_plan.primary)
    };
    Ok((found.interval.high < 0.0).then(told))
}

/// Returns whether the primary arm is right, for each item that it has ended.
fn right<'a>(plan: &EvalPlan, results: &'a EvalResults) -> impl Iterator<Item = (&'a str, bool)> {
    let at = plan.arms.iter().position(|arm| arm.name == plan.primary);
    let of_arm = move |arms: &[Option<ArmItem>]| Some(arms.get(at?)?.as_ref()?.is_right);
    results.items.iter().filter_map(move |item| Some((item.id.as_str(), of_arm(&item.arms)?)))
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
