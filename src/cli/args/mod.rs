//! The commands of the program, and their flags.

mod approve;
mod batch;
mod calibrate;
mod eval;
mod global;
mod overview;
mod results;
mod review;
mod rolesets;
mod run;
mod runs;
mod serve;
mod sessions;
mod shared;
mod task_form;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::cli::completion;
use crate::program::VERSION;

pub(crate) use approve::ApproveArgs;
pub(crate) use batch::{BatchArgs, BatchCommand};
pub(crate) use calibrate::CalibrateArgs;
pub(crate) use eval::{EvalArgs, EvalCommand};
pub(crate) use global::{Color, Format, Global, LogFormat};
pub(crate) use results::ResultsArgs;
pub(crate) use review::ReviewArgs;
pub(crate) use rolesets::{PersonaAction, PersonaArgs, RolesetAction, RolesetArgs};
pub(crate) use run::{EndArgs, RunArgs};
pub(crate) use runs::{ExportArgs, ResumeArgs, RunsArgs, ShowArgs, VerifyArgs};
pub(crate) use serve::{HostingArgs, McpArgs, ServeArgs};
pub(crate) use sessions::{ChatArgs, SessionsAction, SessionsArgs};
pub(crate) use shared::{RolesetsArgs, ServerArgs};

/// The shortest time for which a server keeps its runs.
const DAY: Duration = Duration::from_hours(24);

/// The examples of the manual page. The help has the overview in their place.
const EXAMPLES: &str = "\
Examples:
  consensus run --mock --task \"2+2\" --answer \"4\"
  consensus \"How do I boil an egg?\"
  consensus run --roleset writer_physicist --prompt \"Explain cosmic rays to kids.\"
  consensus run --roleset solver_checker --model ollama:llama3.1 -f invoice.txt \"What is the total?\"
  consensus run --launch llama-server --model ~/models/qwen.gguf --prompt \"Why is the sky blue?\"
  consensus verify --last";

/// Language-model agents work under a strict protocol until they agree, and can prove it afterwards.
#[derive(Debug, Parser)]
#[command(
    name = "consensus",
    version = VERSION,
    after_help = EXAMPLES,
    help_template = overview::overview(),
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Have agents work on a task until they agree.
    Run(Box<RunArgs>),
    /// Ask one question after another, in a session.
    ///
    /// The agents remember what was said before.
    Chat(Box<ChatArgs>),
    /// List, show and delete sessions.
    Sessions(SessionsArgs),
    /// Run many tasks with one or more rolesets, models and seeds.
    Batch(Box<BatchArgs>),
    /// Print the results of a batch, as shares or as a row for each run.
    Results(ResultsArgs),
    /// Compare ways of agreeing, by known answers and at equal tokens.
    Eval(Box<EvalArgs>),
    /// Serve agreement as a model, for any client of OpenAI's interface.
    Serve(Box<ServeArgs>),
    /// Offer agreement as tools, by the Model Context Protocol.
    ///
    /// Standard input and output carry the messages.
    Mcp(Box<McpArgs>),
    /// Ask whether a server of this program is there.
    Health(HealthArgs),
    /// Find out from known answers how far an answer can be trusted.
    Calibrate(CalibrateArgs),
    /// Have reviewers decide on a change, and land it if a quorum signs it.
    Approve(Box<ApproveArgs>),
    /// Have a change reviewed, and print the findings and the decision.
    ///
    /// Nothing is signed, and nothing lands.
    Review(Box<ReviewArgs>),
    /// Make keys for reviewers, and move them with their ledgers.
    Keys(KeysArgs),
    /// Resume a run that was interrupted, failed, or hit a limit.
    Resume(ResumeArgs),
    /// List the runs, with their answers.
    ///
    /// On a terminal, the newest comes first.
    Runs(RunsArgs),
    /// Show a run: its answer, and who said what.
    Show(ShowArgs),
    /// Verify a run, all runs of a batch, or the record of a decision.
    ///
    /// A run is verified offline: its outcome is derived again from its journal, and everything in it is checked.
    Verify(VerifyArgs),
    /// Write a run or a batch into one file, for others to verify.
    Export(ExportArgs),
    /// List, show and check rolesets.
    Roleset(RolesetArgs),
    /// List, show and make personas for panels.
    Persona(PersonaArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Search documents as a run would.
    Docs(DocsArgs),
    /// Make real calls to each provider, and report what it can do.
    Doctor(DoctorArgs),
    /// Trust the current folder's settings until they change.
    ///
    /// Without trust, its settings for programs, servers, keys and places outside it have no effect.
    Trust(TrustArgs),
    /// Print shell completions.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man(ManArgs),
    /// Run a command until standard input closes, and then end its process group.
    #[command(hide = true)]
    Guard(GuardArgs),
    /// Become a command that does not outlive the process that started it.
    #[command(hide = true)]
    Leash(LeashArgs),
    /// Build a wall around this process, and become a command behind it.
    #[command(hide = true)]
    Wall(WallArgs),
    /// Run the program on standard input, and report on standard error how it ended.
    #[command(hide = true)]
    Interpret(InterpretArgs),
    /// Print the text of a PDF file, or end if that takes too much time or memory.
    #[command(hide = true)]
    ReadPdf(ReadPdfArgs),
}

/// Reads a duration, such as `90s` or `2h 30m`.
fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "give a number with a unit, such as 90s, 10m or 2h".to_owned())
}

