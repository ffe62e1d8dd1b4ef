//! The calibration that a person names for a run.
//!
//! The input is the path of a calibration's file, and a risk. The output is the calibration as it is applied to a run, or the refusal of a
//! run that is made in another way. The file is read once.

use std::path::PathBuf;

use super::error::RunError;
use crate::calibration::{AppliedCalibration, Calibration, CalibrationError, KnownParts, question_of};
use crate::files::{LARGE_BYTES_MAX, read_text};
use crate::journal::Limits;
use crypto::Digest;
use protocol::RunSetup;
use protocol::core::Endpoint;

/// A person's choice of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationRequest {
    /// The file.
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
    /// # Errors
    ///
    /// Returns [`RunError::Usage`] if the file cannot be read, and [`RunError::Calibration`] if it is no calibration or cannot hold the risk.
    pub fn read(&self) -> Result<ReadCalibration, RunError> {
        let shown = || self.path.display();
        let unread = |why: std::io::Error| {
            RunError::Usage(format!("the calibration `{}` cannot be read: {why}", shown()))
        };
        let text = read_text(&self.path, LARGE_BYTES_MAX).map_err(unread)?;
        let wrong = |why| RunError::Calibration { path: self.path.clone(), why };
        let calibration = Calibration::parse(&text).map_err(wrong)?;
        let applied = calibration.applied(Digest::new(text.as_bytes()), self.risk).map_err(wrong)?;
        Ok(ReadCalibration { path: self.path.clone(), calibration, applied })
    }
}

impl ReadCalibration {
    /// Returns the calibration for a run with this setup, on models at these endpoints.
    ///
    /// # Errors
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
        self.calibration.require(setup, endpoints, limits, known).map_err(|why| self.refused(why))
    }

    /// Returns the digest of everything that decides about an answer.
    pub fn rule_sha256(&self) -> Digest {
        self.applied.rule_sha256()
    }

    fn refused(&self, why: CalibrationError) -> RunError {
        RunError::Calibration { path: self.path.clone(), why }
    }
}
