//! What may be typed.

mod approve;
mod batch;
mod global;
mod results;
mod review;
mod run;
mod shared;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::batch::{Pick, is_batch};
use crate::config::{Chosen, FileConfig};
use crate::core::VERSION;
use crate::run::{ResumeRequest, RunError, find_run, runs_folder};

pub(crate) use approve::ApproveArgs;
pub(crate) use batch::{BatchArgs, BatchCommand, RetryArg};
pub(crate) use global::{Color, Format, Global, LogFormat, OwnFormat};
pub(crate) use results::ResultsArgs;
pub(crate) use review::ReviewArgs;
pub(crate) use run::{EndArgs, RunArgs};
pub(crate) use shared::{LimitArgs, RolesetsArgs, ServerArgs};

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

/// Which run.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunRef {
    /// The run: its id, the beginning or the end of it, or its folder. Or --last.
    #[arg(value_name = "RUN", required_unless_present = "last")]
    pub(crate) run: Option<String>,
    /// The newest run.
    #[arg(long, conflicts_with = "run")]
    pub(crate) last: bool,
    /// Folder with run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR")]
    pub(crate) runs_dir: Option<PathBuf>,
}

impl RunRef {
    /// Returns the folder of the run that the arguments name.
    pub(crate) fn folder(&self, file: &FileConfig) -> Result<PathBuf, RunError> {
        find_run(self.run.as_deref(), &runs_folder(self.runs_dir.as_ref(), file))
    }
}

impl ResumeArgs {
    /// Returns what these flags say about the run that is taken up again.
    pub(crate) fn request(&self) -> ResumeRequest {
        let servers = Chosen {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            launch: self.launch.clone(),
            allow_http: self.allow_http,
            ..Chosen::default()
        };
        ResumeRequest { servers, limits: self.limits.limits() }
    }
}

/// Which run, of a batch perhaps.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// The run: its id, the beginning or the end of it, or its folder; or the folder of a batch. Or --last.
    #[arg(value_name = "RUN|BATCH", required_unless_present = "last")]
    pub(crate) run: Option<String>,
    /// Of a batch: the id of the task, or of the run.
    #[arg(value_name = "TASK", conflicts_with = "last")]
    pub(crate) task: Option<String>,
    /// The newest run.
    #[arg(long, conflicts_with = "run")]
    pub(crate) last: bool,
    /// Show the whole transcript, thoughts included; at a terminal in the pager that PAGER names, else in less.
    #[arg(long)]
    pub(crate) full: bool,
    /// Tell the story again, line by line, as the run told it.
    #[arg(long, conflicts_with = "full")]
    pub(crate) replay: bool,
    /// Folder with run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR")]
    pub(crate) runs_dir: Option<PathBuf>,
    /// Of a batch: the run of this roleset.
    #[arg(short, long, value_name = "NAME", requires = "task", help_heading = "Batches")]
    pub(crate) roleset: Option<String>,
    /// The run on this model, as it was named.
    #[arg(short, long, value_name = "NAME", requires = "task", help_heading = "Batches")]
    pub(crate) model: Option<String>,
    /// The run of this arm.
    #[arg(long, value_name = "NAME", requires = "task", help_heading = "Batches")]
    pub(crate) arm: Option<String>,
    /// The run of this seed.
    #[arg(long, value_name = "N", requires = "task", help_heading = "Batches")]
    pub(crate) seed: Option<u64>,
}

impl ShowArgs {
    /// The run of these words: an id or a folder, or the folder of a batch with a run or a task of it.
    pub(crate) fn of(text: &str) -> Self {
        let in_batch = text.rsplit_once('/').filter(|(folder, _)| is_batch(Path::new(folder)));
        let (run, task) = match in_batch {
            Some((folder, task)) => (folder.to_owned(), Some(task.to_owned())),
            None => (text.to_owned(), None),
        };
        let (roleset, model, arm, seed) = (None, None, None, None);
        let (last, full, replay, runs_dir) = (false, false, false, None);
        Self { run: Some(run), task, last, full, replay, runs_dir, roleset, model, arm, seed }
    }

