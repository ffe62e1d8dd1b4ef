//! Where a reviewer gets what has landed elsewhere: a remote, from which it fetches into a reference of its own.
//!
//! In: a remote and a branch. Out: the commit that the branch is at there, as far as it was fetched. No branch of the copy is
//! moved, and no file of it is touched, so that any clone serves, whatever is checked out in it.

use std::cell::RefCell;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::repository::{Oid, Repository, RepositoryError};
use crate::run::Notices;
use crate::text::escape;

/// How long a fetch may take.
const FETCH_MAX: Duration = Duration::from_mins(1);

/// The longest words of git about a fetch that failed.
const FAILURE_CHARS_MAX: usize = 300;

/// The branch of a reviewer, and the remote that it follows, if it follows one.
pub(super) struct Upstream {
    branch: String,
    remote: Option<String>,
    /// One fetch at a time: two would stand in each other's way.
    turn: Semaphore,
    /// Why the last fetch failed, if it did.
    failure: RefCell<Option<String>>,
}

impl Upstream {
    pub(super) fn new(branch: String, remote: Option<String>) -> Self {
        Self { branch, remote, turn: Semaphore::new(1), failure: RefCell::default() }
    }

    /// The branch, by its full name.
    pub(super) fn branch(&self) -> &str {
        &self.branch
    }

    /// Whether there is a remote.
    pub(super) fn has_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Where the branch is: as it was last fetched, or as it is in this copy, where nothing was.
    pub(super) fn tip(&self, repository: &Repository) -> Result<Oid, RepositoryError> {
        let fetched = if self.has_remote() { repository.fetched(&self.branch)? } else { None };
        fetched.map_or_else(|| repository.commit_of(&self.branch), Ok)
    }

    /// Why the last fetch failed, in one line, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Gets what has landed elsewhere; a copy that cannot may have it already.
    pub(super) async fn fetch(&self, repository: &Repository, notices: &dyn Notices) {
        let Some(remote) = &self.remote else { return };
        let _turn = self.turn.acquire().await;
        let mut git = Command::from(repository.fetch(&from_here(remote), &self.branch));
        git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let why = match tokio::time::timeout(FETCH_MAX, git.output()).await {
            Ok(Ok(said)) if said.status.success() => None,
            Ok(Ok(said)) => Some(in_one_line(&String::from_utf8_lossy(&said.stderr))),
            Ok(Err(why)) => Some(why.to_string()),
            Err(_) => Some("it takes too long".to_owned()),
        };
        let failure = why.map(|why| escape::terminal(&format!("cannot fetch from {remote}: {why}")));
        if let Some(line) = &failure {
            notices.warn(line);
        }
        self.failure.replace(failure);
    }
}

/// What git says, in one line of a bounded length.
fn in_one_line(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ").chars().take(FAILURE_CHARS_MAX).collect()
}

/// Git takes the path of a remote to begin in its own folder; a person means the folder that one stands in.
fn from_here(remote: &str) -> String {
    let is_path = remote.contains('/') && !remote.contains("://");
    let place = Path::new(remote).canonicalize().ok().filter(|place| is_path && place.is_dir());
    place.map_or_else(|| remote.to_owned(), |place| place.display().to_string())
}
