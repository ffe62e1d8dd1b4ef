//! Running the checks and the programs of a finished run again, to compare their results with the record.
//!
//! The record is not changed.

use std::path::Path;

use super::check::require_known_check;
use super::error::RunError;
use super::redaction::load_table;
use crate::engine::{Order, RunState, execute};
use crate::journal::{Executed, Executor};
use crate::sandbox::{Sandbox, embedded_interpreter};
use protocol::Execution;
use protocol::core::CommandEnd;
use protocol::text::print_the_same;

/// The executions that are made again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExecutionKind {
    /// The programs that the interpreter in this program ran. Their values are the same on every machine, to 12 digits.
    Programs,
    /// The programs that another interpreter ran. Only the same version gives the same results.
    OtherPrograms,
    /// The user's checks. Their results may depend on the folder and the machine.
    Checks,
}

/// An execution that was made again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reexecution {
    /// The way in which it ended in the run.
    pub was: CommandEnd,
    /// The way in which it ended now.
    pub now: CommandEnd,
    /// Whether the result is what the record says: the end and, for a program, the printed value.
    pub is_same: bool,
}

/// Returns true if an execution that ended so depends on how fast or how large the machine is.
fn was_cut(end: CommandEnd) -> bool {
    matches!(end, CommandEnd::Time | CommandEnd::Memory)
}

/// Returns the executions of one kind that can be made again, out of those on record.
pub fn repeatable_executions(
    state: &RunState,
    kind: ExecutionKind,
) -> impl Iterator<Item = &(Execution, Executed)> {
    let embedded = Executor::Interpreter(embedded_interpreter());
    state.executions_made().iter().filter(move |(execution, executed)| match execution {
        Execution::Program { .. } | Execution::Trial { .. } => {
            let its_kind =
                if executed.by == embedded { ExecutionKind::Programs } else { ExecutionKind::OtherPrograms };
            kind == its_kind && !was_cut(executed.result.end)
        }
        Execution::Check { .. } => kind == ExecutionKind::Checks && !was_cut(executed.result.end),
    })
}

/// Refuses to run the checks of a record again, unless the user has given the same command, or the record is in the user's own folder
/// of runs.
///
/// Returns [`RunError::Usage`] with the command, and the flag that allows it.
pub fn require_check_given(state: &RunState, dir: &Path, given: Option<&str>) -> Result<(), RunError> {
    let Some(mut check) = state.opened().setup.check_command.clone() else { return Ok(()) };
    if let Some(table) = load_table(state, dir)? {
        check.command = table.redactions().restore(&check.command);
    }
    require_known_check(&check, given, dir)
}

/// Makes executions of a run again, in the current folder. `dir` is the folder of the run.
///
/// Returns [`RunError::Usage`] if the run is redacted and its table cannot be read, and [`RunError::Sandbox`].
pub async fn reexecute(
    state: &RunState,
    kind: ExecutionKind,
    dir: &Path,
    sandbox: &Sandbox,
) -> Result<Vec<Reexecution>, RunError> {
    let table = load_table(state, dir)?;
    let mut reexecutions = Vec::new();
    for (execution, Executed { by, result: was, .. }) in repeatable_executions(state, kind) {
        let order = Order::new(state.opened(), execution, table.as_ref());
        let again = execute(sandbox, Path::new("."), &order).await?;
        let now = again.result;
        // A loaded machine is no evidence against a record, and neither is another version.
        if was_cut(now.end) || again.by != *by {
            continue;
        }
        let is_same = match execution {
            // A check that cannot be started refuses nothing, so the verdict alone is not enough.
            Execution::Check { .. } => was.end == now.end,
            // A redacted run records the output with tokens and its digest salted.
            Execution::Program { .. } | Execution::Trial { .. } if table.is_some() => was.end == now.end,
            Execution::Program { .. } => was.end == now.end && print_the_same(&was.output, &now.output),
            Execution::Trial { .. } => was.end == now.end && was.output == now.output,
        };
        reexecutions.push(Reexecution { was: was.end, now: now.end, is_same });
    }
    Ok(reexecutions)
}
