//! The executions of a run: the user's check of a text, and programs of agents.

use std::collections::BTreeMap;

use crate::journal::Executed;
use crypto::Digest;
use protocol::Execution;

/// The executions of a run.
#[derive(Debug, Default)]
pub(super) struct ExecutionList {
    pub(super) owed: BTreeMap<Digest, Execution>,
    pub(super) made: Vec<(Execution, Executed)>,
}

impl ExecutionList {
    pub(super) fn owe(&mut self, execution: Execution) {
        self.owed.insert(execution.key(), execution);
    }
}
