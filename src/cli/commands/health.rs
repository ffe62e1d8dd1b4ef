//! `consensus health`: asks whether a server of this program is there.

use crate::cli::args::HealthArgs;
use crate::cli::output::Output;
use crate::cli::runtime::block_on;
use crate::serve::ask_health;
use protocol::core::ExitCode;
use protocol::text::escape;

pub(crate) fn health(args: &HealthArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let version = block_on(ask_health(&args.address))??;
    output.line(&escape::terminal(&format!("{}: consensus {version}", args.address)))?;
    Ok(ExitCode::Success)
}
