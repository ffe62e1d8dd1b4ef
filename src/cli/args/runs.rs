//! The flags of commands on recorded runs: the choice of a run, and what to do with it.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::ArgValueCompleter;

use super::global::Format;
use super::run::EndArgs;
use super::shared::{LimitArgs, SandboxArgs};
use crate::batch::{RunSelector, is_batch};
use crate::cli::completion;
use crate::config::{Chosen, FileConfig};
use crate::run::{ResumeRequest, RunError, find_resumable, find_run, runs_folder};

/// The choice of a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunRef {
    /// The run: its id, the beginning or the end of its id, or its folder. Or give --last.
    #[arg(value_name = "RUN", required_unless_present = "last", add = ArgValueCompleter::new(completion::runs))]
    pub(crate) run: Option<String>,
    /// Use the newest run; `resume` takes the newest that it can resume.
    #[arg(long, conflicts_with = "run")]
    pub(crate) last: bool,
    /// The folder with run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR", hide_env_values = true)]
    pub(crate) runs_dir: Option<PathBuf>,
}

impl RunRef {
    /// Returns the folder of the run that the arguments name.
    pub(crate) fn folder(&self, file: &FileConfig) -> Result<PathBuf, RunError> {
        find_run(self.run.as_deref(), &runs_folder(self.runs_dir.as_ref(), file))
    }
}

impl ResumeArgs {
    /// Returns the folder of the run that the arguments name; with --last, the newest that can be resumed.
    pub(crate) fn folder(&self, file: &FileConfig) -> Result<PathBuf, RunError> {
        if self.which.last {
            return find_resumable(&runs_folder(self.which.runs_dir.as_ref(), file));
        }
        self.which.folder(file)
    }

    /// Returns the request to resume a run.
    pub(crate) fn request(&self, file: &FileConfig) -> ResumeRequest {
        let servers = Chosen {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            launch: self.launch.clone(),
            allow_http: self.allow_http,
            ..Chosen::default()
        };
        ResumeRequest {
            servers,
            limits: self.limits.limits(),
            check: self.check.clone(),
            confinement: self.sandbox.confinement(file),
        }
    }
}

/// The choice of a run, which may be a run of a batch.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// The run: its id, the beginning or the end of its id, or its folder; or the folder of a batch [default: the newest run].
    #[arg(value_name = "RUN|BATCH", add = ArgValueCompleter::new(completion::runs))]
    pub(crate) run: Option<String>,
    /// The id of the task or of the run, in a batch.
    #[arg(value_name = "TASK", conflicts_with = "last")]
    pub(crate) task: Option<String>,
    /// Use the newest run.
    #[arg(long, conflicts_with = "run")]
    pub(crate) last: bool,
    /// Show the whole transcript, thoughts included; on a terminal, in the pager that PAGER names, or else in less.
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the story again, line by line, as the run printed it.
    #[arg(long, conflicts_with = "full")]
    pub(crate) replay: bool,
    /// The format of stdout: the answer and who said what, the result (json), the records (jsonl), or a page that loads nothing (html).
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = shown())]
    pub(crate) format: Format,
    /// The folder with run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR", hide_env_values = true)]
    pub(crate) runs_dir: Option<PathBuf>,
    /// Show the run of this roleset.
    #[arg(short, long, value_name = "NAME", requires = "task", help_heading = "Batches", add = ArgValueCompleter::new(completion::rolesets))]
    pub(crate) roleset: Option<String>,
    /// Show the run on this model, by the name that the batch used.
    #[arg(short, long, value_name = "NAME", requires = "task", help_heading = "Batches")]
    pub(crate) model: Option<String>,
    /// Show the run of this arm.
    #[arg(long, value_name = "NAME", requires = "task", help_heading = "Batches")]
    pub(crate) arm: Option<String>,
    /// Show the run of this seed.
    #[arg(long, value_name = "N", requires = "task", help_heading = "Batches")]
    pub(crate) seed: Option<u64>,
}

/// Returns a parser for the formats of a run.
fn shown() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "json", "jsonl", "html"]).map(|name| match name.as_str() {
        "json" => Format::Json,
        "jsonl" => Format::Jsonl,
        "html" => Format::Html,
        _ => Format::Text,
    })
}

