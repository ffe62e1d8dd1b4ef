//! The fit of a calibration: the confidence in an answer, from its features.
//!
//! The input is features, each with whether the answer was right. The output is the share of right answers in the class of an answer or,
//! from enough of them, a logistic regression on all features. A class that the fit has not seen has no confidence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::features::Features;
use protocol::core::BasisPoints;
use statistics::{logistic_fit, logistic_value};

/// The number of answers of a fit from which all features are used.
const LOGISTIC_MIN: usize = 100;

/// The numbers of an answer besides those of its class.
const NUMBERS: usize = 6;

/// The greatest difference between weights that two machines compute, as a share of the weight.
const WEIGHT_ERROR: f64 = 1e-9;

/// The scale of counts: a vote draws so many samples at most in its usual ways.
const SAMPLES: f64 = 16.0;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "method", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fit {
    /// The share of right answers in each class, with one right and one wrong answer more (Laplace).
    Bins {
        /// The numbers of answers by class.
        classes: BTreeMap<String, ClassCount>,
    },
    /// A logistic regression, with one right and one wrong answer more, whose numbers are the means of all.
    Logistic {
        /// The classes, in the order of their weights; the first one has none.
        classes: Vec<String>,
        /// The weights, in the order of the numbers: 1, the share of drafts that are the answer, the drafts in sixteenths, the
        /// different answers in sixteenths, and half of the methods that found the answer. The last ones are of a program among
        /// these, and of each class but the first.
        weights: Vec<f64>,
    },
}

/// The fitted answers of a class.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClassCount {
    /// The right ones.
    pub right: u32,
    /// All of them.
    pub all: u32,
}

impl ClassCount {
    /// Returns the confidence in an answer of the class.
    fn value(self) -> Option<BasisPoints> {
        BasisPoints::new((f64::from(self.right) + 1.0) / (f64::from(self.all) + 2.0))
    }
}

impl Fit {
    /// Fits answers, each with its features and whether it is right.
    pub(super) fn new(answers: &[(&Features, bool)]) -> Self {
        let mut classes: BTreeMap<&str, ClassCount> = BTreeMap::new();
        for (features, is_right) in answers {
            let count = classes.entry(&features.class).or_default();
            count.right += u32::from(*is_right);
            count.all += 1;
        }
        if answers.len() < LOGISTIC_MIN {
            let classes = classes.into_iter().map(|(class, count)| (class.to_owned(), count));
            return Self::Bins { classes: classes.collect() };
        }
        let classes: Vec<String> = classes.into_keys().map(str::to_owned).collect();
        let mut rows: Vec<(Vec<f64>, bool)> = Vec::new();
        for (features, is_right) in answers {
            rows.extend(row(&classes, features).map(|row| (row, *is_right)));
        }
        // One right and one wrong answer more, as in the shares: without them, answers that are all right would make it certain.
        let mean = mean(&rows);
        rows.extend([(mean.clone(), true), (mean, false)]);
        Self::Logistic { weights: logistic_fit(&rows), classes }
    }

    /// Returns what is impossible about a fit in a file, of so many answers and right ones, if anything is.
    pub(super) fn fault(&self, fitted: usize, right: usize) -> Option<&'static str> {
        match self {
            Self::Bins { classes } => {
                let (mut all_of_classes, mut right_of_classes) = (0_u64, 0_u64);
                for count in classes.values() {
                    all_of_classes += u64::from(count.all);
                    right_of_classes += u64::from(count.right);
                }
                let is_possible = classes.values().all(|count| count.right <= count.all && count.all > 0);
                let is_sum = (all_of_classes, right_of_classes) == (fitted as u64, right as u64);
                if !is_possible || !is_sum || fitted >= LOGISTIC_MIN {
                    return Some("its classes contradict its numbers of runs");
                }
            }
            Self::Logistic { classes, weights } => {
                let is_sorted = classes.is_sorted_by(|one, next| one < next);
                let has_all = !classes.is_empty() && weights.len() == NUMBERS + classes.len() - 1;
                let is_possible = is_sorted && has_all && weights.iter().all(|weight| weight.is_finite());
                if !is_possible || fitted < LOGISTIC_MIN {
                    return Some("its weights do not fit its classes");
                }
            }
        }
        None
    }

    /// Returns whether some answer can have this confidence.
    pub(super) fn can_give(&self, value: BasisPoints) -> bool {
        match self {
            Self::Bins { classes } => classes.values().any(|count| count.value() == Some(value)),
            Self::Logistic { .. } => true,
        }
    }

    /// Returns whether two fits are the same, but for the last digits of weights, which may differ between machines.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Logistic { classes, weights }, Self::Logistic { classes: others, weights: other }) => {
                let mut pairs = weights.iter().zip(other);
                classes == others
                    && weights.len() == other.len()
                    && pairs.all(|(one, other)| (one - other).abs() <= WEIGHT_ERROR * one.abs().max(1.0))
            }
            (Self::Bins { .. } | Self::Logistic { .. }, _) => self == other,
        }
    }

    /// Returns the confidence in an answer with these features, rounded down to ten-thousandths; `None` for a class without a fit.
    pub fn value(&self, features: &Features) -> Option<BasisPoints> {
        match self {
            Self::Bins { classes } => classes.get(&features.class)?.value(),
            Self::Logistic { classes, weights } => {
                BasisPoints::new(logistic_value(weights, &row(classes, features)?))
            }
        }
    }
}

