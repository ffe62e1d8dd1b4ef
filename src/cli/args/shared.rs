//! Flags that several commands share: where models are called, what a run may use, and what must not leave the machine.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};

use crate::config::{Chosen, FileConfig};
use crate::journal::Limits;
use crate::otlp::{Collector, HEADERS_VARIABLE, OtlpError};
use crate::run::{CalibrationRequest, MockChoice, RedactRequest};
use crate::sandbox::{Access, Confinement};

/// The headings of help pages, in their order.
pub(super) const TASK: &str = "Task";
pub(super) const MODEL: &str = "Model";
pub(super) const PROTOCOL: &str = "Protocol";
pub(super) const PANELS: &str = "Panels";
pub(super) const LONG: &str = "Long documents";
pub(super) const PRIVACY: &str = "Privacy";
pub(super) const VOTES: &str = "Votes";
pub(super) const SANDBOX: &str = "Sandbox";
pub(super) const LIMITS: &str = "Limits";
pub(super) const OUTPUT: &str = "Output";
pub(super) const TESTING: &str = "Testing";

/// The place of new run folders.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunsDirArgs {
    /// The folder for run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR", hide_env_values = true, help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) runs_dir: Option<PathBuf>,
}

/// The collector of traces.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OtlpArgs {
    /// Send a trace of each run that has ended to this collector of OpenTelemetry, such as <http://localhost:4318>.
    ///
    /// `OTEL_EXPORTER_OTLP_HEADERS` has the headers of each request, such as a key.
    #[arg(long, value_name = "URL", help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) otlp: Option<String>,
    /// Put the texts of prompts and replies into the trace.
    #[arg(long, requires = "otlp", help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) otlp_content: bool,
}

impl OtlpArgs {
    /// Returns the collector, if there is one.
    pub(crate) fn collector(&self) -> Result<Option<Collector>, OtlpError> {
        let Some(url) = &self.otlp else { return Ok(None) };
        let headers = std::env::var(HEADERS_VARIABLE).ok();
        Ok(Some(Collector::new(url, headers.as_deref(), self.otlp_content)?))
    }
}

/// The file for figures.
#[derive(Args, Clone, Debug)]
pub(crate) struct MetricsArgs {
    /// Write the figures of all runs in the runs folder to this file, for Prometheus (node-exporter's textfile
    /// collector).
    #[arg(long, value_name = "FILE", env = "CONSENSUS_METRICS_FILE", hide_env_values = true, help_heading = OUTPUT, hide_short_help = true)]
    pub(crate) metrics_file: Option<PathBuf>,
}

/// Scripted agents, and their answer.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScriptedArgs {
    #[command(flatten)]
    pub(crate) mock: MockArgs,
    /// The answer of the scripted agents.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "mock", help_heading = TESTING, hide_short_help = true)]
    pub(crate) answer: Option<String>,
}

/// Scripted agents, which call no model.
#[derive(Args, Clone, Debug)]
pub(crate) struct MockArgs {
    /// Use scripted agents and no network; --answer sets their answer.
    #[arg(long, conflicts_with = "launch", help_heading = TESTING, hide_short_help = true)]
    pub(crate) mock: bool,
    /// A file of rules for scripted agents, one JSON object a line.
    #[arg(long, value_name = "FILE", conflicts_with = "answer", help_heading = TESTING, hide_short_help = true)]
    pub(crate) mock_script: Option<PathBuf>,
}

/// The place of rolesets.
#[derive(Args, Clone, Debug)]
pub(crate) struct RolesetsArgs {
    /// A folder with rolesets, searched first.
    #[arg(long, global = true, value_name = "DIR", env = "CONSENSUS_ROLESETS_DIR", hide_env_values = true, help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) rolesets_dir: Option<PathBuf>,
}

/// The texts that must not leave the machine.
#[derive(Args, Clone, Debug)]
pub(crate) struct RedactArgs {
    /// Send tokens in place of personal data and secrets.
    ///
    /// Tokens such as `[EMAIL_1]` replace e-mail addresses, international phone numbers, card numbers, IP addresses
    /// and secrets, and the originals are put back into the answer.
    #[arg(long, help_heading = PRIVACY, hide_short_help = true)]
    pub(crate) redact: bool,
    /// Redact every match of this regular expression as well; repeatable.
    #[arg(long, value_name = "REGEX", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = PRIVACY, hide_short_help = true)]
    pub(crate) redact_pattern: Vec<String>,
}

