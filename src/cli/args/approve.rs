//! The flags of `consensus approve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::shared::{LimitArgs, MetricsArgs, MockArgs, RolesetsArgs, RunsDirArgs, SandboxArgs, ServerArgs};
use crate::approval::{ApprovalRequest, ReviewRequest};
use crate::cli::completion;
use crate::cli::error::UsageError;
use crate::config::FileConfig;
use crate::run::{MockChoice, ParamChanges, RolesetSettings, runs_folder};

const AFTER_HELP: &str = "\
Examples:
  consensus keys generate keys --mock
  consensus approve --change fix.patch --keys keys --verify \"cargo test\"
  consensus approve --change feature --base main --keys keys --model ollama:qwen2.5-coder
  git diff main...fix | consensus approve --change - --base main --keys keys --mock
  consensus approve --replica Security --peers peers.toml --keys keys --model ollama:qwen2.5-coder
  consensus approve --check --peers peers.toml --keys keys
  consensus approve --change feature --peers peers.toml --keys keys

If a quorum of the reviewers approves, the change lands on --base as one commit. That branch must not be
checked out, unless --checkout is given.
Exit codes: 0 landed, 3 not approved, not verified or not landed, 4 vetoed; see `consensus --help` for the others.";

/// The heading of flags for reviewers in processes of their own.
const APART: &str = "Reviewers in processes of their own";

