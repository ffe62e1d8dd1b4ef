//! A change that is reviewed and not decided on: no key signs, no ledger is touched, and nothing lands.
//!
//! In: a patch, or a branch, tag or commit beside what it is compared with. Out: what each reviewer found, and whether a quorum of them
//! approves. The review is a run like any other, with a journal that proves it. A patch needs no repository.

use std::path::PathBuf;
use std::time::Instant;

use tokio::sync::watch;

use super::error::ApprovalError;
use super::given_change::patch;
use super::request::ReviewRequest;
use super::review::{ReviewPlace, review};
use super::reviewers::Reviewers;
use super::watcher::ApprovalWatcher;
use crate::config::{FileConfig, Roleset};
use crate::engine::StopRequest;
use crate::protocol::RunSetup;
use crate::report::RunResult;
use crate::repository::{ChangeSource, Repository, RepositoryError};
use crate::run::{Notices, RunId};

/// A review that has ended, and its folder.
#[derive(Debug)]
pub struct ChangeReview {
    /// How it ended.
    pub result: RunResult,
    /// Where its journal is.
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
    /// # Errors
    ///
    /// [`ApprovalError`] if there is none.
    pub fn read(
        request: &'a ReviewRequest,
        file: &'a FileConfig,
        notices: &dyn Notices,
    ) -> Result<Self, ApprovalError> {
        let diff = match patch(&request.change)? {
            Some(patch) => patch,
            None => difference(request, notices)?,
        };
        Ok(Self { request, file, diff })
    }

    /// The run in which it is reviewed, for which no server was asked, and its roleset.
    ///
    /// # Errors
    ///
    /// [`ApprovalError`] if it cannot be reviewed.
    pub fn setup(&self) -> Result<(RunSetup, Roleset), ApprovalError> {
        let asked = self.request.reviewed_by();
        let reviewers = Reviewers::of(&asked, self.file)?;
        let setup = reviewers.draft(&asked, &self.diff, RunId::new())?.setup().clone();
        Ok((setup, reviewers.roleset))
    }

    /// Has it reviewed; `began` is when the program began.
    ///
    /// # Errors
    ///
    /// [`ApprovalError`]; what is durable stays so, and the run can be resumed.
    pub async fn review(
        &self,
        stop: watch::Receiver<StopRequest>,
        began: Instant,
        watcher: &dyn ApprovalWatcher,
    ) -> Result<ChangeReview, ApprovalError> {
        let asked = self.request.reviewed_by();
        let reviewers = Reviewers::of(&asked, self.file)?;
        let id = RunId::new();
        let dir = self.request.runs_dir.join(id.to_string());
        let builder = reviewers.draft(&asked, &self.diff, id)?;
        let ready = reviewers.prepare(&asked, self.file, builder, &dir, watcher).await?;
        let place = ReviewPlace { dir: &dir, id, began };
        let result = review(ready, None, place, stop, watcher).await?.result;
        Ok(ChangeReview { result, dir })
    }
}

/// What a branch, tag or commit has done since it left its base; the base of a clone may be known there by its remote alone.
fn difference(request: &ReviewRequest, notices: &dyn Notices) -> Result<Vec<u8>, ApprovalError> {
    let ReviewRequest { repo, change, base, .. } = request;
    let repository = match Repository::open(repo) {
        Err(RepositoryError::NotARepository(folder)) => {
            return Err(ApprovalError::Usage(format!(
                "`{change}` is no file with a patch, and `{}` is in no repository: give a patch, `-` for one on standard input, or \
                 --repo PATH",
                folder.display()
            )));
        }
        repository => repository?,
    };
    let remote = format!("origin/{base}");
    let base = match repository.commit_of(base) {
        Err(RepositoryError::NoCommit(_)) if repository.commit_of(&remote).is_ok() => {
            notices.status(&format!("compared with `{remote}`: there is no `{base}` here"));
            remote
        }
        found => found.map(|_| base.clone())?,
    };
    Ok(repository.candidate(&base, ChangeSource::Branch(change))?.diff)
}
