//! `consensus guard` and `leash`: the processes around a model server or a reviewer's command. No person starts them.

use crate::cli::args::GuardArgs;
use crate::core::ExitCode;
use crate::provider::launch::{guard, leash};

/// Runs `consensus guard`, which no person calls.
pub(crate) fn run_guard(args: &GuardArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(guard(&args.command)).unwrap_or_else(|error| not_started(args, &error));
    if let Some(folder) = &args.remove {
        // The process that has made it may have removed it already.
        let _ = std::fs::remove_dir_all(folder);
    }
    // A thread may still wait for standard input.
    std::process::exit(code.into())
}

/// Runs `consensus leash`, which no person calls. The process becomes the command; code after that runs only on an error.
pub(crate) fn run_leash(args: &GuardArgs) -> ! {
    let error = leash(&args.command);
    std::process::exit(not_started(args, &error).into())
}

/// Prints why a command did not start, and returns the exit code that shells use for this.
fn not_started(args: &GuardArgs, error: &std::io::Error) -> u8 {
    let program = args.command.first().map_or("", String::as_str);
    // This goes to the server's log, whose end is shown to the user.
    eprintln!("cannot start `{program}`: {error}");
    127
}