/// Arguments of `approve`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ApproveArgs {
    /// The repository.
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) repo: PathBuf,
    /// The change: a file with a patch, `-` for a patch on stdin, or a branch.
    #[arg(long, value_name = "FILE|BRANCH", allow_hyphen_values = true, required_unless_present_any = ["replica", "check"])]
    pub(crate) change: Option<String>,
    /// The branch that the change lands on.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub(crate) base: String,
    /// Update the files of a clean checkout of --base as well. Without this flag, no checked-out file is touched.
    #[arg(long)]
    pub(crate) checkout: bool,
    /// A command that must succeed on the changed files before a reviewer is asked. It runs in a folder of its own.
    #[arg(long, value_name = "COMMAND", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) verify: Option<String>,
    /// The longest time for the command of --verify.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = super::duration)]
    pub(crate) verify_timeout: Duration,
    /// An LCOV tracefile that shows which lines of the changed files the tests run, for the record and for people.
    #[arg(long, value_name = "FILE")]
    pub(crate) coverage: Option<PathBuf>,
    /// A SARIF log of what other tools found in the changed files, for the record and for people.
    #[arg(long, value_name = "FILE")]
    pub(crate) findings: Option<PathBuf>,
    /// The folder with the reviewers' keys.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS", hide_env_values = true)]
    pub(crate) keys: Option<PathBuf>,
    /// Declare that this key has signed no decision below this number. The log keeps it, so give it only once.
    #[arg(long, value_name = "N", requires = "replica", value_parser = clap::value_parser!(u64).range(1..1 << 53))]
    pub(crate) ledger_starts_at: Option<u64>,
    /// The message of the commit. Reviewers do not see it.
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
    /// The verdict of the scripted reviewers [default: approve].
    #[arg(id = "answer", long = "verdict", value_name = "VERDICT", value_parser = ["approve", "reject", "abstain"], requires = "mock")]
    pub(crate) verdict: Option<String>,
    /// A TOML file with the address of each party, if each is a process of its own.
    ///
    /// Each party has a line, such as Security = "192.0.2.7:7001". Without --replica, this process is the `orchestrator`,
    /// which proposes.
    #[arg(long, value_name = "FILE", help_heading = APART, conflicts_with_all = ["review", "sarif"])]
    pub(crate) peers: Option<PathBuf>,
    /// Ask each reviewer whether it is ready, and propose nothing.
    ///
    /// A reviewer reports its version, and whether it has the tip of --base. The exit code is 3 if too few are ready.
    #[arg(long, help_heading = APART, requires = "peers", conflicts_with_all = ["change", "replica", "checkout", "message", "output", "launch", "coverage", "findings"])]
    pub(crate) check: bool,
    /// Take part as this reviewer: listen for proposals, review them and vote, until a signal comes.
    #[arg(long, value_name = "NAME", help_heading = APART, requires = "peers", conflicts_with_all = ["change", "checkout", "message", "output", "launch", "coverage", "findings"])]
    pub(crate) replica: Option<String>,
    /// The address to listen on, such as 0.0.0.0:7001 [default: the address in --peers].
    #[arg(long, value_name = "ADDR", help_heading = APART, requires = "peers")]
    pub(crate) listen: Option<String>,
    /// Fetch the branch from this remote, a name or URL, before each review.
    ///
    /// Changes that others have landed are then known here. No branch or file of the copy is touched.
    #[arg(long, value_name = "REMOTE", help_heading = APART, requires = "replica", conflicts_with_all = ["change", "check"])]
    pub(crate) fetch: Option<String>,
    /// The longest time for a reviewer, after which the others continue without it.
    #[arg(long, value_name = "DURATION", help_heading = APART, conflicts_with_all = ["change", "check"], default_value = "30m", value_parser = super::duration)]
    pub(crate) review_timeout: Duration,
    /// The maximum number of tokens in one reply, for every reviewer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=100_000))]
    pub(crate) max_tokens: Option<u32>,
    /// The seed of every random draw.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) runs: RunsDirArgs,
    /// Decide by an earlier review of the same change: the id of its run.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["mock", "mock_script", "launch"])]
    pub(crate) review: Option<String>,
    /// Write the reviewers' findings to this file, as SARIF for code hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    /// Print what the review can cost, without asking a reviewer or proposing. No keys are needed.
    #[arg(long, conflicts_with_all = ["replica", "check"])]
    pub(crate) dry_run: bool,
    /// Write the record of the decision to this file as well.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl ApproveArgs {
    /// Returns the request for the review alone.
    pub(in crate::cli) fn review_request(&self, file: &FileConfig) -> ReviewRequest {
        ReviewRequest {
            repo: self.repo.clone(),
            change: self.change.clone().unwrap_or_else(|| "-".to_owned()),
            base: self.base.clone(),
            roleset: self.roleset.clone(),
            settings: RolesetSettings {
                rolesets_dir: self.rolesets.rolesets_dir.clone(),
                servers: self.server.chosen(),
                params: ParamChanges { max_tokens: self.max_tokens, ..ParamChanges::default() },
                limits: self.limits.limits(),
                ..RolesetSettings::default()
            },
            seed: self.seed,
            runs_dir: runs_folder(self.runs.runs_dir.as_ref(), file),
        }
    }

    /// Returns the request for a decision, from these flags and, where a flag is absent, from the configuration.
    pub(in crate::cli) fn request(&self, file: &FileConfig) -> Result<ApprovalRequest, UsageError> {
        let Some(keys) = self.keys.clone() else {
            let why = "no keys are given; make them with `consensus keys generate keys`, and add --keys keys";
            return Err(UsageError(why.to_owned()));
        };
        let mut review = self.review_request(file);
        review.settings.mock = MockChoice {
            is_wanted: self.mock.mock,
            script: self.mock.mock_script.clone(),
            answer: self.verdict.clone(),
        };
        Ok(ApprovalRequest {
            review,
            with_checkout: self.checkout,
            verify: self.verify.clone(),
            verify_timeout: self.verify_timeout,
            confinement: self.sandbox.confinement(file),
            coverage: self.coverage.clone(),
            findings: self.findings.clone(),
            keys,
            ledger_starts_at: self.ledger_starts_at,
            message: self.message.clone(),
            peers: self.peers.clone(),
            listen: self.listen.clone(),
            fetch: self.fetch.clone(),
            review_timeout: self.review_timeout,
            output: self.output.clone(),
            earlier_review: self.review.clone(),
            sarif: self.sarif.clone(),
        })
    }
}
