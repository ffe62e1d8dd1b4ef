//! `consensus man`.

use anyhow::Context;
use clap::CommandFactory;

use super::args::{Cli, ManArgs};
use super::output::Output;
use crate::core::ExitCode;

pub(super) fn man(args: &ManArgs, output: &Output) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &args.out {
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
