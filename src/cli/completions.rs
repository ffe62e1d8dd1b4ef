//! `consensus completions`.

use clap::CommandFactory;

use super::args::{Cli, CompletionsArgs};
use super::output::Output;
use crate::core::ExitCode;

pub(super) fn completions(args: &CompletionsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "consensus", &mut script);
    output.print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Success)
}
