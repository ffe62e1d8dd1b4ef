//! Repositories of their own.

use std::path::Path;
use std::process::Command;

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
