//! Starting a model server for a run, and telling how long it takes; and the process that guards it.

use std::path::Path;
use std::time::Duration;

use super::args::GuardArgs;
use super::output::Output;
use super::progress::Waiting;
use crate::config::{Chosen, FileConfig};
use crate::core::ExitCode;
use crate::provider::launch::{LaunchCommand, Launched, guard, leash};

/// The server's log inside a run folder.
pub(super) const LOG: &str = "server.log";

/// Starts the server that is wanted, if one is, and tells `chosen` where it is.
pub(super) async fn launch(
    command: Option<&LaunchCommand>,
    chosen: &mut Chosen,
    file: &FileConfig,
    log: &Path,
    output: &Output,
) -> anyhow::Result<Option<Launched>> {
    let Some(command) = command else { return Ok(None) };
    let waiting = Waiting::new(*output, &format!("starting {command}; its log is {}", log.display()));
    let timeouts = file.timeouts.unwrap_or_default();
    let tell = |after: Duration| waiting.since(after);
    let server = Launched::start(command, log, timeouts, file.key_variables(), tell).await?;
    waiting.done(&format!("the server is ready at {}", server.base_url()));
    chosen.launched = Some(server.base_url().to_owned());
    Ok(Some(server))
}

/// `consensus guard`: never called by people.
pub(super) fn run_guard(args: &GuardArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(guard(&args.command)).unwrap_or_else(|error| not_started(args, &error));
    // A thread may still wait for standard input.
    std::process::exit(code.into())
}

/// `consensus leash`: never called by people, and never returns but with an error.
pub(super) fn run_leash(args: &GuardArgs) -> ! {
    let error = leash(&args.command);
    std::process::exit(not_started(args, &error).into())
}

/// Says why a command did not start, and returns the exit code that shells give for it.
fn not_started(args: &GuardArgs, error: &std::io::Error) -> u8 {
    let program = args.command.first().map_or("", String::as_str);
    // This goes to the server's log, whose end is what the user is shown.
    eprintln!("cannot start `{program}`: {error}");
    127
}
