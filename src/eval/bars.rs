//! The bars of an evaluation as a whole: shares to reach, a baseline to keep up with, and a file for CI systems.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::bar::{Bar, JudgedBar, SinceBaseline};
use super::error::EvalError;
use super::items::EvalResults;
use super::junit::{is_junit, junit};
use super::plan::EvalPlan;
use super::summary::Summary;
use crate::batch::TaskLine;
use crate::files::{LARGE_BYTES_MAX, is_same_place, read_text, write_whole};
use protocol::text::CanonicalKind;

/// The mode of a file for other tools.
const PUBLIC: u32 = 0o644;

/// The bars that a complete evaluation must reach.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// The shares that the primary arm must reach.
    pub fail_under: Vec<Bar>,
    /// The folder of an evaluation than which the primary arm must not be worse.
    pub baseline: Option<PathBuf>,
    /// The `JUnit` file that is written.
    pub junit: Option<PathBuf>,
}

/// An evaluation with which another one is compared.
struct Baseline {
    plan: EvalPlan,
    tasks: Vec<TaskLine>,
    results: EvalResults,
}

impl Baseline {
    /// Reads a baseline, which must be complete: the items that end first are the easy ones.
    fn load(folder: &Path) -> Result<Self, EvalError> {
        let plan = EvalPlan::load(folder)?;
        let tasks = plan.load_tasks(folder)?;
        let results = EvalResults::read(folder, &plan, &tasks)?;
        let items = results.complete(&plan).count();
        if items < plan.items {
            return Err(EvalError::Incomplete { folder: folder.to_owned(), items, planned: plan.items });
        }
        Ok(Self { plan, tasks, results })
    }
}

impl Bars {
    /// Refuses a baseline that is the evaluation itself.
    pub fn require_other(&self, folder: &Path) -> Result<(), EvalError> {
        if self.baseline.as_deref().is_some_and(|baseline| is_same_place(baseline, folder)) {
            let why = "the baseline is the evaluation itself; name another folder";
            return Err(EvalError::Usage(why.to_owned()));
        }
        Ok(())
    }

    /// Refuses a baseline that is incomplete, or has no task in common with an evaluation of this data.
    pub fn require_comparable(
        &self,
        data: &str,
        kind: CanonicalKind,
        tasks: &[TaskLine],
    ) -> Result<(), EvalError> {
        match &self.baseline {
            Some(baseline) => Baseline::load(baseline)?.plan.require_shared(baseline, data, kind, tasks),
            None => Ok(()),
        }
    }

    /// Removes the `JUnit` file of an earlier evaluation, which is then not taken for one of this, however this one ends. Any other file
    /// is refused.
    pub fn discard_junit(&self) -> Result<(), EvalError> {
        let Some(path) = &self.junit else { return Ok(()) };
        let shown = path.display();
        if let Some(folder) = path.parent()
            && !folder.as_os_str().is_empty()
            && !folder.is_dir()
        {
            let why = format!("cannot write `{shown}`: there is no folder `{}`", folder.display());
            return Err(EvalError::Usage(why));
        }
        let text = match read_text(path, LARGE_BYTES_MAX) {
            Ok(text) => text,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(EvalError::Usage(format!("cannot read `{shown}`: {why}"))),
        };
        if !is_junit(&text) {
            let why = format!("cannot replace `{shown}`: it is not a JUnit file of an evaluation");
            return Err(EvalError::Usage(why));
        }
        std::fs::remove_file(path).map_err(|why| EvalError::Usage(format!("cannot replace `{shown}`: {why}")))
    }

    /// Compares an evaluation with each bar, and writes the `JUnit` file.
    pub fn judge(
        &self,
        plan: &EvalPlan,
        tasks: &[TaskLine],
        results: &EvalResults,
        summary: &Summary,
    ) -> Result<Vec<JudgedBar>, EvalError> {
        let mut judged: Vec<JudgedBar> = self.fail_under.iter().map(|bar| bar.judge(summary)).collect();
        if let Some(baseline) = &self.baseline {
            let old = Baseline::load(baseline)?;
            let since = SinceBaseline::new(plan, tasks, results, &old.plan, &old.tasks, &old.results)?;
            judged.push(since.judge(&summary.primary, &old.plan.primary));
        }
        if let Some(path) = &self.junit {
            write_whole(path, &junit(summary, tasks, results, &judged)?, PUBLIC)
                .map_err(|why| EvalError::Usage(format!("cannot write `{}`: {why}", path.display())))?;
        }
        Ok(judged)
    }
}
