//! The flags of `consensus run`, for its task, its roleset, its servers and its limits.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValue;
use clap_complete::{ArgValueCandidates, ArgValueCompleter};

use super::shared::{
    CalibrationArgs, LONG, LimitArgs, MetricsArgs, NamedValues, OUTPUT, OtlpArgs, PANELS, PROTOCOL,
    RedactArgs, RolesetsArgs, RunsDirArgs, SANDBOX, SandboxArgs, ScriptedArgs, ServerArgs, TASK, VOTES,
    whole_millis,
};

use crate::cli::completion;
use crate::config::{Chosen, FileConfig, PathSetting};
use crate::run::{
    ChunkRequest, FlagOverride, ParamChanges, ReadInPieces, RolesetSettings, RunRequest, SeatRequest,
    TaskSource, runs_folder,
};
use protocol::core::BasisPoints;
use protocol::text::{CanonicalKind, Constraint};
use protocol::{Interpreter, Method, OnDisagreement, Override, TalkForm, Thinking, VoteStop};

const AFTER_LONG_HELP: &str = "\
Examples:
  consensus run --model ollama:llama3.1 \"How do I boil an egg?\"
  consensus run --model ollama:llama3.1 -f invoice.txt \"What is the total?\"
  consensus run --canonical number \"How much is 17 * 23?\"
  consensus run --choices yes,no \"Is 91 a prime number?\"
  consensus run --constraint sentences=3 \"Explain cosmic rays to children.\"
  consensus run --mock --answer 4 \"How much is 2 + 2?\"";

/// Arguments of `run`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = AFTER_LONG_HELP)]
pub(crate) struct RunArgs {
    /// The task; `-` reads stdin, and words without quotes are joined.
    #[arg(value_name = "PROMPT", conflicts_with_all = ["prompt", "prompt_file"])]
    pub(crate) words: Vec<String>,
    /// The task; `-` reads stdin.
    #[arg(
        short,
        long,
        visible_alias = "task",
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "prompt_file", help_heading = TASK, hide_short_help = true)]
    pub(crate) prompt: Option<String>,
    /// A file that holds the task.
    #[arg(long, value_name = "FILE", help_heading = TASK, hide_short_help = true)]
    pub(crate) prompt_file: Option<PathBuf>,
    /// A text file to work with; repeatable.
    ///
    /// The file is data, not instructions; `-` reads stdin, and so does a pipe with data beside a task.
    #[arg(short = 'f', long = "file", value_name = "FILE", help_heading = TASK)]
    pub(crate) files: Vec<PathBuf>,
    /// Files and folders to search for passages, for rolesets of `council`; repeatable.
    ///
    /// Hidden files are left out, and so are files that a .gitignore in these folders names.
    #[arg(long, value_name = "PATH", help_heading = TASK, hide_short_help = true)]
    pub(crate) docs: Vec<PathBuf>,
    /// The roleset: a name, or a JSON file.
    ///
    /// `CONSENSUS_ROLESET` sets it too.
    /// [default: by the question: the one whose agents a mock script names, `vote_choice` for --choices, `vote_number` for
    /// --canonical number, `json_author_auditor` for --canonical json, `vote_code` for --canonical behaviour, or else `question`]
    #[arg(short, long, env = "CONSENSUS_ROLESET", hide_env = true, help_heading = PROTOCOL, add = ArgValueCompleter::new(completion::rolesets))]
    pub(crate) roleset: Option<String>,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) scripted: ScriptedArgs,
    #[command(flatten)]
    pub(crate) redaction: RedactArgs,
    #[command(flatten)]
    pub(crate) params: ParamArgs,
    #[command(flatten)]
    pub(crate) seats: SeatArgs,
    #[command(flatten)]
    pub(crate) calibration: CalibrationArgs,
    /// Read the documents (-f) in pieces, each in a run of its own, and answer from the facts that are found.
    ///
    /// The answer has the place of each fact. With `auto`, documents are read in pieces if longer than half the server's context
    /// window.
    #[arg(long, value_parser = conditions(), value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "always", help_heading = LONG, hide_short_help = true)]
    pub(crate) map_reduce: ReadInPieces,
    /// The maximum number of tokens in a piece.
    ///
    /// [default: a quarter of the context window and at most 8000, or 2000 if the window is unknown]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(200..=1_000_000), help_heading = LONG, hide_short_help = true)]
    pub(crate) piece_tokens: Option<u64>,
    /// The number of pieces that are read at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = LONG, hide_short_help = true)]
    pub(crate) pieces_at_once: u32,
    /// Make this run a part of the session of this name.
    ///
    /// The agents know the earlier questions and agreed answers of the session, and this run is added to it.
    #[arg(long, value_name = "NAME", help_heading = TASK, hide_short_help = true, add = ArgValueCandidates::new(completion::sessions))]
    pub(crate) session: Option<String>,
    /// The seed of every random draw; the same seed and the same replies in the same order give the same run.
    #[arg(long, help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) runs: RunsDirArgs,
    /// Write the answer to this file as well.
    ///
    /// The file is emptied before the run.
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Print what the run can cost, and run nothing.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) ending: EndArgs,
}

