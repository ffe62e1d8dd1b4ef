//! The errors of the sandbox, before a command runs in it.

use std::path::{Path, PathBuf};

use thiserror::Error;

use protocol::core::ExitCode;

/// A wall that cannot be built, or a command behind it that cannot be run.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// The kernel has no part that the wall needs.
    #[error(
        "this machine cannot wall in a command: {0}; use a kernel with Landlock (5.13 or later), or --no-sandbox to run it without a wall"
    )]
    Unavailable(String),
    /// A path of the policy cannot be used.
    #[error("the sandbox cannot give access to `{}`", path.display())]
    Path { path: PathBuf, source: std::io::Error },
    /// The guard of a command was ended by someone else, so that the end of the command says nothing.
    #[error("the guard of a command was ended from outside, and the command with it; run it again")]
    GuardLost,
    /// The shell cannot start the command's program, whatever the text is.
    #[error("the command cannot be started (exit code {code}): {said}{}", advice(*code))]
    NotStarted {
        /// The exit code.
        code: i32,
        /// The beginning of the output.
        said: String,
    },
    /// The id of a task that a shell could take for something else.
    #[error(
        "the id `{0}` cannot be put into a command for {{task}}: it may have letters, digits, `_`, `-`, `.` and `/`, and no part of it may \
         begin with `.` or `-`"
    )]
    TaskId(String),
    /// The processes around the command cannot be started.
    #[error("cannot {does} `{}`", path.display())]
    Io {
        /// The failed operation.
        does: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
}

impl SandboxError {
    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Unavailable(_) | Self::Path { .. } | Self::NotStarted { .. } | Self::TaskId(_) => {
                ExitCode::Usage
            }
            Self::GuardLost | Self::Io { .. } => ExitCode::Internal,
        }
    }

    /// Returns true if the wall is built, and the command behind it cannot be started.
    pub fn is_of_command(&self) -> bool {
        matches!(self, Self::Io { .. })
    }

    /// Returns a function that wraps an error of the file system on this path.
    pub(crate) fn io(does: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { does, path, source }
    }
}

/// Returns what helps against an exit code by which a shell says that it cannot start a program; the wall says 125 itself.
fn advice(code: i32) -> &'static str {
    match code {
        125 => "",
        _ => "; a program outside of the system's folders needs --sandbox-read",
    }
}
