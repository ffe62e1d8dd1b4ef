//! A calibration as it is applied to a run: its fit, and the threshold at a risk. It is in the run's first record, so that the end of
//! the run can be derived again without the file.
//!
//! The input is the end that the protocol reached, and its report. The output is the confidence in the answer, and the end of the run: the
//! same, or an abstention.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::features::Features;
use super::fit::Fit;
use crypto::Digest;
use protocol::core::BasisPoints;
use protocol::{Outcome, Report, Section};

/// A calibration that is applied to a run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedCalibration {
    pub on: CalibratedOn,
    pub fit: Fit,
    /// The highest share of wrong answers among those that are given, if answers are withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<f64>,
    /// The least confidence of an answer that is given, if answers are withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<BasisPoints>,
    /// Whether the run's question is one of those that the calibration was made of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_question: bool,
}

/// The calibration that a confidence comes from.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedOn {
    /// The number of its runs.
    pub runs: usize,
    /// The time at which it was made.
    pub made_at: String,
    /// The SHA-256 of its file.
    pub sha256: Digest,
}

/// The confidence in an answer: the share of right answers that the fit expects of such answers.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Confidence {
    pub value: BasisPoints,
    /// The class of the answer.
    pub class: String,
    pub calibrated_on: CalibratedOn,
}

impl AppliedCalibration {
    /// Returns the same calibration, under which an answer is withheld that is less sure than this. A risk is certified for its own
    /// threshold alone, so a higher one promises none.
    pub fn at_least(self, confidence: BasisPoints) -> Self {
        if self.threshold.is_some_and(|threshold| threshold >= confidence) {
            return self;
        }
        Self { threshold: Some(confidence), risk: None, ..self }
    }

    /// Returns the digest of everything that decides about an answer. A calibration that is made again from the same runs has the same.
    pub fn rule_sha256(&self) -> Digest {
        Digest::new(json!([self.fit, self.risk, self.threshold]).to_string().as_bytes())
    }

    /// Returns the confidence in the answer of a run that its protocol ended so; `None` without an answer, and for one of a class that the
    /// calibration does not know.
    pub fn confidence(&self, end: &Outcome, report: &Report<Section>) -> Option<Confidence> {
        let features = Features::new(end, report)?;
        let value = self.fit.value(&features)?;
        Some(Confidence { value, class: features.class, calibrated_on: self.on.clone() })
    }

    /// Returns the end of a run that its protocol ended so, with this confidence in the answer. An answer that is less sure than the
    /// threshold is withheld.
    pub fn judge(&self, end: Outcome, confidence: Option<&Confidence>) -> Outcome {
        let (Outcome::Agreed { .. }, Some(threshold)) = (&end, self.threshold) else { return end };
        let confidence = confidence.map(|confidence| confidence.value);
        if confidence.is_some_and(|value| value >= threshold) {
            return end;
        }
        Outcome::Abstained { confidence, threshold }
    }
}
