//! The executions in the state of a run.
//!
//! Those that were made are kept, so that `verify` can make them again. Nothing is executed here.

use super::mismatch::Mismatch;
use super::run_state::RunState;
use crate::journal::{Executed, Executor};
use crypto::Digest;
use protocol::text::redact;
use protocol::{DegradedKind, Event, Execution, OUTPUT_BYTES_MAX, Protocol as _, TAIL_BYTES_MAX, Unexpected};

impl RunState {
    /// Takes the record of an execution.
    pub(super) fn take_executed(&mut self, executed: &Executed) -> Result<(), Mismatch> {
        let Executed { key, by, result, no_sandbox, .. } = executed;
        let execution = self.executions_owed.remove(key).ok_or(Unexpected::NotExecuted(*key))?;
        let is_its = match (&execution, by) {
            (Execution::Check { .. }, Executor::Command(sha256)) => self.check_sha256() == Some(*sha256),
            (Execution::Program { .. } | Execution::Trial { .. }, Executor::Interpreter(_)) => true,
            (Execution::Check { .. } | Execution::Program { .. } | Execution::Trial { .. }, _) => false,
        };
        let is_too_long = result.output.len() > OUTPUT_BYTES_MAX || result.tail.len() > TAIL_BYTES_MAX;
        if !is_its || is_too_long {
            return Err(Mismatch::Execution(*key));
        }
        if *no_sandbox {
            let what = match execution {
                Execution::Check { .. } => "the check",
                Execution::Program { .. } | Execution::Trial { .. } => "a program",
            };
            self.degrade(DegradedKind::NoSandbox, format!("{what} ran without a sandbox"));
        }
        if self.opened.redacted {
            for text in [&result.output, &result.tail] {
                self.tokens.extend(redact::tokens(text).map(str::to_owned));
            }
        }
        let actions = self.machine.step(&Event::Executed { key: *key, result: result.clone() })?;
        self.executions_made.push((execution, executed.clone()));
        self.take_actions(actions);
        Ok(())
    }

    /// Returns the executions that are owed.
    pub fn to_execute(&self) -> impl Iterator<Item = &Execution> {
        self.executions_owed.values()
    }

    /// Returns the executions that were made, in the order of their records.
    pub fn executions_made(&self) -> &[(Execution, Executed)] {
        &self.executions_made
    }

    /// Returns true if the run may have to execute something.
    pub fn executes(&self) -> bool {
        self.opened.setup.executes()
    }

    /// Returns the SHA-256 of the user's check, if there is one.
    pub fn check_sha256(&self) -> Option<Digest> {
        let check = self.opened.setup.check_command.as_ref()?;
        Some(Digest::new(check.command.as_bytes()))
    }
}