/// Returns the mean of rows of one length.
fn mean(rows: &[(Vec<f64>, bool)]) -> Vec<f64> {
    let mut mean = vec![0.0; rows.first().map_or(0, |(row, _)| row.len())];
    for (row, _) in rows {
        mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value / rows.len() as f64);
    }
    mean
}

/// Returns the numbers of an answer, or `None` if its class is not among these.
fn row(classes: &[String], features: &Features) -> Option<Vec<f64>> {
    let class = classes.iter().position(|class| *class == features.class)?;
    let Features { support, drafts, clusters, methods, has_program, .. } = features;
    let mut row = vec![
        1.0,
        f64::from(*support) / f64::from((*drafts).max(1)),
        f64::from(*drafts) / SAMPLES,
        f64::from(*clusters) / SAMPLES,
        f64::from(*methods) / 2.0,
        f64::from(u8::from(*has_program)),
    ];
    row.extend((1..classes.len()).map(|at| f64::from(u8::from(at == class))));
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(class: &str, support: u32, drafts: u32) -> Features {
        let class = class.to_owned();
        Features { class, support, drafts, clusters: drafts - support + 1, methods: 1, has_program: false }
    }

    #[test]
    fn few_answers_are_fitted_by_class() {
        let (sure, unsure) = (features("A", 4, 4), features("D", 2, 8));
        let mut answers = vec![(&sure, true); 8];
        answers.extend([(&unsure, true), (&unsure, false)]);
        let fit = Fit::new(&answers);
        let value = |features: &Features| fit.value(features).map(BasisPoints::value);
        assert_eq!((value(&sure), value(&unsure)), (Some(0.9), Some(0.5)));
        assert_eq!(value(&features("C", 4, 4)), None, "no such class was seen");
    }

    #[test]
    fn many_answers_are_fitted_by_all_features() {
        let clear: Vec<Features> = (0..60).map(|item| features("A", 6 + item % 3, 8)).collect();
        let split: Vec<Features> = (0..60).map(|item| features("D", 2 + item % 3, 8)).collect();
        let of_clear = clear.iter().enumerate().map(|(at, features)| (features, at % 20 != 0));
        let of_split = split.iter().enumerate().map(|(at, features)| (features, at % 3 == 2));
        let answers: Vec<(&Features, bool)> = of_clear.chain(of_split).collect();
        let fit = Fit::new(&answers);
        let value = |class, support| fit.value(&features(class, support, 8)).map(BasisPoints::value);
        assert!(value("A", 8) > value("A", 6) && value("A", 6) > value("D", 4), "{fit:?}");
        assert!(value("A", 8).is_some_and(|value| value > 0.9), "{fit:?}");
        assert_eq!(fit.value(&features("B", 2, 2)), None, "no such class was seen");
        let all_right: Vec<(&Features, bool)> =
            clear.iter().chain(&clear).map(|features| (features, true)).collect();
        let value = Fit::new(&all_right).value(&clear[0]).unwrap().value();
        assert!((0.98..0.995).contains(&value), "120 right answers make no certainty: {value}");
    }
}
