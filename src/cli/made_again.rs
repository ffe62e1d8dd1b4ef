//! The executions of a run that `verify` makes again.
//!
//! The input is the flags and the state of a run. The output is how many executions there are, how many were made again, and
//! the lines that say so. A result that differs from the record is an error.

use std::path::Path;

use super::args::VerifyArgs;
use super::error::IntegrityError;
use super::runtime::block_on;
use crate::config::FileConfig;
use crate::engine::RunState;
use crate::protocol::Execution;
use crate::run::{Again, MadeAgain, make_again, repeatable};
use crate::sandbox::Sandbox;

/// The numbers of executions, on record and made again.
pub(super) struct Counts {
    pub(super) checks: usize,
    pub(super) checks_again: Option<usize>,
    pub(super) programs: usize,
    pub(super) programs_again: usize,
    /// The reason why no program was run again, if this machine cannot run one.
    why_not: Option<String>,
}

impl Counts {
    /// Returns the lines about executions, none for a run without any.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match (self.checks, self.checks_again) {
            (0, _) => {}
            (_, Some(again)) => {
                lines.push(format!("  checks       {again} run again, with the same verdicts"));
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
                    format!("; {left} not run again: cut off by a limit, or run by another interpreter")
                }
            };
            lines.push(format!("  programs     {again} run again, with the same results{left}"));
        }
        lines
    }
}

/// Runs the programs of a run again, and its checks if the flags ask for that.
pub(super) fn made_again(
    args: &VerifyArgs,
    file: &FileConfig,
    state: &RunState,
    dir: &Path,
) -> anyhow::Result<Counts> {
    let is_check = |execution: &Execution| matches!(execution, Execution::Check { .. });
    let checks = state.executions_made().iter().filter(|(execution, _)| is_check(execution)).count();
    let programs = state.executions_made().len() - checks;
    let mut counts = Counts { checks, checks_again: None, programs, programs_again: 0, why_not: None };
    if repeatable(state, Again::Programs).next().is_none() && !args.rerun_checks {
        return Ok(counts);
    }
    let sandbox = Sandbox::new(args.sandbox.confinement(file))?;
    let made = block_on(async {
        let probed = sandbox.probe().await;
        let again = |what| make_again(state, what, dir, &sandbox);
        let programs = match probed {
            Ok(()) => Ok(again(Again::Programs).await?),
            Err(why) if args.rerun_checks => return Err(why.into()),
            Err(why) => Err(why.to_string()),
        };
        let checks = if args.rerun_checks { Some(again(Again::Checks).await?) } else { None };
        anyhow::Ok((programs, checks))
    })??;
    let (programs, checks) = made;
    match programs {
        Ok(programs) => counts.programs_again = same(&programs, "a program", "the record was changed")?,
        Err(why) => counts.why_not = Some(why),
    }
    let checks = checks.map(|checks| same(&checks, "a check", "it may need another folder")).transpose()?;
    counts.checks_again = checks;
    Ok(counts)
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
