//! What may be typed about a change that is to be approved.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::shared::{LimitArgs, MetricsArgs, MockArgs, RolesetsArgs, RunsDirArgs, ServerArgs};
use crate::approval::{ApprovalRequest, ReviewRequest};
use crate::cli::completion;
use crate::cli::error::UsageError;
use crate::config::FileConfig;
use crate::run::{MockChoice, runs_folder};

const AFTER_HELP: &str = "\
Examples:
  consensus keys generate keys
  consensus approve --change fix.patch --keys keys --verify \"cargo test\"
  consensus approve --change feature --base main --keys keys --model ollama:qwen2.5-coder
  git diff main...fix | consensus approve --change - --base main --keys keys --mock
  consensus approve --replica Security --peers peers.toml --keys keys --model ollama:qwen2.5-coder
  consensus approve --check --peers peers.toml --keys keys
  consensus approve --change feature --peers peers.toml --keys keys

The change lands on --base as one commit, if a quorum of the reviewers approves; that branch must not be
checked out, unless --checkout is given.
Exit codes: 0 landed, 3 not approved, not verified or not landed, 4 vetoed; see `consensus --help` for the others.";

/// The heading of what is for processes of their own.
const APART: &str = "Reviewers in processes of their own";

/// A change and who reviews it.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ApproveArgs {
    /// The repository.
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) repo: PathBuf,
    /// The change: a file with a patch, `-` for one on stdin, or a branch.
    #[arg(long, value_name = "FILE|BRANCH", allow_hyphen_values = true, required_unless_present_any = ["replica", "check"])]
    pub(crate) change: Option<String>,
    /// The branch that it lands on.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub(crate) base: String,
    /// Where that branch is checked out and nothing was changed, bring the files along; without this nobody's files are touched.
    #[arg(long)]
    pub(crate) checkout: bool,
    /// A command that must succeed on the changed files before anybody is asked. It runs in a folder of its own.
    #[arg(long, value_name = "COMMAND", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) verify: Option<String>,
    /// How long it may take.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = super::duration)]
    pub(crate) verify_timeout: Duration,
    /// What tests run of the changed files: an LCOV tracefile. For the record, and for people.
    #[arg(long, value_name = "FILE")]
    pub(crate) coverage: Option<PathBuf>,
    /// What other tools found in them: a SARIF log. For the record, and for people.
    #[arg(long, value_name = "FILE")]
    pub(crate) findings: Option<PathBuf>,
    /// The folder with the reviewers' keys.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS")]
    pub(crate) keys: Option<PathBuf>,
    /// The decisions below this number that --base carries without naming a roster, as version 0.1 wrote them, were other keys';
    /// of a --replica: this key has signed none below it. It is kept in the ledger, and needs saying once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 53))]
    pub(crate) ledger_starts_at: Option<u64>,
    /// The commit's message. Reviewers are not shown it.
    #[arg(short = 'M', long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// The roleset of the reviewers [default: `reviewers_f1`].
    #[arg(short, long, add = ArgValueCompleter::new(completion::rolesets))]
    pub(crate) roleset: Option<String>,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) mock: MockArgs,
    /// What the scripted reviewers say [default: approve].
    #[arg(id = "answer", long = "verdict", alias = "answer", value_name = "VERDICT", value_parser = ["approve", "reject", "abstain"], requires = "mock")]
    pub(crate) verdict: Option<String>,
    /// Where those who take part are, if each is a process of its own: a TOML file with a line for each, such as
    /// Security = "192.0.2.7:7001". This one proposes, as `orchestrator`.
    #[arg(long, value_name = "FILE", help_heading = APART, conflicts_with_all = ["review", "sarif"])]
    pub(crate) peers: Option<PathBuf>,
    /// Propose nothing: ask each reviewer whether it is there, of which version it is, and whether it has the tip of --base. Exit code 3
    /// where too few are ready.
    #[arg(long, help_heading = APART, requires = "peers", conflicts_with_all = ["change", "replica", "checkout", "message", "output", "launch", "coverage", "findings"])]
    pub(crate) check: bool,
    /// Take part as this reviewer: listen, review what is proposed, and vote, until a signal comes.
    #[arg(long, value_name = "NAME", help_heading = APART, requires = "peers", conflicts_with_all = ["change", "checkout", "message", "output", "launch", "coverage", "findings"])]
    pub(crate) replica: Option<String>,
    /// Where this one is heard, such as 0.0.0.0:7001 [default: where --peers says that it is].
    #[arg(long, value_name = "ADDR", help_heading = APART, requires = "peers")]
    pub(crate) listen: Option<String>,
    /// Fetch the branch from this remote, by name or URL, before each review: what others have landed. No branch or file of the copy
    /// is touched.
    #[arg(long, value_name = "REMOTE", help_heading = APART, requires = "replica", conflicts_with_all = ["change", "check"])]
    pub(crate) fetch: Option<String>,
    /// How long a reviewer may take before the others go on without it.
    #[arg(long, value_name = "DURATION", help_heading = APART, conflicts_with_all = ["change", "check"], default_value = "30m", value_parser = super::duration)]
    pub(crate) review_timeout: Duration,
    /// Tokens of one reply at most, for every reviewer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=100_000))]
    pub(crate) max_tokens: Option<u32>,
    /// Seed of every draw.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) runs: RunsDirArgs,
    /// Decide by a review of the same change that was made before: the id of its run.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["mock", "mock_script", "launch"])]
    pub(crate) review: Option<String>,
    /// Write what the reviewers found to this file, as SARIF for code hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    /// Print what the review can cost; propose nothing and ask no reviewer. It needs no keys.
    #[arg(long, conflicts_with_all = ["replica", "check"])]
    pub(crate) dry_run: bool,
    /// Write the record of the decision to this file as well.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl ApproveArgs {
    /// Returns what these flags want of the review alone.
    pub(in crate::cli) fn review_request(&self, file: &FileConfig) -> ReviewRequest {
        ReviewRequest {
            repo: self.repo.clone(),
            change: self.change.clone().unwrap_or_else(|| "-".to_owned()),
            base: self.base.clone(),
            roleset: self.roleset.clone(),
            rolesets_dir: self.rolesets.rolesets_dir.clone(),
            servers: self.server.chosen(),
            mock: MockChoice::default(),
            max_tokens: self.max_tokens,
            seed: self.seed,
            limits: self.limits.limits(),
            runs_dir: runs_folder(self.runs.runs_dir.as_ref(), file),
        }
    }

    /// Returns what these flags, and the configuration where they say nothing, want of a decision.
    ///
    /// # Errors
    ///
    /// [`UsageError`] if it is not said where the keys are.
    pub(in crate::cli) fn request(&self, file: &FileConfig) -> Result<ApprovalRequest, UsageError> {
        let no_keys = || {
            UsageError(
                "there are no keys; `consensus keys generate keys` makes them, and --keys keys names them"
                    .to_owned(),
            )
        };
        let keys = self.keys.clone().ok_or_else(no_keys)?;
        Ok(ApprovalRequest {
            repo: self.repo.clone(),
            change: self.change.clone().unwrap_or_else(|| "-".to_owned()),
            base: self.base.clone(),
            with_checkout: self.checkout,
            verify: self.verify.clone(),
            verify_timeout: self.verify_timeout,
            coverage: self.coverage.clone(),
            findings: self.findings.clone(),
            keys,
            ledger_starts_at: self.ledger_starts_at,
            message: self.message.clone(),
            roleset: self.roleset.clone(),
            rolesets_dir: self.rolesets.rolesets_dir.clone(),
            servers: self.server.chosen(),
            mock: MockChoice {
                is_wanted: self.mock.mock,
                script: self.mock.mock_script.clone(),
                answer: self.verdict.clone(),
            },
            peers: self.peers.clone(),
            listen: self.listen.clone(),
            fetch: self.fetch.clone(),
            review_timeout: self.review_timeout,
            max_tokens: self.max_tokens,
            seed: self.seed,
            limits: self.limits.limits(),
            runs_dir: runs_folder(self.runs.runs_dir.as_ref(), file),
            output: self.output.clone(),
            review: self.review.clone(),
            sarif: self.sarif.clone(),
        })
    }
}
