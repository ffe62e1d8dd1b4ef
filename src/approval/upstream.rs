//! Where a reviewer gets what has landed elsewhere: a remote, from which it fetches into a reference of its own.
//!
//! In: a remote and a branch. Out: the commit that the branch is at there, as far as it was fetched. No branch of the copy is
//! moved, and no file of it is touched, so that any clone serves, whatever is checked out in it.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::error::ApprovalError;
use crate::repository::{Oid, Repository};
use crate::run::Notices;
use crate::text::escape;

/// How long a fetch may take.
const FETCH_MAX: Duration = Duration::from_mins(1);

/// Questions of others lead to a fetch so often at most.
const AGAIN_MIN: Duration = Duration::from_secs(1);

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
    /// When the last fetch ended.
    tried: Cell<Option<Instant>>,
}

impl Upstream {
    pub(super) fn new(branch: String, remote: Option<String>) -> Self {
        Self { branch, remote, turn: Semaphore::new(1), failure: RefCell::default(), tried: Cell::default() }
    }

    /// The branch, by its full name.
    pub(super) fn branch(&self) -> &str {
        &self.branch
    }

    /// Whether there is a remote.
    pub(super) fn has_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Where the branch is: as it was last fetched or as it is in this copy, whichever is further, so that no decision is
    /// forgotten that either carries.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::Usage`] where the two have gone apart.
    pub(super) fn tip(&self, repository: &Repository) -> Result<Oid, ApprovalError> {
        let own = repository.commit_of(&self.branch)?;
        let Some(fetched) = repository.fetched(&self.branch)? else { return Ok(own) };
        if repository.is_ancestor(&own, &fetched)? {
            return Ok(fetched);
        }
        if repository.is_ancestor(&fetched, &own)? {
            return Ok(own);
        }
        Err(ApprovalError::Usage(format!(
            "`{}` of this copy and what was fetched of it have gone apart: {own} and {fetched}; bring the branch to where its remote \
             is, or remove what was fetched with `git update-ref -d {}`",
            self.branch,
            Repository::fetched_reference(&self.branch)
        )))
    }

    /// Why the last fetch failed, in one line, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Gets what has landed elsewhere, but not twice at once: many may ask.
    pub(super) async fn fetch_when_due(&self, repository: &Repository, notices: &dyn Notices) {
        if let Some(tried) = self.tried.get() {
            tokio::time::sleep_until(tried + AGAIN_MIN).await;
        }
        self.fetch(repository, notices).await;
    }

    /// Gets what has landed elsewhere; a copy that cannot may have it already.
    pub(super) async fn fetch(&self, repository: &Repository, notices: &dyn Notices) {
        let Some(remote) = &self.remote else { return };
        let _turn = self.turn.acquire().await;
        let git = guarded(&repository.fetch(&from_here(remote), &self.branch));
        let said = async {
            let mut child = git?.spawn()?;
            // The guard ends the command when this is closed.
            let _lifeline = child.stdin.take();
            child.wait_with_output().await
        };
        let why = match tokio::time::timeout(FETCH_MAX, said).await {
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
        self.tried.set(Some(Instant::now()));
    }
}

/// The same command under this program's guard, which ends all that it has started once nobody waits for it.
fn guarded(git: &std::process::Command) -> std::io::Result<Command> {
    let mut guard = Command::new(std::env::current_exe()?);
    guard.args(["guard", "--"]).arg(git.get_program()).args(git.get_args());
    for (name, value) in git.get_envs() {
        match value {
            Some(value) => guard.env(name, value),
            None => guard.env_remove(name),
        };
    }
    if let Some(folder) = git.get_current_dir() {
        guard.current_dir(folder);
    }
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    Ok(guard)
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
