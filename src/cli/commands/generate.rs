//! `consensus completions`, `man` and `schema`: what is made of the command line and of the formats.

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::args::{Cli, CompletionsArgs, ManArgs, SchemaArgs, SchemaName};
use crate::cli::output::Output;
use crate::config::ROLESET_SCHEMA;
use crate::core::ExitCode;
use crate::report::{RECORD_SCHEMA, RESULT_SCHEMA};
use crate::text::schema::ENVELOPE;

pub(crate) fn completions(args: &CompletionsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "consensus", &mut script);
    output.print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Success)
}

pub(crate) fn man(args: &ManArgs, output: &Output) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &args.output {
        let context = || format!("cannot write manual pages into `{}`", folder.display());
        std::fs::create_dir_all(folder).with_context(context)?;
        clap_mangen::generate_to(Cli::command(), folder).with_context(context)?;
        return Ok(ExitCode::Success);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    output.print(&String::from_utf8_lossy(&page))?;
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
