//! The results of executions, as a machine looks them up while it judges a reply.
//!
//! The input is the results that events have brought. The output is whether a text passes. A result that is not known yet is noted as
//! missing, and the judgement that needs it counts for nothing. The wrapper around the machine throws the consequences away, has the
//! execution made, and lets the machine judge the reply again. So a protocol asks for a result where it needs it, and has no state for the
//! waiting.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::execution::{Execution, ExecutionResult};
use super::setup::Setup;
use crate::text::{FailedCheck, Violation};
use crypto::Digest;

/// The results that a machine knows, and the first one that it misses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executions {
    /// Whether the user has a check of final texts.
    has_check: bool,
    /// Whether programs are run.
    runs_programs: bool,
    known: BTreeMap<Digest, ExecutionResult>,
    missing: RefCell<Option<Execution>>,
}

impl Executions {
    /// Begins without a result.
    pub(crate) fn new<P>(setup: &Setup<P>) -> Self {
        Self {
            has_check: setup.check_command.is_some(),
            runs_programs: setup.runs_programs(),
            ..Self::default()
        }
    }

    /// Checks a final text by the user's command, if there is one.
    pub(crate) fn check(&self, text: &str) -> Result<(), Violation> {
        if !self.has_check {
            return Ok(());
        }
        match self.result(Execution::Check { text: text.to_owned() }) {
            Some(ExecutionResult { end, output, tail, .. }) if !end.is_success() => {
                Err(Violation::Check(FailedCheck::new(*end, output, tail)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the result of a program, or `None` if it must be run first.
    pub(crate) fn program(&self, source: &str) -> Option<&ExecutionResult> {
        self.result(Execution::Program { source: source.to_owned() })
    }

    /// Returns the result of a trial, or `None` if it must be made first.
    pub(crate) fn trial(&self, source: String) -> Option<&ExecutionResult> {
        self.result(Execution::Trial { source })
    }

    fn result(&self, execution: Execution) -> Option<&ExecutionResult> {
        let known = self.known.get(&execution.key());
        if known.is_none() {
            self.missing.borrow_mut().get_or_insert(execution);
        }
        known
    }

    /// Returns false if no reply of the run can need an execution.
    pub(crate) fn are_possible(&self) -> bool {
        self.has_check || self.runs_programs
    }

    /// Takes note of a result.
    pub(crate) fn learn(&mut self, key: Digest, result: ExecutionResult) {
        self.known.insert(key, result);
    }

    /// Returns the execution whose result was missing, and forgets it.
    pub(crate) fn take_missing(&mut self) -> Option<Execution> {
        self.missing.take()
    }
}
