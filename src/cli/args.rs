//! What may be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::output::{Color, Format};
use crate::protocol::Thinking;
use crate::protocol::council::{ConfidenceFrom, Share};
use crate::text::{CanonicalKind, Constraint};

const AFTER_HELP: &str = "\
Examples:
  consensus run --mock --task \"2+2\" --answer \"4\"
  consensus run --roleset writer_physicist --prompt \"Explain cosmic rays to kids.\"
  consensus run --roleset solver_checker --model ollama:llama3.1 -f invoice.txt \"What is the total?\"
  consensus run --launch llama-server --model ~/models/qwen.gguf --prompt \"Why is the sky blue?\"
  consensus verify --last

Exit codes: 0 agreed, 1 internal error, 2 usage or roleset, 3 no agreement, 5 budget or deadline,
6 provider unusable, 7 does not verify, 8 degraded (with --fail-on-degraded), 130 interrupted.";

/// Language-model agents work under a strict protocol until they agree, and can prove it afterwards.
#[derive(Debug, Parser)]
#[command(name = "consensus", version, after_help = AFTER_HELP, propagate_version = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Flags of every command.
#[derive(Args, Debug)]
pub(super) struct Global {
    /// What stdout carries: the answer, one JSON document, or one JSON event a line.
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// Say nothing on stderr but errors.
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Log more; twice for everything. RUST_LOG sets it finely.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Colour on stderr. NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(super) color: Color,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Let agents work on a task until they agree.
    Run(Box<RunArgs>),
    /// Go on with an interrupted, failed or unaffordable run.
    Resume(ResumeArgs),
    /// List the runs.
    Runs(RunsArgs),
    /// Print a run's transcript.
    Show(RunRef),
    /// Derive a run's outcome again from its journal, offline, and check everything in it.
    Verify(RunRef),
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
        /// The most tokens that the passages may have together.
        #[arg(long, value_name = "N", default_value_t = 1500)]
        tokens: u64,
    },
}

/// What a run is made of.
#[derive(Args, Clone, Debug)]
pub(super) struct RunArgs {
    /// The task, as one argument; `-` reads stdin.
    #[arg(value_name = "PROMPT", conflicts_with_all = ["prompt", "prompt_file"])]
    pub(super) positional: Option<String>,
    /// The task; `-` reads stdin.
    #[arg(
        short,
        long,
        visible_alias = "task",
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "prompt_file"
    )]
    pub(super) prompt: Option<String>,
    /// A file that holds the task.
    #[arg(long, value_name = "FILE")]
    pub(super) prompt_file: Option<PathBuf>,
    /// A text file to work with, as data; `-` reads stdin; may be given more than once.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Files and folders to search for passages, for rolesets of `council`; may be given more than once.
    #[arg(long, value_name = "PATH")]
    pub(super) docs: Vec<PathBuf>,
    /// The roleset: a name, or the path of its JSON file.
    #[arg(short, long, env = "CONSENSUS_ROLESET")]
    pub(super) roleset: Option<String>,
    /// A folder with rolesets, searched first.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_ROLESETS_DIR")]
    pub(super) rolesets_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Use scripted agents that answer --answer, and no network.
    #[arg(long, conflicts_with = "launch")]
    pub(super) mock: bool,
    /// What the scripted agents answer.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "mock")]
    pub(super) answer: Option<String>,
    /// A file of rules for scripted agents, one JSON object a line.
    #[arg(long, value_name = "FILE", conflicts_with = "answer")]
    pub(super) mock_script: Option<PathBuf>,
    #[command(flatten)]
    pub(super) redaction: RedactArgs,
    #[command(flatten)]
    pub(super) params: ParamArgs,
    #[command(flatten)]
    pub(super) seats: SeatArgs,
    /// Seed of every draw; the same seed and replies give the same run.
    #[arg(long)]
    pub(super) seed: Option<u64>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    /// Folder for run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR")]
    pub(super) runs_dir: Option<PathBuf>,
    /// Write the answer to this file as well; it is emptied before the run.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the most that the run can cost, and do not run.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Write the figures of all runs in the runs folder to this file, for Prometheus (node-exporter's textfile
    /// collector).
    #[arg(long, value_name = "FILE", env = "CONSENSUS_METRICS_FILE")]
    pub(super) metrics_file: Option<PathBuf>,
    /// Exit with 8 if the run agrees but something was lost on the way.
    #[arg(long)]
    pub(super) fail_on_degraded: bool,
}