/// The flags for a run's figures and its losses.
#[derive(Args, Clone, Debug)]
pub(crate) struct EndArgs {
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) otlp: OtlpArgs,
    /// Exit with code 8 if the agents agree but the result is degraded.
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) fail_on_degraded: bool,
}

/// The seats of a panel.
#[derive(Args, Clone, Debug)]
pub(crate) struct SeatArgs {
    /// Use only these members of the roleset: names, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "A,B,…", help_heading = PANELS, hide_short_help = true)]
    pub(crate) members: Vec<String>,
    /// Use one member for each of these models, separated by commas, in place of the roleset's members; in a vote, every voter on each.
    #[arg(long, value_delimiter = ',', value_name = "MODEL,…", conflicts_with_all = ["members", "model"], help_heading = PANELS, hide_short_help = true)]
    pub(crate) models: Vec<String>,
    /// Use this many copies of the first member: the same model is asked several times.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=16), conflicts_with = "models", help_heading = PANELS, hide_short_help = true)]
    pub(crate) self_panel: Option<u32>,
    /// Add a member: a built-in persona by name, or a line that describes it; repeatable.
    ///
    /// An example of a line is "a contrary physicist who looks at everything sideways".
    #[arg(long, value_name = "NAME|LINE", help_heading = PANELS, hide_short_help = true, add = ArgValueCandidates::new(completion::personas))]
    pub(crate) persona: Vec<String>,
}

fn conditions() -> NamedValues<ReadInPieces> {
    NamedValues::new()
        .with("auto", ReadInPieces::Auto)
        .with("always", ReadInPieces::Always)
        .with("never", ReadInPieces::Never)
}

