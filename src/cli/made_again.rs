//! The executions of a run that `verify` makes again.
//!
//! The input is the flags and the state of a run. The output is how many executions there are, how many were made again, and
//! the lines that say so. A result that differs from the record is an error.

use std::path::Path;

use super::args::VerifyArgs;
use super::error::{IntegrityError, UsageError};
use super::runtime::block_on;
use crate::config::FileConfig;
use crate::engine::RunState;
use crate::run::{Again, MadeAgain, make_again, repeatable, require_check_given};
use crate::sandbox::Sandbox;
use protocol::Execution;

/// The numbers of executions, on record and made again.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) checks: usize,
    pub(super) checks_again: Option<usize>,
    pub(super) programs: usize,
    pub(super) programs_again: usize,
    /// The reason why no program was run again, if this machine cannot run one.
    why_not: Option<String>,
}

impl Counts {
    /// Adds the numbers of another run.
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
            (made, Some(again)) => {
                let left = match made - again {
                    0 => String::new(),
                    left => format!("; {left} not run again: cut off by a limit"),
                };
                lines.push(format!("  checks       {again} run again, with the same verdicts{left}"));
            }
            (made, None) => {
                lines.push(format!("  checks       {made} on record; `--rerun-checks` runs them again"));
            }
        }
        if self.programs > 0 {
            let again = self.programs_again;
            let left = match (self.programs - again, &self.why_not) {
                (0, _) => String::new(),
                (left, Some(why)) => format!("; {left} not run again: {why}"),
                (left, None) => {
                    format!(
                        "; {left} not run again: cut off by a limit, or run by `python3` or another version"
                    )
                }
            };
            lines.push(format!("  programs     {again} run again, with the same results{left}"));
        }
        lines
    }
}

/// The means to make executions again, which are made ready when the first is met.
pub(super) struct Repeater<'a> {
    args: &'a VerifyArgs,
    file: &'a FileConfig,
    /// The sandbox, or the reason why this machine has none.
    sandbox: Option<Result<Sandbox, String>>,
}

impl<'a> Repeater<'a> {
    pub(super) fn new(args: &'a VerifyArgs, file: &'a FileConfig) -> Self {
        Self { args, file, sandbox: None }
    }

    /// Runs the programs of a run again, and its checks if the flags ask for that. `dir` is the folder of the run.
    pub(super) fn run(&mut self, state: &RunState, dir: &Path) -> anyhow::Result<Counts> {
        let is_check = |execution: &Execution| matches!(execution, Execution::Check { .. });
        let checks = state.executions_made().iter().filter(|(execution, _)| is_check(execution)).count();
        let programs = state.executions_made().len() - checks;
        let mut counts = Counts { checks, programs, ..Counts::default() };
        let repeats_checks = self.args.rerun_checks && checks > 0;
        if repeatable(state, Again::Programs).next().is_none() && !repeats_checks {
            return Ok(counts);
        }
        if repeats_checks {
            require_check_given(state, dir, self.args.check.as_deref())?;
        }
        let sandbox = match self.sandbox()? {
            Ok(sandbox) => sandbox,
            Err(why) if repeats_checks => return Err(UsageError(why).into()),
            Err(why) => return Ok(Counts { why_not: Some(why), ..counts }),
        };
        let again = |what| block_on(make_again(state, what, dir, &sandbox));
        counts.programs_again = same(&again(Again::Programs)??, "a program", "the record was changed")?;
        if repeats_checks {
            let made = again(Again::Checks)??;
            counts.checks_again = Some(same(
                &made,
                "a check",
                "it may need the folder of the run, or the same --sandbox flags",
            )?);
        }
        Ok(counts)
    }

    fn sandbox(&mut self) -> anyhow::Result<Result<Sandbox, String>> {
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
fn same(made: &[MadeAgain], what: &str, cause: &str) -> anyhow::Result<usize> {
    match made.iter().find(|made| !made.is_same) {
        None => Ok(made.len()),
        Some(MadeAgain { was, now, .. }) => {
            let now = if was == now { "printed something else".to_owned() } else { now.to_string() };
            let why = format!("{what} {was} in the run, and {now} when it ran again; {cause}");
            Err(IntegrityError(why).into())
        }
    }
}
