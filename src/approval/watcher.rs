//! The story of a decision while it is made, told to people; the caller decides where that goes.

use std::path::Path;

use crate::bft::{Sequence, Value};
use crate::core::Endpoint;
use crate::engine::Observer;
use crate::report::RunResult;
use crate::run::Notices;

/// Where the story of decisions goes.
pub trait ApprovalWatcher: Notices {
    /// Makes an onlooker of one review; it is dropped when the review has ended.
    fn review_observer(&self) -> Box<dyn Observer + '_>;

    /// Takes how a review has ended, with its folder and where its models were called.
    fn reviewed(&self, result: &RunResult, dir: &Path, endpoints: &[Endpoint]);

    /// Takes the value that a reviewer in a process of its own has learned to be decided at this place; none, if the proof
    /// of it does not hold.
    ///
    /// # Errors
    ///
    /// Any error in writing it, which ends the reviewer.
    fn decided(&self, sequence: Sequence, value: Option<Value>) -> std::io::Result<()>;
}
