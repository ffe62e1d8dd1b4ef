//! A command that must succeed on the tree that is to land, before anybody is asked.
//!
//! It runs in a folder with nothing but the files of that tree, and with none of the environment but what programs need to
//! be found. That is order and no wall: it runs what the change brings, with all that its user may do. It is in a process group
//! of its own, which ends with it, or when its time is over.

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

/// What of the environment a command sees.
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

/// What the command that verifies a change has said, inside a run folder.
pub(super) const VERIFICATION_LOG: &str = "verification.log";

/// How long the guard may take to end a command whose time is over.
const GRACE: Duration = Duration::from_secs(20);

/// So much of what a command says is written down, in bytes, from its beginning.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// So much of its end is shown, in bytes.
const SAID_BYTES_MAX: usize = 4_000;

/// A command, and that it succeeded.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CommandVerification {
    /// The command, as a shell reads it.
    pub command: String,
    /// The SHA-256 of what it said, up to 16 MiB.
    pub output_sha256: Digest,
}

/// The codes by which a shell says that it cannot start a program (POSIX, 2.8.2 Exit Status for Commands).
const NOT_STARTED: [i32; 2] = [126, 127];

/// What came of a command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Checked {
    /// It succeeded.
    Passed(CommandVerification),
    /// It did not.
    Failed {
        /// How it ended.
        how: String,
        /// Whether the shell has found no such program, or may not start it: then it says nothing of the tree.
        is_missing: bool,
        /// The end of what it said.
        said: String,
    },
}

impl CommandVerification {
    /// Runs a command on a tree. `guard` is this program: it ends whatever the command leaves behind, also if this process dies.
    /// What the command says is written to `log`.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if it cannot be run.
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
        // Whoever is waited for has its standard input closed.
        let lifeline = child.stdin.take();
        let ended = tokio::time::timeout(time, child.wait()).await;
        drop(lifeline);
        let is_late = ended.is_err();
        let mut status = ended.ok();
        if status.is_none() {
            // Whoever guards it ends it; one that was stopped is killed.
            status = tokio::time::timeout(GRACE, child.wait()).await.ok();
        }
        if status.is_none() {
            child.start_kill().map_err(DecisionError::file("end", guard))?;
            status = Some(child.wait().await);
        }
        let status = status.transpose().map_err(DecisionError::file("wait for", guard))?;
        // Whatever escaped its end may hold the pipe: what it says from here on is nobody's business.
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

/// Writes what a command says, up to a bound; reads the rest as well, so that it is not held up.
fn keep(mut said: std::io::PipeReader, mut log: std::fs::File) -> std::io::Result<()> {
    std::io::copy(&mut said.by_ref().take(LOG_BYTES_MAX), &mut log)?;
    std::io::copy(&mut said, &mut std::io::sink())?;
    Ok(())
}
