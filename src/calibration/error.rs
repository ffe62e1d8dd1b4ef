//! The errors of calibrations.

use super::certified::NotCertifiable;
use crate::program::PROGRAM;
use protocol::core::ExitCode;
use protocol::text::percent;

/// A calibration that cannot be made or used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// The file has another format.
    #[error("it is no calibration: {0}")]
    Format(String),
    /// Another build of this program made the calibration, by its own rules and prompts.
    #[error(
        "it was written by `{0}`, and `{PROGRAM}` does not read it: calibrate again, or use the program that wrote it"
    )]
    OtherBuild(String),
    /// The file is of a version that this program does not know.
    #[error("it is of version {0} of the format, which this program does not know")]
    Version(u32),
    /// Too few runs have an answer.
    #[error(
        "{answered} of the runs have both an answer and a known right one, and a calibration needs at least {needed}; run more tasks with known answers"
    )]
    TooFew {
        /// The runs with an answer.
        answered: usize,
        /// The fewest that are needed.
        needed: usize,
    },
    /// Its runs have not all ended. Those that end first are the easy ones.
    #[error(
        "`{0}` is not complete, and the runs that end first are the easy ones; continue it with the command that began it"
    )]
    Incomplete(String),
    /// Its runs were made in several ways.
    #[error("the runs were made in different ways: {0}; run the tasks again in one way")]
    Mixed(String),
    /// Its runs have withheld answers by another calibration.
    #[error("the runs were made with --calibration, which may have withheld answers; use runs without it")]
    Withheld,
    /// A run is made in another way than those of the calibration.
    #[error("it does not fit this run: {0}")]
    OtherWay(String),
    /// No threshold holds a risk.
    #[error("a risk of {} is not certifiable: {why}", percent(*risk))]
    NotCertifiable { risk: f64, why: NotCertifiable },
}

impl CalibrationError {
    /// Returns the exit code of this error.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::Usage
    }
}
