//! The calibration that a person names for a run.
//!
//! The file is read once. A run that is made in another way than those of the calibration is refused.

use std::path::PathBuf;

use super::error::RunError;
use crate::calibration::{AppliedCalibration, Calibration, KnownParts, question_of};
use crate::files::{LARGE_BYTES_MAX, read_text};
use crate::journal::Limits;
use crypto::Digest;
use protocol::RunSetup;
use protocol::core::Endpoint;

#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationRequest {
    pub path: PathBuf,
    /// The highest share of wrong answers, if answers are to be withheld.
    pub risk: Option<f64>,
}

/// A calibration that was read from its file.
#[derive(Clone, Debug)]
pub struct ReadCalibration {
    path: PathBuf,
    calibration: Calibration,
    applied: AppliedCalibration,
}

impl CalibrationRequest {
    /// Reads the calibration.
    ///
    /// Returns [`RunError::Usage`] if the file cannot be read, and [`RunError::Calibration`] if it is no calibration or cannot hold the
    /// risk.
    pub fn read(&self) -> Result<ReadCalibration, RunError> {
        let path = self.path.clone();
        let text = read_text(&path, LARGE_BYTES_MAX).map_err(|why| {
            RunError::Usage(format!("the calibration `{}` cannot be read: {why}", path.display()))
        })?;
        let parsed = Calibration::parse(&text).and_then(|calibration| {
            let applied = calibration.apply(Digest::new(text.as_bytes()), self.risk)?;
            Ok((calibration, applied))
        });
        match parsed {
            Ok((calibration, applied)) => Ok(ReadCalibration { path, calibration, applied }),
            Err(why) => Err(RunError::Calibration { path, why }),
        }
    }
}

impl ReadCalibration {
    /// Returns the calibration for a run with this setup, on models at these endpoints.
    ///
    /// Returns [`RunError::Calibration`] if it is of another way of making runs.
    pub fn of_run(
        &self,
        setup: &RunSetup,
        endpoints: &[Endpoint],
        limits: Limits,
    ) -> Result<AppliedCalibration, RunError> {
        self.require(setup, endpoints, limits, KnownParts::All)?;
        let has_question = self.calibration.has_question(question_of(setup));
        Ok(AppliedCalibration { has_question, ..self.applied.clone() })
    }

    /// Refuses runs that are made in another way, as far as that is known.
    pub fn require(
        &self,
        setup: &RunSetup,
        endpoints: &[Endpoint],
        limits: Limits,
        known: KnownParts,
    ) -> Result<(), RunError> {
        let limits = limits.on_resources();
        self.calibration
            .require(setup, endpoints, limits, known)
            .map_err(|why| RunError::Calibration { path: self.path.clone(), why })
    }

    /// Returns the digest of everything that decides about an answer.
    pub fn rule_sha256(&self) -> Digest {
        self.applied.rule_sha256()
    }
}
