//! Moves a branch to the commit of a decided change, and back if the landing is undone.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::authorship::Authorship;
use super::error::RepositoryError;
use super::git::{GitCall, Repository};
use super::oid::Oid;
use super::substitute::work_trees;

/// The committer: this program and not a person, so that the commit is the same on every machine.
const COMMITTER_NAME: &str = "consensus";
const COMMITTER_MAIL: &str = "consensus@localhost";

/// The mark of a decision that has landed: a reference that is made together with the move of its branch, and never without it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LandingMark(String);

/// The place where a change lands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Landing {
    /// The full name of the branch.
    pub branch: String,
    /// The commit that the branch must be at.
    pub from: Oid,
    /// The commit that the branch is moved to.
    pub to: Oid,
    /// Whether a work tree that has the branch checked out may be updated; see [`Repository::update_checkouts`].
    pub with_checkout: bool,
}

impl LandingMark {
    /// Returns the mark of the decision with the number `sequence` in the ledger `ledger`. Each ledger has numbers of its own.
    pub fn new(ledger: &str, sequence: u64) -> Self {
        Self(format!("refs/consensus/{ledger}/{sequence}"))
    }
}

impl Repository {
    /// Makes the commit of a tree on its base, in the name of its author or else of this program. `seconds` is its time. The
    /// same arguments make the same commit at any time and on any machine.
    ///
    /// Returns [`RepositoryError`] if git cannot write it.
    pub fn commit(
        &self,
        base: &Oid,
        tree: &Oid,
        message: &str,
        seconds: u64,
        author: Option<&Authorship>,
    ) -> Result<Oid, RepositoryError> {
        let date = format!("{seconds} +0000");
        let (name, mail, date) = (OsStr::new(COMMITTER_NAME), OsStr::new(COMMITTER_MAIL), OsStr::new(&date));
        let env = [
            ("GIT_AUTHOR_NAME", author.map_or(name, |author| OsStr::new(&author.name))),
            ("GIT_AUTHOR_EMAIL", author.map_or(mail, |author| OsStr::new(&author.mail))),
            ("GIT_AUTHOR_DATE", date),
            ("GIT_COMMITTER_NAME", name),
            ("GIT_COMMITTER_EMAIL", mail),
            ("GIT_COMMITTER_DATE", date),
        ];
        let words = ["commit-tree", tree.as_str(), "-p", base.as_str(), "-F", "-"];
        self.oid(&GitCall { input: message.as_bytes(), env: &env, ..GitCall::new(&words) })
    }

    /// Moves a branch and makes its mark: both or neither, unless git is killed in between. [`Repository::settle`] finishes it then.
    ///
    /// Returns [`RepositoryError::Stale`] if the branch is not where it must be; [`RepositoryError::Git`] if the mark is there already;
    /// [`RepositoryError::CheckedOut`] if the branch is checked out; [`RepositoryError::Locked`] if a lock is left.
    pub fn land(&self, landing: &Landing, mark: &LandingMark) -> Result<(), RepositoryError> {
        let Landing { branch, from, to, .. } = landing;
        self.require_movable(landing)?;
        let updates = [format!("update {branch} {to} {from}"), format!("create {} {to}", mark.0)];
        self.update_references(&updates, landing)
    }

    /// Moves a branch back and removes its mark, if the branch is still at the commit of the landing.
    pub fn undo(&self, landing: &Landing, mark: &LandingMark) -> Result<(), RepositoryError> {
        let Landing { branch, from, to, .. } = landing;
        self.require_movable(landing)?;
        let back = Landing { from: to.clone(), to: from.clone(), ..landing.clone() };
        let updates = [format!("update {branch} {from} {to}"), format!("delete {} {to}", mark.0)];
        self.update_references(&updates, &back)
    }