/// The parameters that override those of the roleset.
#[derive(Args, Clone, Debug)]
pub(crate) struct ParamArgs {
    /// The maximum number of rounds.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=200), help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) max_rounds: Option<u32>,
    /// The threshold that a council, a panel or the certainty of a vote must reach, between 0 and 1.
    #[arg(long, value_name = "X", value_parser = share, allow_negative_numbers = true, help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) threshold: Option<BasisPoints>,
    /// Where agents reason before they commit.
    #[arg(long, value_parser = thinking(), help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) thinking: Option<Thinking>,
    /// The number of further blind drafts from each agent if the first two differ.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=20), help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) resample: Option<u32>,
    /// The source of a council's confidences.
    ///
    /// It is the number that each member writes, or the probability of the word with which it confirms its text, if the server
    /// reports that.
    #[arg(long, value_parser = confidences(), help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) confidence: Option<bool>,
    /// Whether agents talk or judge in any case, or their blind answers are counted first.
    #[arg(long, value_parser = talks(), help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) talk: Option<TalkForm>,
    /// When the samples of a vote are enough.
    #[arg(long, value_parser = stop_rules(), help_heading = VOTES, hide_short_help = true)]
    pub(crate) stop: Option<VoteStop>,
    /// The maximum number of samples of a vote.
    #[arg(long, alias = "samples", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = VOTES, hide_short_help = true)]
    pub(crate) samples_max: Option<u32>,
    /// The number of samples of a vote that are asked for at once [default: one of each voter, and no more than are needed].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = VOTES, hide_short_help = true)]
    pub(crate) ahead: Option<u32>,
    /// The voters that are asked: those that answer in words, those that write a program, or both.
    #[arg(long, value_delimiter = ',', value_parser = modes(), value_name = "MODE,…", help_heading = VOTES, hide_short_help = true)]
    pub(crate) modes: Vec<Method>,
    /// The answer if votes or counted answers do not settle.
    #[arg(long, value_parser = answers_on_disagreement(), help_heading = VOTES, hide_short_help = true)]
    pub(crate) on_disagreement: Option<OnDisagreement>,
    /// A JSON file with the weights of a council's members, such as {"pathos": 0.2, "logos": 0.4, "ethos": 0.4}.
    #[arg(long, value_name = "FILE", help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) weights_from: Option<PathBuf>,
    /// How answers are compared.
    ///
    /// The decimal mark of a `number` is a point, unless the roleset sets a comma.
    #[arg(long, value_parser = canonical_kinds(), help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) canonical: Option<CanonicalKind>,
    /// The allowed answers, separated by commas.
    ///
    /// This implies --canonical choice.
    #[arg(long, value_delimiter = ',', value_name = "A,B,…", help_heading = PROTOCOL)]
    pub(crate) choices: Vec<String>,
    /// A rule for the answer, such as words=10..50.
    ///
    /// Code checks the final text by it; repeatable. The rules are `sentences=N`, `words=MIN..MAX`, `characters=..MAX`, `lines=N`,
    /// `paragraphs=N`, `bullets=N`, `mentions=WORD:MIN..MAX`, `letters=lower` or `upper`, `quoted`, `json`, `language=CODE`,
    /// `contains=TEXT`, `excludes=TEXT`, `starts_with=TEXT`, `ends_with=TEXT`, `keys=A,B`, `schema=JSON` and `integer`.
    #[arg(long = "constraint", value_name = "RULE", value_parser = Constraint::parse, help_heading = PROTOCOL)]
    pub(crate) constraints: Vec<Constraint>,
    /// Do not check rules that the task states in plain words, such as "in three sentences".
    #[arg(long, help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) no_inferred_constraints: bool,
    /// The maximum number of tokens in one reply, for every agent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=100_000), help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) max_tokens: Option<u32>,
    /// The sampling temperature of every agent, from 0 to 2.
    #[arg(long, value_parser = temperature, help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) temperature: Option<f64>,
    /// Change a setting of the roleset by its path, such as params.adopt=text; repeatable.
    #[arg(long, value_name = "PATH=VALUE", value_parser = PathSetting::parse, help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) set: Vec<PathSetting>,
    /// The interpreter of programs that agents write.
    ///
    /// Values of the one in this program are the same on every machine, to 12 digits, so `verify` derives them again.
    #[arg(long, value_parser = interpreters(), value_name = "WHICH", help_heading = SANDBOX, hide_short_help = true)]
    pub(crate) interpreter: Option<Interpreter>,
    /// A command that every final text must pass, such as "python3 test.py {file}".
    ///
    /// The text comes on standard input and in the file that {file} stands for, with one line feed. In a batch, {task} stands
    /// for the id of the task. Exit code 0 passes the text. Otherwise the text is refused, and its author reads what the command
    /// printed. The command runs in the sandbox, in the current folder, which it can only read.
    #[arg(long, value_name = "COMMAND", help_heading = SANDBOX)]
    pub(crate) check: Option<String>,
    /// Check no text, whatever the roleset and the configuration say.
    #[arg(long, conflicts_with = "check", help_heading = SANDBOX, hide_short_help = true)]
    pub(crate) no_check: bool,
    /// The longest time for the command of --check [default: 30s].
    #[arg(long, value_name = "DURATION", value_parser = super::time_limit, help_heading = SANDBOX, hide_short_help = true)]
    pub(crate) check_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

impl RunArgs {
    /// Returns the request for a run, from these flags and, where a flag is absent, from the configuration. `seed` is used if
    /// the flags set no seed.
    pub(crate) fn request(&self, file: &FileConfig, seed: u64) -> RunRequest {
        let task = TaskSource {
            prompt: self.prompt.clone(),
            words: self.words.clone(),
            prompt_file: self.prompt_file.clone(),
            files: self.files.clone(),
        };
        RunRequest {
            task,
            docs: self.docs.clone(),
            roleset: self.roleset.clone(),
            settings: RolesetSettings {
                rolesets_dir: self.rolesets.rolesets_dir.clone(),
                servers: Chosen { refused_at_once: true, ..self.server.chosen() },
                mock: self.scripted.choice(),
                redaction: self.redaction.request(),
                params: self.params.changes(),
                no_demands: self.params.no_inferred_constraints,
                seats: self.seats.request(),
                calibration: self.calibration.request(),
                limits: self.limits.limits(),
            },
            confinement: self.params.sandbox.confinement(file),
            chunks: ChunkRequest {
                map_reduce: self.map_reduce,
                tokens_max: self.piece_tokens,
                at_once: self.pieces_at_once,
            },
            session: self.session.clone(),
            seed: self.seed.unwrap_or(seed),
            runs_dir: runs_folder(self.runs.runs_dir.as_ref(), file),
        }
    }
}

impl SeatArgs {
    /// Returns the request for seats.
    pub(crate) fn request(&self) -> SeatRequest {
        let Self { members, models, self_panel, persona } = self;
        SeatRequest {
            members: members.clone(),
            models: models.clone(),
            // The flag accepts 16 at most, so that nothing is cut off.
            copies: self_panel.map(|copies| copies as usize),
            personas: persona.clone(),
        }
    }
}

impl ParamArgs {
    /// Returns the change that each flag makes. This is the one list of flags whose values are parameters of a protocol. The file of
    /// `--weights-from` is read where parameters are set.
    pub(crate) fn changes(&self) -> ParamChanges {
        // Not every protocol with thoughts accepts them in a field.
        let thinking = if self.thinking == Some(Thinking::Field) { "--thinking field" } else { "--thinking" };
        let mut constraints = None;
        if !self.constraints.is_empty() || self.canonical.is_some() || !self.choices.is_empty() {
            constraints = Some(Override::Constraints(self.constraints.clone()));
        }
        let mut modes = self.modes.clone();
        modes.sort_unstable();
        modes.dedup();
        let modes = if modes.is_empty() { None } else { Some(Override::Modes(modes)) };
        // `--talk` decides which of the others have an effect, so it comes first.
        let given = [
            ("--talk", self.talk.map(Override::Talk)),
            (thinking, self.thinking.map(Override::Thinking)),
            ("--resample", self.resample.map(Override::Resample)),
            ("--confidence", self.confidence.map(Override::MeasuredConfidence)),
            ("--threshold", self.threshold.map(Override::Threshold)),
            ("--constraint, --canonical or --choices", constraints),
            ("--max-rounds", self.max_rounds.map(Override::MaxRounds)),
            ("--stop", self.stop.map(Override::Stop)),
            ("--samples-max", self.samples_max.map(Override::SamplesMax)),
            ("--ahead", self.ahead.map(Override::Ahead)),
            ("--modes", modes),
            ("--on-disagreement", self.on_disagreement.map(Override::OnDisagreement)),
        ];
        let mut overrides = Vec::new();
        for (flag, change) in given {
            overrides.extend(change.map(|change| FlagOverride { flag, change }));
        }
        ParamChanges {
            overrides,
            path_settings: self.set.clone(),
            weights_from: self.weights_from.clone(),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            canonical: self.canonical,
            choices: self.choices.clone(),
            check: self.check.clone(),
            check_timeout_ms: self.check_timeout.map(whole_millis),
            no_check: self.no_check,
            interpreter: self.interpreter,
        }
    }
}

fn thinking() -> NamedValues<Thinking> {
    NamedValues::new()
        .with("free", Thinking::Free)
        .with("field", Thinking::Field)
        .with("none", Thinking::None)
}

/// Returns the sources of a council's confidences. One that is measured is true.
fn confidences() -> NamedValues<bool> {
    NamedValues::new().with("verbalised", false).with("logprob", true)
}

fn talks() -> NamedValues<TalkForm> {
    let differing = "Blind answers are counted or compared first";
    NamedValues::new()
        .with(PossibleValue::new("always").help("As the protocol describes it"), TalkForm::Always)
        .with(PossibleValue::new("differing").help(differing), TalkForm::Differing)
}

fn stop_rules() -> NamedValues<VoteStop> {
    let fast = "As soon as two unlike voters agree at the first try, or the lead is 90 % certain";
    let none = "All samples are drawn, and the most votes decide";
    NamedValues::new()
        .with(PossibleValue::new("fast").help(fast), VoteStop::Fast)
        .with(PossibleValue::new("sure").help("As soon as the lead is 95 % certain"), VoteStop::Sure)
        .with(PossibleValue::new("none").help(none), VoteStop::None)
}

fn modes() -> NamedValues<Method> {
    NamedValues::new()
        .with(PossibleValue::new("words").help("Free text that ends with an answer"), Method::Words)
        .with(PossibleValue::new("program").help("A program that is run"), Method::Program)
}

fn answers_on_disagreement() -> NamedValues<OnDisagreement> {
    let leader = "The leading one, and the result is degraded";
    NamedValues::new()
        .with(PossibleValue::new("abstain").help("None; exit code 3"), OnDisagreement::Abstain)
        .with(PossibleValue::new("leader").help(leader), OnDisagreement::Leader)
}

fn interpreters() -> NamedValues<Interpreter> {
    NamedValues::new().with("embedded", Interpreter::Embedded).with("python3", Interpreter::Python3)
}

pub(super) fn canonical_kinds() -> NamedValues<CanonicalKind> {
    NamedValues::new()
        .with("text", CanonicalKind::Text)
        .with("lines", CanonicalKind::Lines)
        .with("number", CanonicalKind::Number)
        .with("json", CanonicalKind::Json)
        .with("choice", CanonicalKind::Choice)
        .with("verbatim", CanonicalKind::Verbatim)
        .with("behaviour", CanonicalKind::Behaviour)
}

fn temperature(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=2.0).contains(&value) { Ok(value) } else { Err("it must be between 0 and 2".to_owned()) }
}

fn share(text: &str) -> Result<BasisPoints, String> {
    BasisPoints::exactly(text.parse().map_err(|_| "not a number".to_owned())?)
}
