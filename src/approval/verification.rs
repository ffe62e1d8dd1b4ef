//! A command that must succeed on the tree that is to land, before any reviewer is asked.
//!
//! It runs in a folder with only the files of that tree, and with only the part of the environment that programs need in order
//! to be found. That keeps order, and is not a wall: the command runs the code of the change, with all rights of its user. It
//! is in a process group of its own, which ends with it, or when its time is over.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::decision_error::DecisionError;
use crate::crypto::Digest;
use crate::files::Scratch;
use crate::repository::{Oid, Repository};

/// The variables of the environment that a command sees.
const ENVIRONMENT: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "JAVA_HOME",
    "GOPATH",
];

/// The file in a run folder with the output of the command that verifies a change.
pub(super) const VERIFICATION_LOG: &str = "verification.log";

/// The time that the guard may take to end a command whose time is over.
const GRACE: Duration = Duration::from_secs(20);

/// The most bytes of a command's output that are written down, from its beginning.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// The most bytes that are shown of the end of that output.
const SAID_BYTES_MAX: usize = 4_000;

/// A command that has succeeded.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CommandVerification {
    /// The command, as a shell reads it.
    pub command: String,
    /// The SHA-256 of its output, up to 16 MiB.
    pub output_sha256: Digest,
}

/// The exit codes by which a shell says that it cannot start a program (POSIX, 2.8.2 Exit Status for Commands).
const NOT_STARTED: [i32; 2] = [126, 127];

/// The result of a command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Checked {
    /// The command succeeded.
    Passed(CommandVerification),
    /// The command failed.
    Failed {
        /// The end of the command, in words.
        how: String,
        /// Whether the shell has found no such program, or may not start it. Then the result says nothing about the tree.
        is_missing: bool,
        /// The end of its output.
        said: String,
    },
}

impl CommandVerification {
    /// Runs a command on a tree. `guard` is this program: it ends everything that the command leaves behind, even if this
    /// process dies. The output of the command is written to `log`.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if the command cannot be run.
    pub async fn run(
        guard: &Path,
        command: &str,
        repository: &Repository,
        tree: &Oid,
        time: Duration,
        log: &Path,
    ) -> Result<Checked, DecisionError> {
        let parent = std::env::temp_dir();
        let folder =
            Scratch::new(&parent, "tree").map_err(DecisionError::file("make a folder in", &parent))?;
        repository.export(tree, folder.path())?;
        let file = std::fs::File::create(log).map_err(DecisionError::file("write", log))?;
        let (said, says) = std::io::pipe().map_err(DecisionError::file("make a pipe for", log))?;
        let says_too = says.try_clone().map_err(DecisionError::file("make a pipe for", log))?;
        let written = tokio::task::spawn_blocking(move || keep(said, file));
        let kept = ENVIRONMENT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut child = Command::new(guard)
            .args(["guard", "--remove"])
            .arg(folder.path())
            .args(["--", "sh", "-c", command])
            .current_dir(folder.path())
            .env_clear()
            .envs(kept)
            .stdin(Stdio::piped())
            .stdout(says)
            .stderr(says_too)
            .spawn()
            .map_err(DecisionError::file("start", guard))?;
        // Waiting for a process closes its standard input.
        let lifeline = child.stdin.take();
        let ended = tokio::time::timeout(time, child.wait()).await;
        drop(lifeline);
        let is_late = ended.is_err();
        let mut status = ended.ok();
        if status.is_none() {
            // The guard ends the command; a guard that was stopped is killed.
            status = tokio::time::timeout(GRACE, child.wait()).await.ok();
        }
        if status.is_none() {
            child.start_kill().map_err(DecisionError::file("end", guard))?;
            status = Some(child.wait().await);
        }
        let status = status.transpose().map_err(DecisionError::file("wait for", guard))?;
        // A process that escaped may hold the pipe. Its output from here on does not matter.
        let _ = tokio::time::timeout(GRACE, written).await;
        let said = std::fs::read(log).map_err(DecisionError::file("read", log))?;
        if status.is_some_and(|status| status.success()) && !is_late {
            let output_sha256 = Digest::new(&said);
            return Ok(Checked::Passed(Self { command: command.to_owned(), output_sha256 }));
        }
        let how = match (is_late, status.and_then(|status| status.code())) {
            (true, _) => format!("it took longer than {}", humantime::format_duration(time)),
            (false, Some(code)) => format!("it ended with {code}"),
            (false, None) => "it was killed".to_owned(),
        };
        let tail = &said[said.len().saturating_sub(SAID_BYTES_MAX)..];
        let is_missing = !is_late
            && status.and_then(|status| status.code()).is_some_and(|code| NOT_STARTED.contains(&code));
        Ok(Checked::Failed { how, is_missing, said: String::from_utf8_lossy(tail).trim().to_owned() })
    }
}

/// Writes the output of a command, up to a bound. Reads the rest as well, so that the command is not held up.
fn keep(mut said: std::io::PipeReader, mut log: std::fs::File) -> std::io::Result<()> {
    std::io::copy(&mut said.by_ref().take(LOG_BYTES_MAX), &mut log)?;
    std::io::copy(&mut said, &mut std::io::sink())?;
    Ok(())
}
