//! Confidence in an answer, from runs whose right answers are known; and answers that are withheld where it is too low.
//!
//! ```text
//!  runs with known answers ──► features of the blind drafts ─┬─ one half ──► a fit: features to confidence
//!                                                            └─ the other ─► steps: errors among the surest answers
//!                                                                               │  a risk
//!  the end of a run ──► its features ──► confidence ── below the threshold? ◄───┴─► the answer is withheld
//! ```
//!
//! The input is how runs ended, and whether each was right. The output is a calibration, which is kept in a file, and the confidence that
//! it gives to the answer of a later run of the same kind. Only blind drafts and the protocol's own end are looked at, and never a number
//! that a model says about itself.
//!
//! Nothing here reads a file, a clock or a journal, and nothing is drawn by chance.

mod applied;
mod certified;
mod counts;
mod error;
mod features;
mod file;
mod fit;
mod way;

pub use applied::{AppliedCalibration, CalibratedOn, Confidence};
pub use certified::{DOUBT, NotCertifiable, RiskStep, items_without_error, threshold};
pub use counts::{ANSWERS_MIN, ItemsNote};
pub use error::CalibrationError;
pub use features::Features;
pub use file::{Calibration, KnownRun, question_of};
pub use fit::{ClassCount, Fit};
pub use way::{CalibratedWay, KnownParts, RunLimits};
