//! `consensus guard`, `leash`, `wall` and `interpret`: the processes around a model server or a command. No person starts them.

use std::io::{Read as _, Write as _};

use crate::cli::args::{GuardArgs, InterpretArgs, LeashArgs, WallArgs};
use crate::files::remove_tree;
use crate::process::{GuardedCommand, leash};
use crate::sandbox::{
    PRINTED_BYTES_MAX, PROGRAM_TIME_MAX, SandboxError, WallPolicy, become_walled, interpret, raise,
};
use protocol::core::{CommandEnd, ExitCode};

/// The exit code of a command that cannot be started, as in a shell.
const NOT_STARTED: u8 = 127;

/// The most bytes of a program that are read.
const SOURCE_BYTES_MAX: u64 = 1 << 20;

/// The exit code of a wall that cannot be built, as `timeout` and `env` report that they have failed themselves.
const NO_WALL: u8 = 125;

/// Runs `consensus guard`, which no person calls.
pub(crate) fn run_guard(args: &GuardArgs) -> anyhow::Result<ExitCode> {
    let guarded = GuardedCommand {
        wall: args.wall.clone(),
        command: &args.command,
        stdin: args.stdin.clone(),
        joins_outputs: args.report,
        memory_max: args.memory,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = match runtime.block_on(guarded.run()) {
        Ok(ended) => {
            if args.report {
                // An owner that has been killed reads no report, and its command is cleaned up all the same.
                let _ = writeln!(std::io::stderr(), "{}", serde_json::to_string(&ended)?);
            }
            shell_code(ended)
        }
        Err(error) => report_not_started(&args.command, &error),
    };
    if let Some(folder) = &args.remove {
        // The process that has made it may have removed it already.
        let _ = remove_tree(folder);
    }
    // A thread may still wait for standard input.
    std::process::exit(code.into())
}

/// Returns the exit code as a shell would show it: 128 and the signal for a process that a signal ended. A command without an end had to
/// stop at an order.
fn shell_code(ended: Option<CommandEnd>) -> u8 {
    use nix::sys::signal::Signal;
    let code = match ended {
        Some(CommandEnd::Exit(code)) => code,
        Some(CommandEnd::Signal(signal)) => 128 + signal,
        Some(CommandEnd::Time | CommandEnd::Memory | CommandEnd::Output) => 128 + Signal::SIGKILL as i32,
        None => 128 + Signal::SIGTERM as i32,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Runs `consensus leash`, which no person calls. The process becomes the command; code after that runs only on an error.
pub(crate) fn run_leash(args: &LeashArgs) -> ! {
    let error = leash(&args.command);
    std::process::exit(report_not_started(&args.command, &error).into())
}

/// Runs `consensus wall`, which no person calls. The process becomes the command; code after that runs only on an error,
/// or where there is no command.
pub(crate) fn run_wall(args: &WallArgs) -> ! {
    let code = match build_wall(args) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error:#}");
            let is_of_command = error.downcast_ref().is_some_and(SandboxError::is_of_command);
            if is_of_command { NOT_STARTED } else { NO_WALL }
        }
    };
    std::process::exit(code.into())
}

fn build_wall(args: &WallArgs) -> anyhow::Result<()> {
    let policy = serde_json::from_str::<WallPolicy>(&args.policy)?;
    Ok(become_walled(&policy, &args.command)?)
}

/// Runs `consensus interpret`, which no person calls: reads a program, and runs it behind a wall.
pub(crate) fn run_interpret(args: &InterpretArgs) -> anyhow::Result<ExitCode> {
    let source = std::io::read_to_string(std::io::stdin().take(SOURCE_BYTES_MAX))?;
    let policy = args.policy.as_deref().map(serde_json::from_str::<WallPolicy>).transpose()?;
    if let Some(policy) = &policy {
        raise(policy)?;
    }
    let (printed, end) = interpret(&source, PROGRAM_TIME_MAX, PRINTED_BYTES_MAX);
    std::io::stdout().write_all(printed.as_bytes())?;
    eprintln!("{}", serde_json::to_string(&end)?);
    Ok(ExitCode::Success)
}

/// Prints why a command did not start, and returns the exit code that shells use for this.
fn report_not_started(command: &[String], error: &std::io::Error) -> u8 {
    let program = command.first().map_or("", String::as_str);
    // This goes to the server's log, whose end is shown to the user.
    eprintln!("cannot start `{program}`: {error}");
    NOT_STARTED
}
