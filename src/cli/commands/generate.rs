//! `consensus completions`, `man` and `schema`: print texts that describe the command line and the formats.

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::args::{Cli, CompletionsArgs, ManArgs, SchemaArgs, SchemaName};
use crate::cli::completion::{SHELLS, VARIABLE};
use crate::cli::manual::{page, pages};
use crate::cli::output::Output;
use crate::config::ROLESET_SCHEMA;
use crate::files::{check_own, write_whole};
use crate::report::{RECORD_SCHEMA, RESULT_SCHEMA};
use protocol::core::ExitCode;
use protocol::text::schema::ENVELOPE;

/// Prints the script with which a shell asks this program for completions.
pub(crate) fn completions(args: &CompletionsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let name = args.shell.to_string();
    let shell = SHELLS.completer(&name).with_context(|| format!("there are no completions for `{name}`"))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "consensus", "consensus", "consensus", &mut script)?;
    output.print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Success)
}

pub(crate) fn man(args: &ManArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.output else {
        output.print(&page(&command)?)?;
        return Ok(ExitCode::Success);
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot write manual pages into `{}`", folder.display()))?;
    for (name, page) in pages(&command)? {
        let path = folder.join(name);
        let written = check_own(&path).and_then(|()| write_whole(&path, &page, 0o644));
        written.with_context(|| format!("cannot write the manual page `{}`", path.display()))?;
    }
    Ok(ExitCode::Success)
}

pub(crate) fn schema(args: &SchemaArgs, output: &Output) -> anyhow::Result<ExitCode> {
    output.print(match args.name {
        SchemaName::Envelope => ENVELOPE,
        SchemaName::Roleset => ROLESET_SCHEMA,
        SchemaName::Result => RESULT_SCHEMA,
        SchemaName::Record => RECORD_SCHEMA,
    })?;
    Ok(ExitCode::Success)
}
