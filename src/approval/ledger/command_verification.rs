//! A command that must succeed on the tree that is to land, before any reviewer is asked.
//!
//! It runs the code of the change, so it runs in the [sandbox](crate::sandbox). Its folder has only the files of that tree, and
//! it has no other right than the user gives to it.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::approval::decision_error::DecisionError;
use crate::approval::error::ApprovalError;
use crate::files::Scratch;
use crate::repository::{Oid, Repository};
use crate::sandbox::{CommandJob, CommandResult, Sandbox};
use crypto::Digest;
use protocol::core::CommandEnd;

/// The file in a run folder with the output of the command that verifies a change.
pub(in crate::approval) const VERIFICATION_LOG: &str = "verification.log";

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
    /// Whether it ran without a sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_sandbox: bool,
}

/// The exit codes by which a shell says that it cannot start a program (POSIX, 2.8.2 Exit Status for Commands).
const NOT_STARTED: [i32; 2] = [126, 127];

/// The result of a command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VerificationResult {
    Passed(CommandVerification),
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
    /// Runs a command on a tree. The output of the command is written to `log`.
    ///
    /// Returns [`ApprovalError`] if the command cannot be run.
    pub async fn run(
        sandbox: &Sandbox,
        command: &str,
        repository: &Repository,
        tree: &Oid,
        time: Duration,
        log: &Path,
    ) -> Result<VerificationResult, ApprovalError> {
        let parent = std::env::temp_dir();
        let scratch =
            Scratch::new(&parent, "tree").map_err(DecisionError::file("make a folder in", &parent))?;
        let folder = scratch.path().join("tree");
        std::fs::create_dir(&folder).map_err(DecisionError::file("make the folder", &folder))?;
        repository.export(tree, &folder)?;
        let command = ["sh", "-c", command].map(str::to_owned);
        let job = CommandJob {
            command: &command,
            folder: &folder,
            reads_folder: true,
            scratch: scratch.path(),
            stdin: None,
            also_reads: None,
            time_max: time,
            memory_max: None,
        };
        let CommandResult { end, output, output_sha256, .. } = sandbox.run(&job).await?;
        std::fs::write(log, &output).map_err(DecisionError::file("write", log))?;
        let [_, _, command] = command;
        if end.is_success() {
            let no_sandbox = !sandbox.is_walled();
            return Ok(VerificationResult::Passed(Self { command, output_sha256, no_sandbox }));
        }
        let tail = &output[output.len().saturating_sub(SAID_BYTES_MAX)..];
        let is_missing = matches!(end, CommandEnd::Exit(code) if NOT_STARTED.contains(&code));
        let how = match end {
            CommandEnd::Time => format!("it took longer than {}", humantime::format_duration(time)),
            CommandEnd::Exit(_) | CommandEnd::Signal(_) | CommandEnd::Memory | CommandEnd::Output => {
                format!("it {end}")
            }
        };
        let said = String::from_utf8_lossy(tail).trim().to_owned();
        Ok(VerificationResult::Failed { how, is_missing, said })
    }
}