/// Who sits on a panel.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Panels")]
pub(super) struct SeatArgs {
    /// The only members of the roleset that take part, by name, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "A,B,…")]
    pub(super) members: Vec<String>,
    /// One member for each of these models, separated by commas, in place of the roleset's.
    #[arg(long, value_delimiter = ',', value_name = "MODEL,…", conflicts_with_all = ["members", "model"])]
    pub(super) models: Vec<String>,
    /// So many copies of the first member: the same model asked several times.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=16), conflicts_with = "models")]
    pub(super) self_panel: Option<u32>,
    /// One more member: a built-in persona by name, or a line that says who it is, such as "a contrary physicist who
    /// looks at everything sideways"; may be given more than once.
    #[arg(long, value_name = "NAME|LINE")]
    pub(super) persona: Vec<String>,
}

/// What must not leave the machine.
#[derive(Args, Clone, Debug)]
pub(super) struct RedactArgs {
    /// Send tokens such as `[EMAIL_1]` in place of e-mail addresses, phone numbers, IBANs, card numbers, IP
    /// addresses and secrets, and put the originals back in the answer.
    #[arg(long)]
    pub(super) redact: bool,
    /// Redact whatever this regular expression finds as well; may be given more than once.
    #[arg(long, value_name = "REGEX")]
    pub(super) redact_pattern: Vec<String>,
}

/// Where models are called.
#[derive(Args, Clone, Debug)]
pub(super) struct ServerArgs {
    /// The model: NAME, or PROVIDER:NAME with openai, openrouter, vllm, llamacpp, ollama, lmstudio or a
    /// configured one. With --launch, the path or name that the server is started with.
    #[arg(short, long, env = "CONSENSUS_MODEL")]
    pub(super) model: Option<String>,
    /// URL of an OpenAI-compatible server, up to and including /v1.
    #[arg(long, value_name = "URL", env = "CONSENSUS_BASE_URL")]
    pub(super) base_url: Option<String>,
    /// Start this server for the run, and end it after it: llama-server or vllm (with further
    /// arguments of theirs), or a command with {port} and {model}. Goes with --model PATH or NAME.
    #[arg(long, value_name = "COMMAND", conflicts_with = "base_url")]
    pub(super) launch: Option<String>,
    /// Ask for whole replies instead of streams.
    #[arg(long)]
    pub(super) no_stream: bool,
    /// Allow plain http to other machines.
    #[arg(long)]
    pub(super) allow_http: bool,
    /// How long one reply may take, such as 10m.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) timeout: Option<Duration>,
}

