//! `consensus mcp`: agreement as tools, for an agent that starts this command. Standard output belongs to the protocol.

use std::path::PathBuf;

use super::hosting::{Hosting, STOP_MESSAGES, choose_rolesets};
use crate::batch::{BatchError, Shard, ShardOf, make_folder};
use crate::cli::args::McpArgs;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::run_to_end::block_on;
use crate::cli::signals;
use crate::config::{FileConfig, state_folder};
use crate::journal::JournalError;
use crate::sandbox::Sandbox;
use crate::serve::{Guard, WayIn};
use protocol::core::ExitCode;

/// The folder of the folders of such commands, in the user's own.
const FOLDERS: &str = "mcp";

/// The most commands that can use folders of the user's own at once.
const FOLDERS_MAX: u32 = 64;

pub(crate) fn mcp(args: &McpArgs, output: &Output) -> anyhow::Result<ExitCode> {
    block_on(serve(args, output))?
}

async fn serve(args: &McpArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let listening = signals::listen(STOP_MESSAGES, None, output)?;
    let file = FileConfig::load()?;
    let sandbox = Sandbox::new(args.hosting.sandbox.confinement(&file))?;
    let rolesets = choose_rolesets(&args.hosting, &file, sandbox.probe().await, output)?;
    let (out, shard) = match &args.output {
        Some(out) => {
            make_folder(out)?;
            (out.clone(), Shard::open(out, ShardOf::default())?)
        }
        None => open_free_folder()?,
    };
    let hosting = Hosting::open(&args.hosting, file, rolesets, sandbox, &out, shard, output).await?;
    output.status(&format!("the runs are in `{}`", out.display()));
    hosting.serve(Guard::default(), WayIn::Stdio, listening.begin(), output).await
}

/// Opens the first folder of the user's own that no other such command is using, and that no other build has written in. Runs that were
/// left in it go on.
fn open_free_folder() -> anyhow::Result<(PathBuf, Shard)> {
    let Some(state) = state_folder() else {
        return Err(UsageError("there is no home folder for the runs; give -o DIR".to_owned()).into());
    };
    let folders = state.join(FOLDERS);
    let mut used = 0;
    for number in 1.. {
        let folder = folders.join(number.to_string());
        make_folder(&folder)?;
        match Shard::open(&folder, ShardOf::default()) {
            Err(BatchError::Journal(JournalError::OtherBuild { .. })) => {}
            Err(BatchError::Journal(JournalError::Locked { .. })) if used + 1 < FOLDERS_MAX => used += 1,
            Err(BatchError::Journal(JournalError::Locked { .. })) => break,
            opened => return Ok((folder, opened?)),
        }
    }
    let why =
        format!("{FOLDERS_MAX} other such commands use the folders in `{}`; give -o DIR", folders.display());
    Err(UsageError(why).into())
}