    /// Finishes a landing that was begun before a crash. Returns whether the change has landed.
    ///
    /// Git moves references one after the other, so that a git that is killed may have moved one of the two. The change has
    /// also landed if the branch has moved on from where the landing brought it.
    ///
    /// Returns the errors of [`Repository::land`], if there is something left to do, or [`RepositoryError::Marked`] if the mark is at
    /// another commit.
    pub fn settle(&self, landing: &Landing, mark: &LandingMark) -> Result<bool, RepositoryError> {
        let Landing { branch, from, to, .. } = landing;
        let marked = self.find_mark(mark)?;
        let is_marked = marked.is_some();
        if let Some(found) = marked
            && found != *to
        {
            return Err(RepositoryError::Marked { mark: mark.0.clone(), found });
        }
        let Some(at) = self.find_reference(branch)? else { return Err(self.no_branch(branch)?) };
        if at == *from {
            if !is_marked {
                return Ok(false);
            }
            // If the log of the branch has `to`, the branch was there already, and its owner has moved it back. It stays where it is.
            let before = self.must(&GitCall::new(&["rev-list", "--walk-reflogs", branch, "--"]))?;
            if String::from_utf8_lossy(&before).lines().any(|line| line == to.as_str()) {
                return Ok(true);
            }
            self.require_movable(landing)?;
            self.update_references(&[format!("update {branch} {to} {from}")], landing)?;
            return Ok(true);
        }
        if !self.is_ancestor(to, &at)? {
            return Err(RepositoryError::Stale { branch: branch.clone(), expected: from.clone(), found: at });
        }
        if !is_marked {
            // The change has landed: the branch may be anywhere after it, and only the mark is missing.
            let here = Landing { from: at, ..landing.clone() };
            let marked = self.update_references(&[format!("create {} {to}", mark.0)], &here);
            if let Err(RepositoryError::Stale { .. }) = marked {
                return self.settle(landing, mark);
            }
            marked?;
        }
        Ok(true)
    }

    /// Refuses a mark that exists already: its decision has landed, and no other decision may have its number.
    ///
    /// [`RepositoryError::Marked`] names the commit that the mark is at.
    pub fn require_unmarked(&self, mark: &LandingMark) -> Result<(), RepositoryError> {
        match self.find_mark(mark)? {
            Some(found) => Err(RepositoryError::Marked { mark: mark.0.clone(), found }),
            None => Ok(()),
        }
    }

    /// Returns the commit that a mark is at, or `None` if its decision has not landed.
    ///
    /// Returns [`RepositoryError`] if git fails.
    pub fn find_mark(&self, mark: &LandingMark) -> Result<Option<Oid>, RepositoryError> {
        self.find_reference(&mark.0)
    }

    /// Returns the commit that a reference is at, or `None` if there is no such reference.
    fn find_reference(&self, name: &str) -> Result<Option<Oid>, RepositoryError> {
        let output =
            self.ask(&GitCall::new(&["rev-parse", "--verify", "--quiet", "--end-of-options", name]))?;
        if !output.has_succeeded {
            return Ok(None);
        }
        Ok(Oid::read(String::from_utf8_lossy(&output.out).trim()))
    }

    /// Makes these updates of references together. `landing` has the branch and the commit that it must be at.
    fn update_references(&self, updates: &[String], landing: &Landing) -> Result<(), RepositoryError> {
        let logs = self.folder.join("logs");
        std::fs::create_dir_all(&logs).map_err(|why| RepositoryError::File(logs, why))?;
        let input = format!("start\n{}\nprepare\ncommit\n", updates.join("\n"));
        let words = ["update-ref", "--create-reflog", "-m", "consensus: decided by a quorum", "--stdin"];
        let output = self.ask(&GitCall { input: input.as_bytes(), ..GitCall::new(&words) })?;
        if output.has_succeeded {
            return Ok(());
        }
        // A lock says nothing about the branch: a git that was killed has left the lock, perhaps after it moved the branch.
        let lock =
            output.err.split('\'').find(|part| Path::new(part).extension() == Some(OsStr::new("lock")));
        if let Some(lock) = lock {
            return Err(RepositoryError::Locked(lock.into()));
        }
        if let Some(found) = self.find_reference(&landing.branch)?
            && found != landing.from
        {
            let (branch, expected) = (landing.branch.clone(), landing.from.clone());
            return Err(RepositoryError::Stale { branch, expected, found });
        }
        Err(RepositoryError::Git { command: words.join(" "), said: output.err })
    }

    /// Refuses a branch that is checked out, unless the landing may update its work trees.
    fn require_movable(&self, landing: &Landing) -> Result<(), RepositoryError> {
        if landing.with_checkout { Ok(()) } else { self.require_not_checked_out(&landing.branch) }
    }

    /// Refuses a branch that is checked out: git would move it under the files of a work tree, which would then all seem
    /// changed.
    ///
    /// [`RepositoryError::CheckedOut`] names the work tree.
    pub fn require_not_checked_out(&self, branch: &str) -> Result<(), RepositoryError> {
        match self.find_checkouts(branch)?.pop() {
            Some(place) => Err(RepositoryError::CheckedOut { branch: branch.to_owned(), place }),
            None => Ok(()),
        }
    }

