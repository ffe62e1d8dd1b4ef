//! The flags of `consensus pilot`.

use std::path::PathBuf;

use clap::Args;

use super::task_form::TaskFormArgs;

const AFTER_HELP: &str = "\
Examples:
  consensus batch tasks.jsonl --roleset vote_number --bank pilot --words 4 --programs 4
  consensus pilot tasks.jsonl --bank pilot";

/// Arguments of `pilot`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PilotArgs {
    /// The file of tasks with their answers that the bank was drawn for.
    #[arg(value_name = "TASKS")]
    pub(crate) tasks: PathBuf,
    /// The bank that `consensus batch --bank` has drawn, with words and programs of at least 40 tasks.
    #[arg(long, value_name = "DIR")]
    pub(crate) bank: PathBuf,
    /// Print the finding, and do not keep it.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) form: TaskFormArgs,
}
