//! The remote of a reviewer, from which it fetches decisions that landed elsewhere into a reference of its own.
//!
//! The input is a remote and a branch. The output is the commit that the branch had there at the last fetch. No branch and no
//! file of the reviewer's copy changes, so any clone serves, whatever is checked out in it.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::approval::error::ApprovalError;
use crate::repository::{Oid, Repository};
use crate::run::Reporter;
use protocol::text::escape;

/// The time limit of a fetch.
const FETCH_MAX: Duration = Duration::from_mins(1);

/// The shortest time between two fetches that questions of other parties cause.
const FETCH_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The most characters that are kept of git's message about a failed fetch.
const FAILURE_CHARS_MAX: usize = 300;

/// The branch of a reviewer, and the remote that it follows, if it follows one.
pub(super) struct Upstream {
    branch: String,
    remote: Option<String>,
    /// The permit to fetch: two fetches at once would be in each other's way.
    turn: Semaphore,
    /// The reason why the last fetch failed, if it did.
    failure: RefCell<Option<String>>,
    /// The time at which the last fetch ended.
    last_fetch_end: Cell<Option<Instant>>,
}

impl Upstream {
    pub(super) fn new(branch: String, remote: Option<String>) -> Self {
        Self {
            branch,
            remote,
            turn: Semaphore::new(1),
            failure: RefCell::default(),
            last_fetch_end: Cell::default(),
        }
    }

    /// Returns the full name of the branch.
    pub(super) fn branch(&self) -> &str {
        &self.branch
    }

    /// Returns whether there is a remote.
    pub(super) fn has_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the commit of the branch: as it was last fetched or as it is in this copy, whichever is further. So a decision in
    /// either of the two is never lost.
    ///
    /// Returns [`ApprovalError::Usage`] if the two have diverged.
    pub(super) fn tip(&self, repository: &Repository) -> Result<Oid, ApprovalError> {
        let own = repository.commit_of(&self.branch)?;
        let Some(fetched) = repository.find_fetched(&self.branch)? else { return Ok(own) };
        if repository.is_ancestor(&own, &fetched)? {
            return Ok(fetched);
        }
        if repository.is_ancestor(&fetched, &own)? {
            return Ok(own);
        }
        Err(ApprovalError::Usage(format!(
            "`{}` in this copy and its fetched version have diverged: {own} and {fetched}; move the branch to where its remote \
             is, or remove the fetched version with `git update-ref -d {}`",
            self.branch,
            Repository::fetched_reference(&self.branch)
        )))
    }

    /// Returns in one line why the last fetch failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Fetches what has landed elsewhere, but waits first until [`FETCH_INTERVAL_MIN`] has passed since the last fetch: many
    /// parties may ask.
    pub(super) async fn fetch_when_due(&self, repository: &Repository, reporter: &dyn Reporter) {
        if let Some(ended) = self.last_fetch_end.get() {
            tokio::time::sleep_until(ended + FETCH_INTERVAL_MIN).await;
        }
        self.fetch(repository, reporter).await;
    }

    /// Fetches what has landed elsewhere. A failed fetch is only a warning, because the copy may have everything already.
    pub(super) async fn fetch(&self, repository: &Repository, reporter: &dyn Reporter) {
        let Some(remote) = &self.remote else { return };
        let _turn = self.turn.acquire().await;
        let git = guard_command(&repository.prepare_fetch(&resolve_remote(remote), &self.branch));
        let fetched = async {
            let mut child = git?.spawn()?;
            // The guard ends the command when this pipe is closed.
            let _lifeline = child.stdin.take();
            child.wait_with_output().await
        };
        let why = match tokio::time::timeout(FETCH_MAX, fetched).await {
            Ok(Ok(output)) if output.status.success() => None,
            Ok(Ok(output)) => Some(join_lines(&String::from_utf8_lossy(&output.stderr))),
            Ok(Err(why)) => Some(why.to_string()),
            Err(_) => Some("it took too long".to_owned()),
        };
        let failure = why.map(|why| escape::terminal(&format!("cannot fetch from {remote}: {why}")));
        if let Some(line) = &failure {
            reporter.warn(line);
        }
        self.failure.replace(failure);
        self.last_fetch_end.set(Some(Instant::now()));
    }
}

/// Returns the same command under this program's guard, which ends the command and its children once the pipe to the guard closes.
fn guard_command(git: &std::process::Command) -> std::io::Result<Command> {
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

/// Returns the message of git in one line of a bounded length.
fn join_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ").chars().take(FAILURE_CHARS_MAX).collect()
}

/// Resolves the path of a remote from the current folder, as a person means it. Git would resolve it from the repository's folder.
fn resolve_remote(remote: &str) -> String {
    let is_path = remote.contains('/') && !remote.contains("://");
    let place = Path::new(remote).canonicalize().ok().filter(|place| is_path && place.is_dir());
    place.map_or_else(|| remote.to_owned(), |place| place.display().to_string())
}