    /// Refuses a work tree that has the branch checked out, if it has changes that are not committed.
    ///
    /// [`RepositoryError::Dirty`] names the work tree.
    pub fn require_clean(&self, branch: &str) -> Result<(), RepositoryError> {
        for place in self.find_checkouts(branch)? {
            if !run_in_checkout(&place, &["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
                return Err(RepositoryError::Dirty(place));
            }
        }
        Ok(())
    }

    /// Updates the work trees that have the branch checked out to the commit of a landing, if the branch is still at that commit.
    /// No file that was changed in a work tree is overwritten. A work tree whose index is not at the commit before the landing is
    /// left alone, so a second call changes nothing.
    ///
    /// Returns [`RepositoryError`] with git's own words if a changed file is in the way.
    pub fn update_checkouts(&self, landing: &Landing) -> Result<(), RepositoryError> {
        let Landing { branch, from, to, .. } = landing;
        if self.find_reference(branch)?.as_ref() != Some(to) {
            return Ok(());
        }
        let before = self.oid(&GitCall::new(&["rev-parse", &format!("{from}^{{tree}}")]))?;
        for place in self.find_checkouts(branch)? {
            if run_in_checkout(&place, &["write-tree"])? != before.as_str() {
                continue;
            }
            // After this, git takes files with a new time and an old content as unchanged. Real changes stop the next command.
            let _ = run_in_checkout(&place, &["update-index", "-q", "--refresh"]);
            run_in_checkout(&place, &["read-tree", "-m", "-u", from.as_str(), to.as_str()])?;
        }
        Ok(())
    }

    /// Returns the command that fetches a branch from another copy into a separate reference of this copy. It uses the settings of
    /// the copy's owner, and never asks for a password. No branch is moved, and the reference only moves forward.
    pub fn prepare_fetch(&self, remote: &str, branch: &str) -> Command {
        let mut git = prepare_git(&self.folder);
        git.args([
            "fetch",
            "--quiet",
            "--no-tags",
            // The remote-tracking branches of this copy are not moved either.
            "--refmap=",
            "--end-of-options",
            remote,
            &format!("{branch}:{}", Self::fetched_reference(branch)),
        ]);
        git.envs([("GIT_TERMINAL_PROMPT", "0"), ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")]);
        git
    }

    /// Returns the name of the reference into which a branch is fetched.
    pub fn fetched_reference(branch: &str) -> String {
        format!("refs/consensus/fetched/{}", branch.strip_prefix("refs/heads/").unwrap_or(branch))
    }

    /// Returns the commit that a branch was at when it was last fetched, or `None` if it never was.
    ///
    /// Returns [`RepositoryError`] if git fails.
    pub fn find_fetched(&self, branch: &str) -> Result<Option<Oid>, RepositoryError> {
        self.find_reference(&Self::fetched_reference(branch))
    }

    /// Returns whether the commit `one` is the commit `other` or comes before it.
    ///
    /// Returns [`RepositoryError`] if git fails.
    pub fn is_ancestor(&self, one: &Oid, other: &Oid) -> Result<bool, RepositoryError> {
        let words = ["merge-base", "--is-ancestor", one.as_str(), other.as_str()];
        let output = self.ask(&GitCall::new(&words))?;
        if !output.has_succeeded && !output.err.is_empty() {
            return Err(RepositoryError::Git { command: words.join(" "), said: output.err });
        }
        Ok(output.has_succeeded)
    }

    /// Returns the work trees that have a branch checked out.
    fn find_checkouts(&self, branch: &str) -> Result<Vec<PathBuf>, RepositoryError> {
        work_trees(&self.folder, branch).map_err(|why| RepositoryError::File(self.folder.clone(), why))
    }
}

/// Returns the command `git` for a place, with the settings of the user who works there.
fn prepare_git(place: &Path) -> Command {
    let mut git = Command::new("git");
    // A hook may have set these variables, and then they name another work tree.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(name);
    }
    git.arg("-C").arg(place);
    git
}

/// Runs git in a work tree, with the settings of its user.
fn run_in_checkout(place: &Path, words: &[&str]) -> Result<String, RepositoryError> {
    let output = prepare_git(place).args(words).output().map_err(RepositoryError::NoGit)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(RepositoryError::Git { command: words.join(" "), said })
}
