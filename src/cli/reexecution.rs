//! The executions of a run that `verify` makes again.
//!
//! A result that differs from the record is an error.

use std::path::Path;

use super::args::VerifyArgs;
use super::error::{IntegrityError, UsageError};
use super::run_to_end::block_on;
use crate::config::FileConfig;
use crate::engine::RunState;
use crate::run::{ExecutionKind, Reexecution, reexecute, repeatable_executions, require_check_given};
use crate::sandbox::Sandbox;
use protocol::Execution;

/// The numbers of executions, on record and made again.
#[derive(Default)]
pub(super) struct ExecutionCounts {
    pub(super) checks: usize,
    pub(super) checks_again: Option<usize>,
    pub(super) programs: usize,
    pub(super) programs_again: usize,
    /// The reason why no program was run again, if this machine cannot run one.
    why_not: Option<String>,
}

impl ExecutionCounts {
    pub(super) fn add(&mut self, run: Self) {
        self.checks += run.checks;
        self.checks_again = match (self.checks_again, run.checks_again) {
            (None, None) => None,
            (all, again) => Some(all.unwrap_or(0) + again.unwrap_or(0)),
        };
        self.programs += run.programs;
        self.programs_again += run.programs_again;
        self.why_not = self.why_not.take().or(run.why_not);
    }

    /// Returns the lines about executions, none for a run without any.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match (self.checks, self.checks_again) {
            (0, _) => {}
            (recorded, Some(again)) => {
                let left = match recorded - again {
                    0 => String::new(),
                    left => format!("; {left} not run again: cut off by a limit"),
                };
                lines.push(format!("  checks       {again} run again, with the same verdicts{left}"));
            }
            (recorded, None) => {
                lines.push(format!("  checks       {recorded} on record; `--rerun-checks` runs them again"));
            }
        }
        if self.programs > 0 {
            let again = self.programs_again;
            let left = match (self.programs - again, &self.why_not) {
                (0, _) => String::new(),
                (left, Some(why)) => format!("; {left} not run again: {why}"),
                (left, None) => {
                    format!(
                        "; {left} not run again: cut off by a limit, or run by another version, or by `python3` without --rerun-checks"
                    )
                }
            };
            lines.push(format!("  programs     {again} run again, with the same results{left}"));
        }
        lines
    }
}

pub(super) struct Reexecutor<'a> {
    args: &'a VerifyArgs,
    file: &'a FileConfig,
    /// The sandbox, or the reason why this machine has none. It is probed before the first execution.
    sandbox: Option<Result<Sandbox, String>>,
}

impl<'a> Reexecutor<'a> {
    pub(super) fn new(args: &'a VerifyArgs, file: &'a FileConfig) -> Self {
        Self { args, file, sandbox: None }
    }

    /// Runs the programs of a run again, and its checks if the flags ask for that. `dir` is the folder of the run.
    pub(super) fn run(&mut self, state: &RunState, dir: &Path) -> anyhow::Result<ExecutionCounts> {
        let executions = state.executions_made();
        let checks =
            executions.iter().filter(|(execution, _)| matches!(execution, Execution::Check { .. })).count();
        let programs = executions.len() - checks;
        let mut counts = ExecutionCounts { checks, programs, ..ExecutionCounts::default() };
        let has = |kind| repeatable_executions(state, kind).next().is_some();
        let repeats_checks = self.args.rerun_checks && checks > 0;
        let repeats_others = self.args.rerun_checks && has(ExecutionKind::OtherPrograms);
        if !has(ExecutionKind::Programs) && !repeats_checks && !repeats_others {
            return Ok(counts);
        }
        if repeats_checks {
            require_check_given(state, dir, self.args.check.as_deref())?;
        }
        let sandbox = match self.prepare_sandbox()? {
            Ok(sandbox) => sandbox,
            Err(why) if repeats_checks => return Err(UsageError(why).into()),
            Err(why) => return Ok(ExecutionCounts { why_not: Some(why), ..counts }),
        };
        let programs = block_on(reexecute(state, ExecutionKind::Programs, dir, &sandbox))??;
        counts.programs_again = require_same(&programs, "a program", "the record was changed")?;
        if repeats_others {
            let others = block_on(reexecute(state, ExecutionKind::OtherPrograms, dir, &sandbox))??;
            let cause = "its result may depend on the machine, or the record was changed";
            counts.programs_again += require_same(&others, "a program", cause)?;
        }
        if repeats_checks {
            let checks = block_on(reexecute(state, ExecutionKind::Checks, dir, &sandbox))??;
            let cause = "it may need the folder of the run, or the same --sandbox flags";
            counts.checks_again = Some(require_same(&checks, "a check", cause)?);
        }
        Ok(counts)
    }

    fn prepare_sandbox(&mut self) -> anyhow::Result<Result<Sandbox, String>> {
        if let Some(known) = &self.sandbox {
            return Ok(known.clone());
        }
        let sandbox = Sandbox::new(self.args.sandbox.confinement(self.file))?;
        let probed = block_on(sandbox.probe())?.map_err(|why| why.to_string());
        let ready = probed.map(|()| sandbox);
        self.sandbox = Some(ready.clone());
        Ok(ready)
    }
}

/// Returns the number of executions, if all have the same result as on record.
fn require_same(executions: &[Reexecution], what: &str, cause: &str) -> anyhow::Result<usize> {
    match executions.iter().find(|execution| !execution.is_same) {
        None => Ok(executions.len()),
        Some(Reexecution { was, now, .. }) => {
            let now = if was == now { "printed something else".to_owned() } else { now.to_string() };
            let why = format!("{what} {was} in the run, and {now} when it ran again; {cause}");
            Err(IntegrityError(why).into())
        }
    }
}
