//! What may be typed.

mod approve;
mod batch;
mod global;
mod results;
mod review;
mod rolesets;
mod run;
mod runs;
mod sessions;
mod shared;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::cli::completion;
use crate::core::VERSION;

pub(crate) use approve::ApproveArgs;
pub(crate) use batch::{BatchArgs, BatchCommand, RetryArg};
pub(crate) use global::{Color, Format, Global, LogFormat, OwnFormat};
pub(crate) use results::ResultsArgs;
pub(crate) use review::ReviewArgs;
pub(crate) use rolesets::{PersonaAction, PersonaArgs, RolesetAction, RolesetArgs};
pub(crate) use run::{EndArgs, RunArgs};
pub(crate) use runs::{ExportArgs, ResumeArgs, RunRef, RunsArgs, ShowArgs, VerifyArgs};
pub(crate) use sessions::{ChatArgs, SessionsAction, SessionsArgs};
pub(crate) use shared::{RolesetsArgs, ServerArgs};

const AFTER_HELP: &str = "\
Examples:
  consensus run --mock --task \"2+2\" --answer \"4\"
  consensus \"How do I boil an egg?\"
  consensus run --roleset writer_physicist --prompt \"Explain cosmic rays to kids.\"
  consensus run --roleset solver_checker --model ollama:llama3.1 -f invoice.txt \"What is the total?\"
  consensus run --launch llama-server --model ~/models/qwen.gguf --prompt \"Why is the sky blue?\"
  consensus verify --last

Exit codes: 0 agreed, 1 internal error, 2 usage or roleset, 3 no agreement, 4 vetoed, 5 budget
or deadline, 6 provider unusable, 7 does not verify, 8 degraded (with --fail-on-degraded), 130 interrupted.";

/// Language-model agents work under a strict protocol until they agree, and can prove it afterwards.
#[derive(Debug, Parser)]
#[command(name = "consensus", version = VERSION, after_help = AFTER_HELP, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Let agents work on a task until they agree.
    Run(Box<RunArgs>),
    /// Ask one question after another, in a session that the agents remember.
    Chat(Box<ChatArgs>),
    /// List, show and delete sessions.
    Sessions(SessionsArgs),
    /// Run many tasks, by one or more rolesets, models and seeds.
    Batch(Box<BatchArgs>),
    /// Tell what came out of a batch: shares with their intervals, or a row for each run.
    Results(ResultsArgs),
    /// Let reviewers decide on a change to a repository, and land it if a quorum signs it.
    Approve(Box<ApproveArgs>),
    /// Have a change reviewed: what each reviewer found, and whether a quorum approves. Nothing is signed, and nothing lands.
    Review(Box<ReviewArgs>),
    /// Make keys for reviewers, and move them with their ledgers.
    Keys(KeysArgs),
    /// Go on with an interrupted, failed or unaffordable run.
    Resume(ResumeArgs),
    /// List the runs: at a terminal the newest first, with their answers.
    Runs(RunsArgs),
    /// Show a run: its answer, and who said what.
    Show(ShowArgs),
    /// Derive a run's outcome again from its journal, offline, and check everything in it; or all runs of a batch, given its
    /// folder; or verify the record of a decision.
    Verify(VerifyArgs),
    /// Write a run or a batch into one file, for others to verify.
    Export(ExportArgs),
    /// Tell the story of a run again, as it went: what `show --replay` does.
    #[command(hide = true)]
    Replay(ShowArgs),
    /// Print what a run can cost, before anything is spent: what `run --dry-run` does.
    #[command(hide = true)]
    Plan(Box<RunArgs>),
    /// List, show and check rolesets.
    Roleset(RolesetArgs),
    /// List, show and make personas for panels.
    Persona(PersonaArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Search documents as a run would.
    Docs(DocsArgs),
    /// Make one real call to each provider and report what it can do.
    Doctor(DoctorArgs),
    /// Trust what the folder that you stand in says about programs, servers, keys and places elsewhere, until it changes.
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
    Leash(GuardArgs),
    /// Print the text of a PDF file, or end if that takes too much.
    #[command(hide = true)]
    ReadPdf(ReadPdfArgs),
}

/// Reads a duration, such as `90s` or `2h 30m`.
fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "give a number with a unit, such as 90s, 10m or 2h".to_owned())
}

/// Arguments of `docs`.
#[derive(Args, Debug)]
pub(crate) struct DocsArgs {
    #[command(subcommand)]
    pub(crate) command: DocsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DocsCommand {
    /// Print the passages that fit these words best.
    Search {
        /// What to search for; plain words, nothing is an operator.
        #[arg(allow_hyphen_values = true)]
        words: String,
        /// Files and folders to search; may be given more than once.
        #[arg(long, value_name = "PATH", required = true)]
        docs: Vec<PathBuf>,
        /// The most tokens that the passages may have together; more than 12 passages are never shown.
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
    /// Make a key for each reviewer of a roleset, and one for who proposes; overwrites nothing.
    Generate {
        /// The folder.
        folder: PathBuf,
        /// The roleset.
        #[arg(short, long, default_value = "reviewers_f1", add = ArgValueCompleter::new(completion::rolesets))]
        roleset: String,
        /// Make the key of this one alone, or of `orchestrator`, where each has a process and an owner of its own; beside it
        /// is NAME.seat.json with its public key, for `keys join`.
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        #[command(flatten)]
        rolesets: RolesetsArgs,
    },
    /// Write keys and all that they have signed into one file, so that another machine goes on where this one ends.
    Export {
        /// The file, which is made; its owner alone can read it.
        file: PathBuf,
        /// The folder with the keys.
        #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS")]
        keys: PathBuf,
    },
    /// Bring keys and all that they have signed out of such a file into a folder; overwrites nothing, and takes no ledger back.
    Import {
        /// The file that `keys export` has written.
        file: PathBuf,
        /// The folder for the keys; it is made if it is not there.
        #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS")]
        keys: PathBuf,
    },
    /// Make the roster of keys that each has made for itself; overwrites nothing.
    Join {
        /// The folder, with the key of one of them or without.
        folder: PathBuf,
        /// NAME.seat.json of every reviewer of the roleset, and of `orchestrator`.
        #[arg(required = true)]
        seats: Vec<PathBuf>,
        /// The roleset.
        #[arg(short, long, default_value = "reviewers_f1", add = ArgValueCompleter::new(completion::rolesets))]
        roleset: String,
        #[command(flatten)]
        rolesets: RolesetsArgs,
    },
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// Which one.
    #[arg(value_enum)]
    pub(crate) name: SchemaName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaName {
    /// What an agent writes in one turn.
    Envelope,
    /// A roleset file.
    Roleset,
    /// result.json.
    Result,
    /// One line of a journal.
    Record,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// The roleset whose servers are examined; needed only if it names models of its own.
    #[arg(short, long, env = "CONSENSUS_ROLESET", add = ArgValueCompleter::new(completion::rolesets))]
    pub(crate) roleset: Option<String>,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
}

/// Arguments of `trust`.
#[derive(Args, Debug)]
pub(crate) struct TrustArgs {
    /// List the trusted folders, and which of them have changed since.
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) list: bool,
    /// Trust a folder no more; the one that you stand in, if none is named.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".")]
    pub(crate) revoke: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// For which shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write one page for each command into this folder instead.
    #[arg(short, long, alias = "out", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ReadPdfArgs {
    /// The file.
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct GuardArgs {
    /// A folder that goes when the command has ended, also if the process that started it was killed.
    #[arg(long)]
    pub(crate) remove: Option<PathBuf>,
    /// The command.
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<String>,
}