/// Reads for how long runs are kept. The limits of tokens for a day follow from its runs, so these stay.
fn kept(text: &str) -> Result<Duration, String> {
    let kept = duration(text)?;
    if kept < DAY { Err("keep the runs of at least a day, as 1d".to_owned()) } else { Ok(kept) }
}

/// Reads a share that is neither nothing nor all.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "write a share between 0 and 1, such as 0.05 for 5 %".to_owned())
}

/// Reads a duration that something may take, which is not zero.
fn time_limit(text: &str) -> Result<Duration, String> {
    let limit = duration(text)?;
    if limit.is_zero() {
        Err("no time is too short; give a duration such as 10s".to_owned())
    } else {
        Ok(limit)
    }
}

/// Arguments of `docs`.
#[derive(Args, Debug)]
pub(crate) struct DocsArgs {
    #[command(subcommand)]
    pub(crate) command: DocsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DocsCommand {
    /// Print the passages that match these words best.
    Search {
        /// The words to search for; there are no operators.
        #[arg(allow_hyphen_values = true)]
        words: String,
        /// Files and folders to search; repeatable.
        #[arg(long, value_name = "PATH", required = true)]
        docs: Vec<PathBuf>,
        /// The maximum number of tokens in all passages together; at most 12 passages are shown.
        #[arg(long, value_name = "N", default_value_t = 1500)]
        tokens: u64,
    },
}

/// Arguments of `keys`.
#[derive(Args, Debug)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) action: KeysAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysAction {
    /// Make a key for each reviewer of a roleset, and one for the orchestrator; nothing is overwritten.
    Generate {
        /// The folder for the keys.
        folder: PathBuf,
        /// The roleset of the reviewers.
        #[arg(short, long, default_value = "reviewers_f1", add = ArgValueCompleter::new(completion::rolesets))]
        roleset: String,
        /// Make only the key of this reviewer, or of `orchestrator`.
        ///
        /// Use it if each of them has a process and an owner of its own. The public key goes into NAME.seat.json beside the key,
        /// for `keys join`.
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Make keys for a rehearsal, with which `approve --mock` may decide and land.
        #[arg(long)]
        mock: bool,
        #[command(flatten)]
        rolesets: RolesetsArgs,
    },
    /// Write keys and everything that they have signed into one file, so that another machine can continue where this one ends.
    Export {
        /// The file to make; only its owner can read it.
        file: PathBuf,
        /// The folder with the keys.
        #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS", hide_env_values = true)]
        keys: PathBuf,
    },
    /// Read keys and everything that they have signed from an exported file into a folder.
    ///
    /// Nothing is overwritten, and no ledger is replaced by an older state.
    Import {
        /// The file that `keys export` wrote.
        file: PathBuf,
        /// The folder for the keys; it is made if it does not exist.
        #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS", hide_env_values = true)]
        keys: PathBuf,
    },
    /// Make the roster from keys that each party has made for itself; nothing is overwritten.
    Join {
        /// The folder for the roster, which may hold the key of one party.
        folder: PathBuf,
        /// The NAME.seat.json of every reviewer of the roleset, and of `orchestrator`.
        #[arg(required = true)]
        seats: Vec<PathBuf>,
        /// The roleset of the reviewers.
        #[arg(short, long, default_value = "reviewers_f1", add = ArgValueCompleter::new(completion::rolesets))]
        roleset: String,
        #[command(flatten)]
        rolesets: RolesetsArgs,
    },
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// The schema to print.
    #[arg(value_enum)]
    pub(crate) name: SchemaName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaName {
    /// The reply of an agent in one turn.
    Envelope,
    /// A roleset file.
    Roleset,
    /// The file result.json.
    Result,
    /// One line of a journal.
    Record,
}

/// Arguments of `health`.
#[derive(Args, Debug)]
pub(crate) struct HealthArgs {
    /// The address of the server, or the base URL that it prints.
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:8700")]
    pub(crate) address: String,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// The roleset whose servers are examined; needed only if it names models of its own.
    #[arg(short, long, env = "CONSENSUS_ROLESET", hide_env_values = true, add = ArgValueCompleter::new(completion::rolesets))]
    pub(crate) roleset: Option<String>,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
}

/// Arguments of `trust`.
#[derive(Args, Debug)]
pub(crate) struct TrustArgs {
    /// List the trusted folders, and whether each has changed since.
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) list: bool,
    /// Stop trusting a folder; without a name, the current one.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".")]
    pub(crate) revoke: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write one page for each command into this folder instead.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ReadPdfArgs {
    /// The file.
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct GuardArgs {
    /// A folder to remove when the command has ended, even if the process that started it was killed.
    #[arg(long)]
    pub(crate) remove: Option<PathBuf>,
    /// Report on standard error how the command ended, as JSON. Both outputs of the command then go to standard output.
    #[arg(long)]
    pub(crate) report: bool,
    /// The policy of a wall around the command, as JSON.
    #[arg(long)]
    pub(crate) wall: Option<String>,
    /// The most memory that the command and its descendants may use together, in bytes.
    #[arg(long)]
    pub(crate) memory: Option<u64>,
    /// The file that the command reads as its standard input.
    #[arg(long)]
    pub(crate) stdin: Option<PathBuf>,
    /// The command.
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct LeashArgs {
    /// The command.
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct InterpretArgs {
    /// The policy of a wall around this process, as JSON.
    #[arg(long)]
    pub(crate) policy: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct WallArgs {
    /// The policy, as JSON.
    #[arg(long)]
    pub(crate) policy: String,
    /// The command; without one, the process ends once it has built the wall.
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}
