//! A repository with a change to decide on, the keys of those who decide, and git in any repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::process::{Finished, Folder, consensus};

/// A repository whose `main` is checked out nowhere, with a branch `fix`, and keys.
pub struct Project {
    pub folder: Folder,
}

impl Project {
    pub fn new() -> Self {
        let project = Self { folder: Folder::new() };
        project.folder.write(
            "repo/sum.py",
            "def total(items):\n    s = 0\n    for i in items:\n        s += i\n    return s\n",
        );
        project.git(&["init", "--quiet", "--initial-branch=main", "."]);
        project.commit("first");
        project.branch("fix", "sum.py", "def total(items):\n    return sum(items)\n");
        Finished::of(consensus(&project.folder).args(["keys", "generate", "keys", "--mock", "--quiet"]))
            .exits(0);
        project
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub fn git(&self, words: &[&str]) -> String {
        git(&self.path(), words)
    }

    pub fn commit(&self, message: &str) {
        commit_all(&self.path(), message);
    }

    /// A branch off `main` in which one file is another; nothing is checked out then.
    pub fn branch(&self, name: &str, file: &str, text: &str) {
        self.git(&["checkout", "--quiet", "-b", name, "refs/heads/main"]);
        self.folder.write(&format!("repo/{file}"), text);
        self.commit(name);
        self.git(&["checkout", "--quiet", "--detach"]);
    }

    pub fn approve(&self, words: &[&str]) -> Command {
        let mut command = consensus(&self.folder);
        command
            .args(["approve", "--repo", "repo", "--keys", "keys", "--mock", "--format", "json", "--quiet"]);
        command.args(words);
        command
    }

    pub fn said(&self, words: &[&str], code: i32) -> Value {
        serde_json::from_str(&Finished::of(&mut self.approve(words)).exits(code).stdout).unwrap()
    }

    pub fn ledger_after(&self, words: &[&str], code: i32) -> PathBuf {
        self.said(words, code);
        self.ledger()
    }

    pub fn main(&self) -> String {
        self.git(&["rev-parse", "main"])
    }

    /// Files of the ledger; there is one for each roster.
    pub fn ledger(&self) -> PathBuf {
        let mut found = std::fs::read_dir(self.folder.path().join("keys/decisions")).unwrap();
        found.next().unwrap().unwrap().path().join("journal.jsonl")
    }

    pub fn is_clean(&self) {
        let said = Command::new("git").current_dir(self.path()).args(["fsck", "--strict"]).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
}

/// Asks git for something that must succeed; nothing of the caller's configuration counts.
#[track_caller]
pub fn git_bytes(repository: &Path, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.current_dir(repository).args(words);
    command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "somebody").env(format!("GIT_{who}_EMAIL"), "s@example.org");
    }
    let said = command.output().unwrap();
    assert!(said.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&said.stderr));
    said.stdout
}

/// The same for one that says a line.
#[track_caller]
pub fn git(repository: &Path, words: &[&str]) -> String {
    String::from_utf8(git_bytes(repository, words)).unwrap().trim().to_owned()
}

/// Commits all that is there.
#[track_caller]
pub fn commit_all(repository: &Path, message: &str) {
    git(repository, &["add", "--all"]);
    git(repository, &["commit", "--quiet", "-m", message]);
}
