//! Commands that run the code of strangers, walled in: the text of a model, the content of a change.
//!
//! The input is a command, the folder that it starts in, and what the user lets it read, write and reach. The output is
//! its end and its output. The command is a grandchild of this program. In between is a
//! [guard](crate::process), which ends it as a whole; and the command begins as a process of this program, which builds
//! the wall around itself and then becomes the command:
//!
//! ```text
//! consensus ──pipe──► guard ──► wall ──exec──► command
//!    ▲                  │ memory of all descendants, end of all descendants
//!    └──── output, end ─┘
//! ```
//!
//! - **Files**: Landlock. Programs and libraries of the system can be read, and one scratch folder can be written.
//! - **System calls**: a filter. There are no sockets but pairs, no debugging, no keys of the kernel, no namespaces.
//! - **Limits**: CPU time, memory, file size and processes. A command of root runs as a user of its own, because
//!   neither the limit of processes nor the modes of files bind root.
//! - **Environment**: a short list of variables, none of which holds a secret.
//!
//! [`Sandbox::probe`] finds out whether a machine can do this, before anything runs. Nothing falls back on less.
//! Only the user can ask for no wall, and the record says so then.
//!
//! # Limits of the wall
//!
//! A command of an ordinary user can change the mode and the times of a file of that user, because Landlock does not
//! cover them. The filter refuses modes that let users outside of the file's group write, or that lend rights. The command
//! can fill the disk of the scratch folder. It can see that a file exists, and can watch a folder that its user may list. The
//! memory that the kernel holds for it, such as the buffers of its sockets, does not count.

mod error;
mod exits;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod identity;
mod interpreter;
mod job;
mod policy;
mod program;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod wall;

pub use error::SandboxError;
pub use interpreter::interpret;
pub use job::{Access, CommandJob, CommandResult, Confinement, Sandbox};
pub use policy::{WallLimits, WallPolicy};
pub use program::{PRINTED_BYTES_MAX, PROGRAM_TIME_MAX, PYTHON3, embedded_interpreter};
pub use system::system_paths;

/// Builds a wall around this process, and becomes the command. Returns only on failure.
///
/// Without a command this process returns once the wall is built, so that a machine can be examined.
///
/// Returns [`SandboxError`] if the wall cannot be built or the command cannot be started.
pub fn become_walled(policy: &WallPolicy, command: &[String]) -> Result<(), SandboxError> {
    use std::os::unix::process::CommandExt as _;
    raise(policy)?;
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let source = std::process::Command::new(program).args(arguments).exec();
    Err(SandboxError::Io { does: "start", path: program.into(), source })
}

/// Builds a wall around this process.
///
/// Returns [`SandboxError`]. After one, this process must do nothing that a wall was wanted for.
pub fn raise(policy: &WallPolicy) -> Result<(), SandboxError> {
    #[cfg(target_os = "linux")]
    return wall::raise(policy);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = policy;
        Err(SandboxError::Unavailable("only Linux has the means".to_owned()))
    }
}