impl ShowArgs {
    /// Returns the arguments for this text: an id, a folder, or the folder of a batch with a run or a task in it.
    pub(crate) fn of(text: &str) -> Self {
        let in_batch = text.rsplit_once('/').filter(|(folder, _)| is_batch(Path::new(folder)));
        let (run, task) = match in_batch {
            Some((folder, task)) => (folder.to_owned(), Some(task.to_owned())),
            None => (text.to_owned(), None),
        };
        let (roleset, model, arm, seed) = (None, None, None, None);
        let (last, full, replay, format, runs_dir) = (false, false, false, Format::Text, None);
        Self { run: Some(run), task, last, full, replay, format, runs_dir, roleset, model, arm, seed }
    }

    /// Returns the folder of a batch that the arguments name, if they name one.
    pub(crate) fn batch(&self) -> Option<&Path> {
        let named = self.run.as_deref().map(Path::new).filter(|path| is_batch(path));
        named.or(self.runs_dir.as_deref().filter(|path| is_batch(path)))
    }

    /// Returns the choice of runs in that batch, or `None` if the arguments make no choice.
    pub(crate) fn selector(&self) -> Option<RunSelector> {
        let of_folder = self.run.as_ref().filter(|run| !is_batch(Path::new(run)));
        let name = self.task.as_ref().or(of_folder)?.clone();
        let Self { roleset, model, arm, seed, .. } = self.clone();
        Some(RunSelector { name, roleset, model, arm, seed })
    }

    /// Returns the choice of a run that has a folder of its own.
    pub(crate) fn which(&self) -> RunRef {
        RunRef { run: self.run.clone(), last: self.last, runs_dir: self.runs_dir.clone() }
    }
}

/// Arguments of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The folder of a batch, or a run: its id, or its folder.
    #[arg(value_name = "BATCH|RUN", add = ArgValueCompleter::new(completion::runs))]
    pub(crate) dir: PathBuf,
    /// The archive to write: journals, results and the manifest, without the originals of redacted texts.
    #[arg(long, value_name = "FILE.tar.gz")]
    pub(crate) bundle: PathBuf,
}

/// Arguments of `verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) which: RunRef,
    /// The folder with the reviewers' public keys, for the record of a decision.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_KEYS", hide_env_values = true)]
    pub(crate) keys: Option<PathBuf>,
    /// Run the checks of final texts again, in the current folder, and compare their verdicts.
    ///
    /// Programs that `python3` ran are run again as well, if the version is the same.
    ///
    /// The commands come from the record, and run in the sandbox. For a record outside your own folder of runs, repeat the
    /// command with --check.
    #[arg(long)]
    pub(crate) rerun_checks: bool,
    /// Allow the check of the record, a command, by repeating it.
    #[arg(long, value_name = "COMMAND", requires = "rerun_checks")]
    pub(crate) check: Option<String>,
    /// Accept journals of a batch from which runs were removed, as from those of a server with --keep.
    ///
    /// Without this flag, removed runs are damage in the folder of any other batch.
    #[arg(long, conflicts_with = "last")]
    pub(crate) with_gaps: bool,
    /// Make this calibration again of the runs of a batch or an evaluation, and compare the two.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["last", "rerun_checks"])]
    pub(crate) calibration: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) which: RunRef,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Use this server in place of the journal's, or allow the journal's key to be sent to it.
    #[arg(long, value_name = "URL", env = "CONSENSUS_BASE_URL", hide_env_values = true)]
    pub(crate) base_url: Option<String>,
    /// Start this server for the rest of the run; see `consensus run --help`.
    #[arg(long, value_name = "COMMAND", conflicts_with = "base_url")]
    pub(crate) launch: Option<String>,
    /// The model for --launch.
    #[arg(short, long, env = "CONSENSUS_MODEL", hide_env_values = true)]
    pub(crate) model: Option<String>,
    /// Write the answer to this file as well; the file is emptied before the run.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Allow the check of the run, a command, by repeating it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Option<String>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
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
    /// List only this many of the newest runs.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// The folder with run folders.
    #[arg(long, value_name = "DIR", env = "CONSENSUS_RUNS_DIR", hide_env_values = true)]
    pub(crate) runs_dir: Option<PathBuf>,
}
