//! The flags of `consensus review`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::ArgValueCompleter;

use super::global::Format;
use super::shared::{LimitArgs, MetricsArgs, MockArgs, RolesetsArgs, RunsDirArgs, ServerArgs};
use crate::approval::ReviewRequest;
use crate::cli::completion;
use crate::config::FileConfig;
use crate::run::{MockChoice, ParamChanges, RolesetSettings, runs_folder};

const AFTER_HELP: &str = "\
Examples:
  git diff main...fix | consensus review --change -
  consensus review --change fix.patch --model ollama:qwen2.5-coder
  consensus review --change HEAD --base origin/main --format github --sarif review.sarif     (in a workflow)
  consensus review --change feature --format markdown >comment.md

Exit codes: 0 a quorum approves, 3 it does not, 4 vetoed; see `consensus --help` for the others.";

/// Arguments of `review`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReviewArgs {
    /// The change: a file with a patch, `-` for a patch on stdin, or a branch, tag or commit.
    #[arg(long, value_name = "FILE|BRANCH", allow_hyphen_values = true)]
    pub(crate) change: String,
    /// The base of a branch, tag or commit; `origin/BASE` is used if a clone has no branch of that name.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub(crate) base: String,
    /// The repository of a branch, tag or commit.
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) repo: PathBuf,
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
    /// The maximum number of tokens in one reply, for every reviewer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=100_000))]
    pub(crate) max_tokens: Option<u32>,
    /// The seed of every random draw.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) runs: RunsDirArgs,
    /// The format of stdout: text, one JSON document, Markdown for a comment, SARIF for code hosts, or annotations of GitHub Actions.
    /// With github, a summary of the job is written as well.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = format())]
    pub(crate) format: Format,
    /// Write the reviewers' findings to this file as well, as SARIF.
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write the review to this file as well, as Markdown.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Print what the review can cost, and ask no reviewer.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "json", "markdown", "sarif", "github"]).map(|name| {
        match name.as_str() {
            "json" => Format::Json,
            "markdown" => Format::Markdown,
            "sarif" => Format::Sarif,
            "github" => Format::Github,
            _ => Format::Text,
        }
    })
}

impl ReviewArgs {
    /// Returns the request for a review, from these flags and, where a flag is absent, from the configuration.
    pub(crate) fn request(&self, file: &FileConfig) -> ReviewRequest {
        ReviewRequest {
            repo: self.repo.clone(),
            change: self.change.clone(),
            base: self.base.clone(),
            roleset: self.roleset.clone(),
            settings: RolesetSettings {
                rolesets_dir: self.rolesets.rolesets_dir.clone(),
                servers: self.server.chosen(),
                mock: MockChoice {
                    is_wanted: self.mock.mock,
                    script: self.mock.mock_script.clone(),
                    answer: self.verdict.clone(),
                },
                params: ParamChanges { max_tokens: self.max_tokens, ..ParamChanges::default() },
                limits: self.limits.limits(),
                ..RolesetSettings::default()
            },
            seed: self.seed,
            runs_dir: runs_folder(self.runs.runs_dir.as_ref(), file),
        }
    }
}
