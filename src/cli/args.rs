//! What may be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::approve_args::ApproveArgs;
use super::batch_args::BatchArgs;
use super::global::Global;
use super::results_args::ResultsArgs;
use super::run_args::{LimitArgs, RolesetsArgs, RunArgs, ServerArgs};

const AFTER_HELP: &str = "\
Examples:
  consensus run --mock --task \"2+2\" --answer \"4\"
  consensus run --prompt \"How do I boil an egg?\"
  consensus run --roleset writer_physicist --prompt \"Explain cosmic rays to kids.\"
  consensus run --roleset solver_checker --model ollama:llama3.1 -f invoice.txt \"What is the total?\"
  consensus run --launch llama-server --model ~/models/qwen.gguf --prompt \"Why is the sky blue?\"
  consensus verify --last

Exit codes: 0 agreed, 1 internal error, 2 usage or roleset, 3 no agreement, 4 vetoed, 5 budget
or deadline, 6 provider unusable, 7 does not verify, 8 degraded (with --fail-on-degraded), 130 interrupted.";

/// Language-model agents work under a strict protocol until they agree, and can prove it afterwards.
#[derive(Debug, Parser)]
#[command(name = "consensus", version, after_help = AFTER_HELP, propagate_version = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Let agents work on a task until they agree.
    Run(Box<RunArgs>),
    /// Run many tasks, by one or more rolesets, models and seeds.
    Batch(Box<BatchArgs>),
    /// Tell what came out of a batch: shares with their intervals, or a row for each run.
    Results(ResultsArgs),
    /// Let reviewers decide on a change to a repository, and land it if a quorum signs it.
    Approve(Box<ApproveArgs>),
    /// Make keys for reviewers, and move them with their ledgers.
    Keys(KeysArgs),
    /// Go on with an interrupted, failed or unaffordable run.
    Resume(ResumeArgs),
    /// List the runs.
    Runs(RunsArgs),
    /// Print a run's transcript.
    Show(RunRef),
    /// Derive a run's outcome again from its journal, offline, and check everything in it; or all runs of a batch, given its
    /// folder; or verify the record of a decision.
    Verify(VerifyArgs),
    /// Play a run again from its journal, offline.
    Replay(RunRef),
    /// Print the most that a run can cost, before anything is spent.
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

/// Arguments of `docs`.
#[derive(Args, Debug)]
pub(super) struct DocsArgs {
    #[command(subcommand)]
    pub(super) command: DocsCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum DocsCommand {
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

/// Which run.
#[derive(Args, Clone, Debug)]
pub(super) struct RunRef {
    /// The run: its id, the beginning of its id, or its folder. Or --last.
    #[arg(value_name = "RUN", required_unless_present = "last")]
    pub(super) run: Option<String>,
    /// The newest run.
    #[arg(long, conflicts_with = "run")]
    pub(super) last: bool,
    /// Folder with run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR")]
    pub(super) runs_dir: Option<PathBuf>,
}

/// What is verified.
#[derive(Args, Debug)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    pub(super) which: RunRef,
    /// For the record of a decision in place of a run: the folder with the reviewers' public keys.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS")]
    pub(super) keys: Option<PathBuf>,
}

/// Arguments of `keys`.
#[derive(Args, Debug)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    pub(super) action: KeysAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysAction {
    /// Make a key for each reviewer of a roleset, and one for who proposes; overwrites nothing.
    Generate {
        /// The folder.
        folder: PathBuf,
        /// The roleset.
        #[arg(short, long, default_value = "reviewers_f1")]
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
        #[arg(short, long, default_value = "reviewers_f1")]
        roleset: String,
        #[command(flatten)]
        rolesets: RolesetsArgs,
    },
}

#[derive(Args, Debug)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    pub(super) which: RunRef,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    /// Go on with this server in place of the journal's, or allow the journal's key to be sent to it.
    #[arg(long, value_name = "URL", env = "CONSENSUS_BASE_URL")]
    pub(super) base_url: Option<String>,
    /// Start this server for the rest of the run; see `consensus run --help`.
    #[arg(long, value_name = "COMMAND", conflicts_with = "base_url")]
    pub(super) launch: Option<String>,
    /// The model for --launch.
    #[arg(short, long, env = "CONSENSUS_MODEL")]
    pub(super) model: Option<String>,
    /// Write the answer to this file as well; it is emptied before the run.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Allow plain http to other machines.
    #[arg(long)]
    pub(super) allow_http: bool,
    /// Write the figures of all runs in the runs folder to this file, for Prometheus (node-exporter's textfile
    /// collector).
    #[arg(long, value_name = "FILE", env = "CONSENSUS_METRICS_FILE")]
    pub(super) metrics_file: Option<PathBuf>,
    /// Exit with 8 if the run agrees but something was lost on the way.
    #[arg(long)]
    pub(super) fail_on_degraded: bool,
}

#[derive(Args, Debug)]
pub(super) struct RunsArgs {
    /// Folder with run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR")]
    pub(super) runs_dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct RolesetArgs {
    #[command(subcommand)]
    pub(super) action: RolesetAction,
    #[command(flatten)]
    pub(super) rolesets: RolesetsArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum RolesetAction {
    /// List every roleset that can be named, and where it is.
    List,
    /// Print a roleset with its packs.
    Show {
        /// Name or path.
        roleset: String,
    },
    /// Copy a roleset with its packs into a folder, to be changed there; overwrites nothing.
    Copy {
        /// Name or path.
        roleset: String,
        /// The folder.
        #[arg(default_value = "rolesets")]
        folder: PathBuf,
    },
    /// Report every mistake in rolesets; all that are found, if none is named.
    Check {
        /// Names or paths.
        rolesets: Vec<String>,
    },
}

/// Arguments of `persona`.
#[derive(Args, Debug)]
pub(super) struct PersonaArgs {
    #[command(subcommand)]
    pub(super) action: PersonaAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum PersonaAction {
    /// List the built-in personas.
    List,
    /// Print the instructions of a persona: a built-in one, or the one that a line makes.
    Show {
        /// Its name, or a line.
        persona: String,
    },
    /// Write the pack of a new persona into a folder, for rolesets of your own; overwrites nothing.
    New {
        /// Who it is, such as "a contrary physicist who looks at everything sideways".
        line: String,
        /// Its name; made from the line if absent.
        #[arg(long)]
        name: Option<String>,
        /// The folder.
        #[arg(default_value = "rolesets/packs")]
        folder: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(super) struct SchemaArgs {
    /// Which one.
    #[arg(value_enum)]
    pub(super) name: SchemaName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum SchemaName {
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
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// The roleset whose servers are examined; needed only if it names models of its own.
    #[arg(short, long, env = "CONSENSUS_ROLESET")]
    pub(super) roleset: Option<String>,
    #[command(flatten)]
    pub(super) rolesets: RolesetsArgs,
}

/// Arguments of `trust`.
#[derive(Args, Debug)]
pub(super) struct TrustArgs {
    /// List the trusted folders, and which of them have changed since.
    #[arg(long, conflicts_with = "revoke")]
    pub(super) list: bool,
    /// Trust a folder no more; the one that you stand in, if none is named.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".")]
    pub(super) revoke: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct CompletionsArgs {
    /// For which shell.
    #[arg(value_enum)]
    pub(super) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(super) struct ManArgs {
    /// Write one page for each command into this folder instead.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct ReadPdfArgs {
    /// The file.
    pub(super) file: PathBuf,
}

#[derive(Args, Debug)]
pub(super) struct GuardArgs {
    /// The command.
    #[arg(required = true, last = true)]
    pub(super) command: Vec<String>,
}
