//! The review of a change without a decision: no key signs, no ledger is touched, and nothing lands.
//!
//! The input is a patch, or a branch, tag or commit together with the base that it is compared with. The output is the findings
//! of each reviewer, and whether a quorum of them approves. The review is a run like any other, with a journal that proves it.
//! A patch needs no repository.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio::sync::watch;

use super::given_change::read_patch;
use super::review_run::review;
use super::reviewers::Reviewers;
use crate::approval::error::ApprovalError;
use crate::approval::request::ReviewRequest;
use crate::config::{FileConfig, Roleset};
use crate::engine::StopRequest;
use crate::report::RunResult;
use crate::repository::{Repository, RepositoryError};
use crate::run::{Reporter, RunId};
use protocol::RunSetup;

/// A review that has ended, and its folder.
#[derive(Debug)]
pub struct ChangeReview {
    /// The result of the run.
    pub result: RunResult,
    /// The folder with its journal.
    pub dir: PathBuf,
}

/// A change that was read, to be reviewed.
#[derive(Debug)]
pub struct ReadChange<'a> {
    request: &'a ReviewRequest,
    file: &'a FileConfig,
    diff: Vec<u8>,
}

impl<'a> ReadChange<'a> {
    /// Reads the change.
    ///
    /// Returns [`ApprovalError`] if there is no such change.
    pub fn read(
        request: &'a ReviewRequest,
        file: &'a FileConfig,
        reporter: &dyn Reporter,
    ) -> Result<Self, ApprovalError> {
        let diff = read_diff(&request.repo, &request.change, &request.base, reporter)?;
        Ok(Self { request, file, diff })
    }

    /// Returns the run in which the change is reviewed, and its roleset. No server is asked.
    ///
    /// Returns [`ApprovalError`] if it cannot be reviewed.
    pub fn setup(&self) -> Result<(RunSetup, Roleset), ApprovalError> {
        let reviewers = Reviewers::of(self.request, self.file)?.confirming();
        let setup = reviewers.draft(self.request, &self.diff, RunId::new())?.setup().clone();
        Ok((setup, reviewers.named.roleset))
    }

    /// Has the change reviewed. `began` is the time at which the program began.
    ///
    /// Returns [`ApprovalError`]. Everything that is durable remains so, and the run can be resumed.
    pub async fn review(
        &self,
        stop: watch::Receiver<StopRequest>,
        began: Instant,
        reporter: &dyn Reporter,
    ) -> Result<ChangeReview, ApprovalError> {
        let reviewers = Reviewers::of(self.request, self.file)?.confirming();
        let id = RunId::new();
        let dir = self.request.runs_dir.join(id.to_string());
        let builder = reviewers.draft(self.request, &self.diff, id)?;
        let ready = reviewers.prepare(self.request, self.file, builder, &dir, reporter).await?;
        let result = review(ready, None, &dir, id, began, stop, reporter).await?.result;
        Ok(ChangeReview { result, dir })
    }
}

/// Returns a change as a diff: a file with a patch, or else the difference between `base` and a branch, tag or commit of the repository.
///
/// Returns [`ApprovalError`] if there is no such change.
pub fn read_diff(
    repo: &Path,
    change: &str,
    base: &str,
    reporter: &dyn Reporter,
) -> Result<Vec<u8>, ApprovalError> {
    match read_patch(change)? {
        Some(patch) => Ok(patch),
        None => difference(repo, change, base, reporter),
    }
}

/// Returns the difference that a branch, tag or commit has made since it left its base. A clone may know the base only by its
/// remote.
fn difference(
    repo: &Path,
    change: &str,
    base: &str,
    reporter: &dyn Reporter,
) -> Result<Vec<u8>, ApprovalError> {
    let repository = match Repository::open(repo) {
        Err(RepositoryError::NotARepository(folder)) => {
            return Err(ApprovalError::Usage(format!(
                "`{change}` is not a file with a patch, and `{}` is not in a repository; give a patch, `-` for one on standard input, or \
                 --repo PATH",
                folder.display()
            )));
        }
        repository => repository?,
    };
    let remote = format!("origin/{base}");
    let base = match repository.commit_of(base) {
        Err(RepositoryError::NoCommit(_)) if repository.commit_of(&remote).is_ok() => {
            reporter.status(&format!("compared with `{remote}`: there is no `{base}` here"));
            remote
        }
        found => found.map(|_| base.to_owned())?,
    };
    Ok(repository.candidate_of_branch(&base, change)?.diff)
}
