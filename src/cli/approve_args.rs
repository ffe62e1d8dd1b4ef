//! What may be typed about a change that is to be approved.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::run_args::{LimitArgs, MockArgs, RolesetsArgs, ServerArgs};

const AFTER_HELP: &str = "\
Examples:
  consensus keys generate keys
  consensus approve --change fix.patch --keys keys --verify \"cargo test\"
  consensus approve --change feature --base main --keys keys --model ollama:qwen2.5-coder
  git diff main...fix | consensus approve --change - --base main --keys keys --mock

The change lands on --base as one commit, if a quorum of the reviewers approves; that branch must not be checked out.
Exit codes: 0 landed, 3 not approved, not verified or not landed, 4 vetoed; see `consensus --help` for the others.";

/// A change and who reviews it.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ApproveArgs {
    /// The repository.
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(super) repo: PathBuf,
    /// The change: a file with a patch, `-` for one on stdin, or a branch.
    #[arg(long, value_name = "FILE|BRANCH", allow_hyphen_values = true)]
    pub(super) change: String,
    /// The branch that it lands on.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub(super) base: String,
    /// A command that must succeed on the changed files before anybody is asked. It runs in a folder of its own.
    #[arg(long, value_name = "COMMAND", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) verify: Option<String>,
    /// How long it may take.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = humantime::parse_duration)]
    pub(super) verify_timeout: Duration,
    /// The folder with the reviewers' keys.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS")]
    pub(super) keys: PathBuf,
    /// The commit's message. Reviewers are not shown it.
    #[arg(short = 'M', long, value_name = "TEXT")]
    pub(super) message: Option<String>,
    /// The roleset of the reviewers [default: `reviewers_f1`].
    #[arg(short, long)]
    pub(super) roleset: Option<String>,
    #[command(flatten)]
    pub(super) rolesets: RolesetsArgs,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) mock: MockArgs,
    /// What the scripted reviewers say [default: approve].
    #[arg(long, value_name = "VERDICT", value_parser = ["approve", "reject", "abstain"], requires = "mock")]
    pub(super) answer: Option<String>,
    /// Tokens of one reply at most, for every reviewer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=100_000))]
    pub(super) max_tokens: Option<u32>,
    /// Seed of every draw.
    #[arg(long)]
    pub(super) seed: Option<u64>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    /// Folder for run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR")]
    pub(super) runs_dir: Option<PathBuf>,
    /// Decide by a review of the same change that was made before: the id of its run.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["mock", "mock_script", "launch"])]
    pub(super) review: Option<String>,
    /// Write what the reviewers found to this file, as SARIF for code hosts.
    #[arg(long, value_name = "FILE")]
    pub(super) sarif: Option<PathBuf>,
    /// Write the figures of all runs in the runs folder to this file, for Prometheus (node-exporter's textfile
    /// collector).
    #[arg(long, value_name = "FILE", env = "CONSENSUS_METRICS_FILE")]
    pub(super) metrics_file: Option<PathBuf>,
    /// Write the record of the decision to this file as well.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}