/// Parameters that override the roleset's.
#[derive(Args, Clone, Debug)]
pub(super) struct ParamArgs {
    /// Rounds at most.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(super) max_rounds: Option<u32>,
    /// What a council or panel must reach, between 0 and 1.
    #[arg(long, value_name = "X", value_parser = share)]
    pub(super) threshold: Option<Share>,
    /// Where agents reason before they commit.
    #[arg(long, value_enum)]
    pub(super) thinking: Option<ThinkingArg>,
    /// Further blind drafts from each agent when the first two differ.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(super) resample: Option<u32>,
    /// Where a council's confidences are taken from: what each member says about itself, or the probability of the
    /// word by which it stands for its text, if the server tells it.
    #[arg(long, value_enum)]
    pub(super) confidence: Option<ConfidenceArg>,
    /// A JSON file with the weights of a council's members, such as {"pathos": 0.2, "logos": 0.4, "ethos": 0.4}.
    #[arg(long, value_name = "FILE")]
    pub(super) weights_from: Option<PathBuf>,
    /// Which differences between texts do not count.
    #[arg(long, value_enum)]
    pub(super) canonical: Option<CanonicalArg>,
    /// The allowed answers, separated by commas; implies --canonical choice.
    #[arg(long, value_delimiter = ',', value_name = "A,B,…")]
    pub(super) choices: Vec<String>,
    /// A rule that code checks on the final text; repeatable. One of sentences=N, words=MIN..MAX,
    /// characters=..MAX, lines=N, contains=TEXT, excludes=TEXT, `starts_with=TEXT`,
    /// `ends_with=TEXT`, keys=A,B, integer.
    #[arg(long = "constraint", value_name = "RULE", value_parser = Constraint::parse)]
    pub(super) constraints: Vec<Constraint>,
    /// Tokens of one reply at most, for every agent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=100_000))]
    pub(super) max_tokens: Option<u32>,
    /// Sampling temperature of every agent, 0 to 2.
    #[arg(long, value_parser = temperature)]
    pub(super) temperature: Option<f64>,
}

/// What a run may use.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct LimitArgs {
    /// Refuse a call that could bring prompt and completion tokens over this.
    #[arg(long, value_name = "N")]
    pub(super) max_tokens_total: Option<u64>,
    /// Refuse a call that could bring the cost over this many US dollars; needs prices in consensus.toml.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(super) max_cost: Option<u64>,
    /// Put the run down after this time, such as 30m.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) deadline: Option<Duration>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ThinkingArg {
    Free,
    Field,
    None,
}

impl From<ThinkingArg> for Thinking {
    fn from(arg: ThinkingArg) -> Self {
        match arg {
            ThinkingArg::Free => Self::Free,
            ThinkingArg::Field => Self::Field,
            ThinkingArg::None => Self::None,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ConfidenceArg {
    Verbalised,
    Logprob,
}

impl From<ConfidenceArg> for ConfidenceFrom {
    fn from(arg: ConfidenceArg) -> Self {
        match arg {
            ConfidenceArg::Verbalised => Self::Verbalised,
            ConfidenceArg::Logprob => Self::Logprob,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum CanonicalArg {
    Text,
    Lines,
    Number,
    Json,
    Choice,
    Verbatim,
}

impl From<CanonicalArg> for CanonicalKind {
    fn from(arg: CanonicalArg) -> Self {
        match arg {
            CanonicalArg::Text => Self::Text,
            CanonicalArg::Lines => Self::Lines,
            CanonicalArg::Number => Self::Number,
            CanonicalArg::Json => Self::Json,
            CanonicalArg::Choice => Self::Choice,
            CanonicalArg::Verbatim => Self::Verbatim,
        }
    }
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
    /// A folder with rolesets, searched first.
    #[arg(long, global = true, value_name = "DIR", env = "CONSENSUS_ROLESETS_DIR")]
    pub(super) rolesets_dir: Option<PathBuf>,
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
    /// The roleset whose servers are examined.
    #[arg(short, long, env = "CONSENSUS_ROLESET")]
    pub(super) roleset: Option<String>,
    /// A folder with rolesets, searched first.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_ROLESETS_DIR")]
    pub(super) rolesets_dir: Option<PathBuf>,
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

fn temperature(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=2.0).contains(&value) { Ok(value) } else { Err("it must be between 0 and 2".to_owned()) }
}

fn share(text: &str) -> Result<Share, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Share::new(value).ok_or_else(|| "it must be between 0 and 1".to_owned())
}

/// Reads dollars as millionths of a dollar.
fn dollars(text: &str) -> Result<u64, String> {
    let value: f64 = text.trim_start_matches('$').parse().map_err(|_| "not an amount".to_owned())?;
    crate::config::micro_usd(value).ok_or_else(|| "it must be between 0 and 1e9".to_owned())
}