/// The servers on which models are called.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerArgs {
    /// The model, such as ollama:llama3.1.
    ///
    /// It is a NAME or PROVIDER:NAME; `CONSENSUS_MODEL` sets it too.
    /// The providers are openai, openrouter, bedrock, bedrock-openai, vllm, llamacpp, ollama, lmstudio and configured
    /// ones. With --launch, it is the path or name that the server is started with.
    #[arg(short, long, env = "CONSENSUS_MODEL", hide_env = true, help_heading = MODEL)]
    pub(crate) model: Option<String>,
    /// The URL of a server, including /v1.
    ///
    /// Any server with OpenAI's interface will do; `CONSENSUS_BASE_URL` sets it too.
    /// If several servers serve the same model, separate their URLs by commas.
    #[arg(long, value_name = "URL", env = "CONSENSUS_BASE_URL", hide_env = true, help_heading = MODEL)]
    pub(crate) base_url: Option<String>,
    /// Start this server for the run, and end it afterwards.
    ///
    /// The command is llama-server or vllm (with further arguments of theirs), or any command with {port} and {model}. Use it
    /// together with --model PATH or NAME.
    #[arg(long, value_name = "COMMAND", conflicts_with = "base_url", help_heading = MODEL, hide_short_help = true)]
    pub(crate) launch: Option<String>,
    /// Ask for whole replies instead of streams.
    #[arg(long, help_heading = MODEL, hide_short_help = true)]
    pub(crate) no_stream: bool,
    /// Allow plain http to other machines.
    #[arg(long, help_heading = MODEL, hide_short_help = true)]
    pub(crate) allow_http: bool,
    /// Wait this long for a server that is not up yet, such as 5m.
    #[arg(long, value_name = "DURATION", value_parser = super::duration, help_heading = MODEL, hide_short_help = true)]
    pub(crate) wait_server: Option<Duration>,
    /// Call the model even if its server lists other models and not this one.
    #[arg(long, env = "CONSENSUS_NO_MODEL_CHECK", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), help_heading = MODEL, hide_short_help = true)]
    pub(crate) no_model_check: bool,
    /// The longest time for one reply, such as 10m.
    #[arg(long, value_name = "DURATION", value_parser = super::duration, help_heading = MODEL, hide_short_help = true)]
    pub(crate) timeout: Option<Duration>,
}

/// The access of a command that is run in the sandbox.
#[derive(Args, Clone, Debug)]
pub(crate) struct SandboxArgs {
    /// Let commands in the sandbox read this file or folder; repeatable.
    ///
    /// They can read programs and libraries of the system, and the files that they are about. The table `[sandbox]` of
    /// your configuration can name further places, with `read`, `write` and `net`.
    #[arg(long, value_name = "PATH", help_heading = SANDBOX, hide_short_help = true)]
    pub(crate) sandbox_read: Vec<PathBuf>,
    /// Let commands in the sandbox also write this file or folder; repeatable.
    #[arg(long, value_name = "PATH", help_heading = SANDBOX, hide_short_help = true)]
    pub(crate) sandbox_write: Vec<PathBuf>,
    /// Let commands in the sandbox use the network.
    #[arg(long, help_heading = SANDBOX, hide_short_help = true)]
    pub(crate) sandbox_net: bool,
    /// Run commands without a sandbox, with all your rights. The result says so.
    #[arg(long, conflicts_with_all = ["sandbox_read", "sandbox_write", "sandbox_net"], help_heading = SANDBOX, hide_short_help = true)]
    pub(crate) no_sandbox: bool,
}

/// The calibration that gives answers a confidence.
#[derive(Args, Clone, Debug)]
pub(crate) struct CalibrationArgs {
    /// Give the answer a confidence by this file, which `consensus calibrate` makes.
    ///
    /// It must be of the same model, roleset, parameters and kind of answers.
    #[arg(long, value_name = "FILE", help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) calibration: Option<PathBuf>,
    /// Withhold an answer whose confidence is too low to hold this share of wrong answers, such as 0.05.
    ///
    /// A run without an answer ends with exit code 3.
    #[arg(long, value_name = "SHARE", value_parser = super::share, requires = "calibration", help_heading = PROTOCOL, hide_short_help = true)]
    pub(crate) risk: Option<f64>,
}

