//! The flags of `consensus serve` and `consensus mcp`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::batch::FlowArgs;
use super::shared::{
    CalibrationArgs, LimitArgs, OtlpArgs, RolesetsArgs, SandboxArgs, ScriptedArgs, ServerArgs,
};
use crate::batch::VariantRequest;
use crate::cli::completion;
use crate::run::RolesetSettings;

const AFTER_HELP: &str = "\
A client of OpenAI's interface needs one change: its base URL is http://127.0.0.1:8700/v1. The model is a roleset, such as \
consensus/vote_number, or with --allow-model a roleset on a model, such as consensus/solver_checker@ollama:llama3.1. Clients of the \
Model Context Protocol connect to http://127.0.0.1:8700/mcp.

Examples:
  consensus serve --model ollama:llama3.1 -o served
  consensus serve --base-url http://gpu7:8000/v1 -o served --runs-at-once 64
  consensus serve --mock --answer 4 -o served      (no model at all)
  consensus results served";

const AFTER_HELP_MCP: &str = "\
A client starts the command itself, and speaks to it on standard input and output. The command ends when the client does. Runs that \
are under way then go on when it is started again.

Examples:
  claude mcp add consensus -- consensus mcp --model ollama:llama3.1
  consensus mcp --mock --answer 4                  (no model at all)";

/// Arguments of `serve`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ServeArgs {
    /// The address to listen on. Addresses that other machines reach need --token-file.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8700")]
    pub(crate) listen: SocketAddr,
    /// The folder for the journal and the results, in the form of a batch.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// At the start, remove the runs whose last record is older than this, such as 30d, and at least 1d. They are gone for good, and
    /// their keys begin other runs.
    #[arg(long, value_name = "DURATION", value_parser = super::kept)]
    pub(crate) keep: Option<Duration>,
    /// A file with a token on each line, one of which each request must bring.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Answer requests that call the server by this name; repeatable.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    #[command(flatten)]
    pub(crate) hosting: HostingArgs,
}

/// Arguments of `mcp`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP_MCP)]
pub(crate) struct McpArgs {
    /// The folder for the journal and the results, in the form of a batch. [default: a folder of the user's own, which no other such
    /// command is using]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) hosting: HostingArgs,
}

/// The rolesets of a server, and how it runs them.
#[derive(Args, Debug)]
pub(crate) struct HostingArgs {
    /// The rolesets that are served, separated by commas. [default: all]
    #[arg(short, long, value_delimiter = ',', value_name = "A,B,…", add = ArgValueCompleter::new(completion::rolesets))]
    pub(crate) roleset: Vec<String>,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) scripted: ScriptedArgs,
    /// Let callers put a roleset on this model, as in `vote_number@NAME`; repeatable. `*` lets them name every model that the server can
    /// reach, with its keys.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_model: Vec<String>,
    /// The number of runs that wait for their turn before further requests are refused.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) queue: u32,
    #[command(flatten)]
    pub(crate) calibration: CalibrationArgs,
    #[command(flatten)]
    pub(crate) flow: FlowArgs,
    #[command(flatten)]
    pub(crate) otlp: OtlpArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

impl HostingArgs {
    /// Returns the request for the models of all rolesets.
    pub(crate) fn variant_request(&self) -> VariantRequest {
        VariantRequest {
            rolesets: self.roleset.first().cloned().into_iter().collect(),
            settings: RolesetSettings {
                rolesets_dir: self.rolesets.rolesets_dir.clone(),
                servers: self.server.chosen(),
                mock: self.scripted.choice(),
                calibration: self.calibration.request(),
                limits: self.limits.limits(),
                ..RolesetSettings::default()
            },
            ..VariantRequest::default()
        }
    }
}
