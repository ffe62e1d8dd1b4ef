//! Reports of a decision for people, while it is made. The caller decides where they go.

use std::path::Path;

use crate::engine::Observer;
use crate::report::RunResult;
use crate::run::Notices;
use protocol::core::Endpoint;
use quorum::{Sequence, Value};

/// A receiver of the reports of decisions.
pub trait ApprovalWatcher: Notices {
    /// Makes an observer of one review, which is dropped when the review has ended.
    fn review_observer(&self) -> Box<dyn Observer + '_>;

    /// Reports the end of a review, with its folder and the endpoints of its models.
    fn reviewed(&self, result: &RunResult, dir: &Path, endpoints: &[Endpoint]);

    /// Reports the value that a reviewer in a process of its own has learned to be decided at this place; `None` if its proof
    /// does not hold.
    ///
    /// # Errors
    ///
    /// Any error in writing the report, which ends the reviewer.
    fn decided(&self, sequence: Sequence, value: Option<Value>) -> std::io::Result<()>;
}