impl CalibrationArgs {
    /// Returns the request for a calibration, if there is one.
    pub(crate) fn request(&self) -> Option<CalibrationRequest> {
        let path = self.calibration.clone()?;
        Some(CalibrationRequest { path, risk: self.risk })
    }
}

/// The limits of a run.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LimitArgs {
    /// Refuse a call that could bring the sum of prompt and completion tokens over this number.
    #[arg(long, value_name = "N", help_heading = LIMITS, hide_short_help = true)]
    pub(crate) max_tokens_total: Option<u64>,
    /// Refuse a call that could bring the cost over this many US dollars.
    ///
    /// Each model needs a price: a known public one, or one in consensus.toml.
    #[arg(long, value_name = "USD", value_parser = dollars, help_heading = LIMITS, hide_short_help = true)]
    pub(crate) max_cost: Option<u64>,
    /// Stop after this long, such as 30m (resumable).
    #[arg(long, value_name = "DURATION", value_parser = super::duration, help_heading = LIMITS, hide_short_help = true)]
    pub(crate) deadline: Option<Duration>,
}

impl ScriptedArgs {
    pub(crate) fn choice(&self) -> MockChoice {
        MockChoice {
            is_wanted: self.mock.mock,
            script: self.mock.mock_script.clone(),
            answer: self.answer.clone(),
        }
    }
}

impl RedactArgs {
    /// Returns the request for redaction.
    pub(crate) fn request(&self) -> RedactRequest {
        RedactRequest { is_wanted: self.redact, patterns: self.redact_pattern.clone() }
    }
}

impl ServerArgs {
    pub(crate) fn chosen(&self) -> Chosen {
        Chosen {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            launch: self.launch.clone(),
            launched: None,
            refused_at_once: false,
            checks_names: !self.no_model_check,
            wait: self.wait_server,
            no_stream: self.no_stream,
            allow_http: self.allow_http,
            timeout: self.timeout,
            mock_script: None,
            bank: None,
        }
    }
}

impl SandboxArgs {
    /// Returns the way in which commands are run.
    pub(crate) fn confinement(&self, file: &FileConfig) -> Confinement {
        match self.access() {
            Some(own) => Confinement::Walled(file.sandbox.and(own)),
            None => Confinement::None,
        }
    }

    /// Returns the access of commands beside that of the configuration, or `None` if there is no sandbox.
    pub(crate) fn access(&self) -> Option<Access> {
        if self.no_sandbox {
            return None;
        }
        let (read, write) = (self.sandbox_read.clone(), self.sandbox_write.clone());
        Some(Access { read, write, net: self.sandbox_net })
    }
}

impl LimitArgs {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            tokens_total_max: self.max_tokens_total,
            cost_micro_usd_max: self.max_cost,
            deadline_ms: self.deadline.map(whole_millis),
        }
    }
}

pub(super) fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Parses an amount in dollars, and returns it in millionths of a dollar.
fn dollars(text: &str) -> Result<u64, String> {
    let value: f64 = text.trim_start_matches('$').parse().map_err(|_| "not an amount".to_owned())?;
    crate::config::micro_usd(value).ok_or_else(|| "it must be between 0 and 1e9".to_owned())
}

/// A parser of values that have names, for types of other modules.
#[derive(Clone)]
pub(super) struct NamedValues<T>(Vec<(PossibleValue, T)>);

impl<T> NamedValues<T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the parser with a further value.
    pub(super) fn with(mut self, name: impl Into<PossibleValue>, value: T) -> Self {
        self.0.push((name.into(), value));
        self
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for NamedValues<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let names = PossibleValuesParser::new(self.0.iter().map(|(name, _)| name.clone()));
        // Bytes that are no text are refused like any other unknown name.
        let name = names.parse(command, arg, value.to_string_lossy().into_owned().into())?;
        let found = self.0.iter().find(|(known, _)| known.get_name() == name);
        found.map(|(_, value)| value.clone()).ok_or_else(|| clap::Error::new(ErrorKind::InvalidValue))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(|(name, _)| name.clone())))
    }
}
