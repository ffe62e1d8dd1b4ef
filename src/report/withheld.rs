//! An answer that is withheld, and the confidence in an answer, in words.

use crate::calibration::Confidence;
use protocol::core::BasisPoints;
use protocol::text::{counted, percent};

/// Returns in words why an answer with this confidence is withheld.
pub(super) fn withheld(confidence: Option<BasisPoints>, threshold: BasisPoints) -> String {
    let least = percent(threshold.value());
    match confidence {
        Some(value) => format!(
            "the confidence in the answer is {}, and only {least} and more is given",
            percent(value.value())
        ),
        None => format!(
            "the calibration has seen no such answer or not this model, and only a confidence of {least} and more is given"
        ),
    }
}

/// Returns the confidence in an answer, and the calibration that it comes from.
pub fn confidence_in_words(confidence: &Confidence) -> String {
    let Confidence { value, calibrated_on: on, .. } = confidence;
    let value = percent(value.value());
    format!("confidence {value}, by the calibration of {} on {}", on.made_at, counted(on.runs, "run"))
}
