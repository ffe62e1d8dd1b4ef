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
  consensus approve --replica Security --peers peers.toml --keys keys --model ollama:qwen2.5-coder
  consensus approve --change feature --peers peers.toml --keys keys

The change lands on --base as one commit, if a quorum of the reviewers approves; that branch must not be
checked out, unless --checkout is given.
Exit codes: 0 landed, 3 not approved, not verified or not landed, 4 vetoed; see `consensus --help` for the others.";

/// The heading of what is for processes of their own.
const APART: &str = "Reviewers in processes of their own";

/// A change and who reviews it.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ApproveArgs {
    /// The repository.
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(super) repo: PathBuf,
    /// The change: a file with a patch, `-` for one on stdin, or a branch.
    #[arg(long, value_name = "FILE|BRANCH", allow_hyphen_values = true, required_unless_present = "replica")]
    pub(super) change: Option<String>,
    /// The branch that it lands on.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub(super) base: String,
    /// Where that branch is checked out and nothing was changed, bring the files along; without this nobody's files are touched.
    #[arg(long)]
    pub(super) checkout: bool,
    /// A command that must succeed on the changed files before anybody is asked. It runs in a folder of its own.
    #[arg(long, value_name = "COMMAND", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) verify: Option<String>,
    /// How long it may take.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = humantime::parse_duration)]
    pub(super) verify_timeout: Duration,
    /// What tests run of the changed files: an LCOV tracefile. For the record, and for people.
    #[arg(long, value_name = "FILE")]
    pub(super) coverage: Option<PathBuf>,
    /// What other tools found in them: a SARIF log. For the record, and for people.
    #[arg(long, value_name = "FILE")]
    pub(super) findings: Option<PathBuf>,
    /// The folder with the reviewers' keys.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS")]
    pub(super) keys: PathBuf,
    /// The decisions below this number that --base carries without naming a roster, as version 0.1 wrote them, were other keys';
    /// of a --replica: this key has signed none below it. It is kept in the ledger, and needs saying once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 53))]
    pub(super) ledger_starts_at: Option<u64>,
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
    /// Where those who take part are, if each is a process of its own: a TOML file with a line for each, such as
    /// Security = "192.0.2.7:7001". This one proposes, as `orchestrator`.
    #[arg(long, value_name = "FILE", help_heading = APART, conflicts_with_all = ["review", "sarif"])]
    pub(super) peers: Option<PathBuf>,
    /// Take part as this reviewer: listen, review what is proposed, and vote, until a signal comes.
    #[arg(long, value_name = "NAME", help_heading = APART, requires = "peers", conflicts_with_all = ["change", "checkout", "message", "output", "launch", "coverage", "findings"])]
    pub(super) replica: Option<String>,
    /// Where this one is heard, such as 0.0.0.0:7001 [default: where --peers says that it is].
    #[arg(long, value_name = "ADDR", help_heading = APART, requires = "peers")]
    pub(super) listen: Option<String>,
    /// Fetch the branch from this remote, by name or URL, before each review: what others have landed.
    #[arg(long, value_name = "REMOTE", help_heading = APART, requires = "replica")]
    pub(super) fetch: Option<String>,
    /// How long a reviewer may take before the others go on without it.
    #[arg(long, value_name = "DURATION", help_heading = APART, requires = "replica", default_value = "30m", value_parser = humantime::parse_duration)]
    pub(super) review_timeout: Duration,
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
