//! The counts of a calibration, and whether they can be those of one set of runs.
//!
//! The input is the numbers and the steps that a file states. The output is whether they contradict each other. Each count follows from the
//! others or is bounded by them, so that none can be changed alone. Nothing is read here.

use serde::{Deserialize, Serialize};

use super::certified::RiskStep;
use super::fit::Fit;
use crypto::Digest;

/// The fewest answers of a calibration.
pub const ANSWERS_MIN: usize = 20;

/// The greatest difference between an expected number of errors and the same number with four digits.
const EXPECTED_ERROR: f64 = 1e-4;

/// The runs of a calibration.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ItemsNote {
    /// The digest of all tasks with their roleset and parameters.
    pub sha256: Digest,
    /// The number of runs, one of each task.
    pub runs: usize,
    /// The runs with an answer.
    pub answered: usize,
    /// The runs with the right answer.
    pub right: usize,
    /// The answers that were fitted.
    pub fitted: usize,
    /// The right ones of them.
    pub fitted_right: usize,
    /// The runs of the half that certifies, with or without an answer.
    pub certifying: usize,
}

impl ItemsNote {
    /// Returns whether no part is greater than its whole.
    pub(super) fn are_possible(&self) -> bool {
        let Self { runs, answered, right, fitted, fitted_right, certifying, .. } = *self;
        right <= answered
            && answered <= runs
            && fitted <= answered
            && fitted_right <= fitted
            && certifying <= runs
    }

    /// Returns whether the runs are divided as a calibration divides them: every second one certifies, and all others are fitted.
    pub(super) fn are_halves(&self) -> bool {
        let Self { runs, answered, fitted, certifying, .. } = *self;
        certifying == runs / 2
            && fitted <= runs - certifying
            && answered - fitted <= certifying
            && answered >= ANSWERS_MIN
    }
}

/// Returns whether these can be the steps of a calibration with this fit.
pub(super) fn are_possible(steps: &[RiskStep], fit: &Fit) -> bool {
    let is_sorted = steps.is_sorted_by(|one, next| {
        one.from > next.from && one.answered < next.answered && one.errors <= next.errors
    });
    let (mut answered, mut expected) = (0, 0.0);
    is_sorted
        && steps.iter().all(|step| {
            // All answers of a step have its confidence.
            expected += f64::from(step.answered - answered) * (1.0 - step.from.value());
            answered = step.answered;
            let is_expected = (step.expected - expected).abs() <= EXPECTED_ERROR;
            step.errors <= step.answered && is_expected && fit.can_give(step.from)
        })
}