    /// Returns the folder of a batch that the arguments name, if they name one.
    pub(crate) fn batch(&self) -> Option<&Path> {
        let named = self.run.as_deref().map(Path::new).filter(|path| is_batch(path));
        named.or(self.runs_dir.as_deref().filter(|path| is_batch(path)))
    }

    /// Returns which runs of that batch are meant; none, if the arguments do not say it.
    pub(crate) fn pick(&self) -> Option<Pick> {
        let of_folder = self.run.as_ref().filter(|run| !is_batch(Path::new(run)));
        let name = self.task.as_ref().or(of_folder)?.clone();
        let Self { roleset, model, arm, seed, .. } = self.clone();
        Some(Pick { name, roleset, model, arm, seed })
    }

    /// Returns the same of a run that has a folder of its own.
    pub(crate) fn which(&self) -> RunRef {
        RunRef { run: self.run.clone(), last: self.last, runs_dir: self.runs_dir.clone() }
    }
}

/// What is exported.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The folder of a batch, or a run: its id, or its folder.
    #[arg(value_name = "BATCH|RUN")]
    pub(crate) dir: PathBuf,
    /// The archive that is made: journals, results and the manifest, without what they have kept back.
    #[arg(long, value_name = "FILE.tar.gz")]
    pub(crate) bundle: PathBuf,
}

/// What is verified.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) which: RunRef,
    /// For the record of a decision in place of a run: the folder with the reviewers' public keys.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS")]
    pub(crate) keys: Option<PathBuf>,
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
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) which: RunRef,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Go on with this server in place of the journal's, or allow the journal's key to be sent to it.
    #[arg(long, value_name = "URL", env = "CONSENSUS_BASE_URL")]
    pub(crate) base_url: Option<String>,
    /// Start this server for the rest of the run; see `consensus run --help`.
    #[arg(long, value_name = "COMMAND", conflicts_with = "base_url")]
    pub(crate) launch: Option<String>,
    /// The model for --launch.
    #[arg(short, long, env = "CONSENSUS_MODEL")]
    pub(crate) model: Option<String>,
    /// Write the answer to this file as well; it is emptied before the run.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Allow plain http to other machines.
    #[arg(long)]
    pub(crate) allow_http: bool,
    #[command(flatten)]
    pub(crate) ending: EndArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    /// The folder of a batch, or a folder with run folders.
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The newest so many runs alone.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Folder with run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR")]
    pub(crate) runs_dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct RolesetArgs {
    #[command(subcommand)]
    pub(crate) action: RolesetAction,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RolesetAction {
    /// List every roleset that can be named, and where it is.
    List,
    /// Print a roleset with its packs.
    Show {
        /// Name or path.
        #[arg(required_unless_present = "from")]
        roleset: Option<String>,
        /// The roleset that a run was made by: the run's id or folder, or BATCH/RUN.
        #[arg(long, value_name = "RUN", conflicts_with = "roleset")]
        from: Option<String>,
    },
    /// Copy a roleset with its packs, to be changed there; overwrites nothing. A roleset of your own is best given a name of its own.
    Copy {
        /// Name or path.
        #[arg(value_name = "ROLESET")]
        roleset: String,
        /// The new name, which is put into the folder `rolesets`; or a folder, by a path with a slash or one that is there.
        #[arg(value_name = "NAME|FOLDER", default_value = "rolesets/")]
        to: String,
        /// Copy the roleset that this run was made by: ROLESET is then the new name, or a folder.
        #[arg(long, value_name = "RUN", conflicts_with = "to")]
        from: Option<String>,
    },
    /// Report every mistake in rolesets; all that are found, if none is named.
    Check {
        /// Names or paths.
        rolesets: Vec<String>,
    },
}

/// Arguments of `persona`.
#[derive(Args, Debug)]
pub(crate) struct PersonaArgs {
    #[command(subcommand)]
    pub(crate) action: PersonaAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PersonaAction {
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
    #[arg(short, long, env = "CONSENSUS_ROLESET")]
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
