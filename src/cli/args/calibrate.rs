//! The flags of `consensus calibrate`.

use std::path::PathBuf;

use clap::Args;

use super::task_form::TaskFormArgs;
use crate::batch::RunFilter;

const AFTER_HELP: &str = "\
The runs are those of a batch with known answers, or of an evaluation. They must all be made in one way: by one roleset with its \
parameters, on one model, with one kind of answers. One half of the tasks is fitted, and the other half certifies the risk.

With --programs, this command finds out from a bank whether a vote should draw programs. Later votes on that model follow the finding.

Examples:
  consensus calibrate out --risk 0.05
  consensus calibrate study --only arm=vote,stop=sure --risk 0.02 --output sure.json
  consensus run --calibration out/calibration.json --risk 0.05 --roleset vote_number \"How much is 17 * 23?\"
  consensus batch tasks.jsonl --roleset vote_number --bank bank --words 4 --programs 4
  consensus calibrate bank --programs tasks.jsonl";

/// Arguments of `calibrate`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, after_long_help = AFTER_HELP)]
pub(crate) struct CalibrateArgs {
    /// The folder of a batch or of an evaluation; with --programs, a bank that `consensus batch --bank` has drawn.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The highest share of wrong answers among those that are given.
    ///
    /// The exit code is 9 if it is out of reach. The file is the same for every risk.
    #[arg(long, value_name = "SHARE", value_parser = super::share, default_value = "0.05")]
    pub(crate) risk: f64,
    /// Use only the runs with this value, such as arm=sc@5; repeatable. The values are those of `consensus results`.
    #[arg(long, value_name = "WHAT=VALUE", value_parser = RunFilter::parse)]
    pub(crate) only: Vec<RunFilter>,
    /// Write the calibration into this file [default: calibration.json in DIR].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Find out whether a vote should draw programs, from a bank and its tasks with their answers.
    ///
    /// The bank needs words and programs of at least 40 tasks.
    #[arg(
        long,
        value_name = "TASKS",
        conflicts_with_all = ["risk", "only", "output"],
        help_heading = "Whether programs help"
    )]
    pub(crate) programs: Option<PathBuf>,
    /// Print the finding, and do not keep it.
    #[arg(long, requires = "programs", help_heading = "Whether programs help")]
    pub(crate) dry_run: bool,
    #[command(flatten, next_help_heading = "Whether programs help")]
    pub(crate) form: TaskFormArgs,
}
