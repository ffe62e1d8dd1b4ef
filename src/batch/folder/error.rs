//! The errors that stop a batch.

use std::path::{Path, PathBuf};

use thiserror::Error;
use uuid::Uuid;

use super::shard_id::ShardOf;
use crate::engine::{EngineError, ReplayError};
use crate::files::is_damage;
use crate::journal::JournalError;
use crate::otlp::OtlpError;
use crate::run::RunError;
use crate::sandbox::SandboxError;
use protocol::core::{ExitCode, is_unusable};

/// A batch that cannot continue. Durable records remain, and the same command resumes the batch.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The request cannot be carried out.
    #[error("{0}")]
    Usage(String),
    /// The rolesets or their servers cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The sandbox does not work.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Traces cannot be sent.
    #[error(transparent)]
    Traces(#[from] OtlpError),
    /// The file of lines that cannot be run cannot be written.
    #[error("cannot write `{path}`")]
    Refused { path: PathBuf, source: std::io::Error },
    /// The journal cannot be written, read or trusted, or another process holds it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A run cannot continue, for a reason that all others share.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The file system refused.
    #[error("cannot {action} `{path}`")]
    Io {
        /// The action that was tried.
        action: &'static str,
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no batch in the folder.
    #[error("there is no batch in `{0}`: it has no file `batch.json`")]
    NoBatch(PathBuf),
    /// Runs of a batch are not removed, because the next command would make them again.
    #[error("`{}` is the folder of a batch, which would make its runs again; only the runs of a server can be removed", .0.display())]
    OfBatch(PathBuf),
    /// No batch begins where a server removes old runs: it would make those of its runs again that are gone.
    #[error("`{}` is the folder of a server that removes old runs, and a batch would lose its own; give another --output", .0.display())]
    OfServer(PathBuf),
    /// A run met a fault of this program.
    #[error("a fault of this program ended the run: {0}; please report it")]
    Panic(String),
    /// The tasks cannot be read to their end.
    #[error("the tasks cannot be read any further")]
    Tasks(#[source] std::io::Error),
    /// A file of the batch is not what this program writes.
    #[error(
        "`{path}` line {line} is not a result: {why}; remove it, and the same batch command writes it again from the journal"
    )]
    Results {
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The fault in the line.
        why: String,
    },
    /// Results state how runs ended, and the journal does not.
    #[error(
        "`{results}` has {missing} results that `{journal}` does not confirm: the journal was cut, replaced or lost; restore it, or remove the results to make their runs again"
    )]
    Evidence {
        /// The results file.
        results: PathBuf,
        journal: PathBuf,
        /// The number of results without a record.
        missing: usize,
    },
    /// Runs that would send text which earlier runs kept back.
    #[error(
        "the batch has runs of `{roleset}` with --redact, and new runs would send the redacted text; give --redact, or another --output"
    )]
    Private { roleset: String },
    /// A file belongs to a shard that the batch does not have, or its records are missing.
    #[error(
        "`{path}` contradicts the batch: {why}; restore what was changed or lost, or move the file and its runs out of the folder"
    )]
    Stray { path: PathBuf, why: String },
    /// The manifest of a batch cannot be read.
    #[error(
        "`{path}` does not describe a batch: {why}; remove the file, and give the same --shard as before"
    )]
    Manifest {
        path: PathBuf,
        /// The fault in the manifest.
        why: String,
    },
    /// The models cannot be called, and more runs would only fail.
    #[error(
        "further calls would fail as the last ones did, so no more runs begin: {why}; mend that and run the same command to continue, with --retry failed for failed runs too"
    )]
    CircuitOpen {
        /// The reason why the last call failed.
        why: String,
    },
    /// The tokens of a run mean nothing without its table.
    #[error("run {run} needs its table of redactions: {why}; restore the table, or give another --output")]
    Redactions {
        run: Uuid,
        /// The fault in the table.
        why: String,
    },
    /// The command that grades texts says nothing.
    #[error(
        "the grader's command says nothing about task `{task}`; once that is mended, the same command grades what is left"
    )]
    Grader { task: String, source: SandboxError },
    /// The batch was begun with another number of shards.
    #[error(
        "the batch in `{path}` was begun in {was} shards, and this is {now}: give the same number, or another folder"
    )]
    Shards {
        path: PathBuf,
        /// The earlier number of shards.
        was: u64,
        /// The shard that was requested.
        now: ShardOf,
    },
    /// The journals are too long for a page with transcripts.
    #[error(
        "the journals of `{folder}` have {} MB, and a page with transcripts may have {} MB at most; leave out --with-transcripts, and \
         `consensus show {folder} TASK` shows one of them", bytes.div_ceil(1 << 20), most >> 20
    )]
    TooLongForTranscripts {
        folder: PathBuf,
        /// The length of the journals, in bytes.
        bytes: u64,
        /// The greatest length allowed, in bytes.
        most: u64,
    },
    /// A run's records do not fit together.
    #[error("run {run} in `{path}` has records that do not fit together: {why}")]
    Transcript {
        path: PathBuf,
        run: String,
        /// The fault in the records.
        why: ReplayError,
    },
    /// Runs of this name were made with other settings.
    #[error("{}", describe_settings(folder, roleset, model, arm))]
    Settings {
        folder: PathBuf,
        roleset: String,
        /// The model as it was named.
        model: String,
        arm: String,
    },
}

impl BatchError {
    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Run(error) => error.exit_code(),
            Self::Traces(error) => error.exit_code(),
            Self::Journal(error) => error.exit_code(),
            Self::Engine(error) => error.exit_code(),
            Self::Grader { source, .. } => source.exit_code(),
            Self::Io { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            Self::Tasks(source) if source.kind() == std::io::ErrorKind::InvalidData => ExitCode::Usage,
            Self::Io { .. } | Self::Tasks(_) | Self::Panic(_) | Self::Sandbox(_) | Self::Refused { .. } => {
                ExitCode::Internal
            }
            Self::Results { .. }
            | Self::Evidence { .. }
            | Self::Stray { .. }
            | Self::Manifest { .. }
            | Self::Transcript { .. } => ExitCode::Integrity,
            Self::Usage(_)
            | Self::NoBatch(_)
            | Self::OfBatch(_)
            | Self::OfServer(_)
            | Self::Settings { .. }
            | Self::Shards { .. }
            | Self::Redactions { .. }
            | Self::Private { .. }
            | Self::TooLongForTranscripts { .. } => ExitCode::Usage,
            Self::CircuitOpen { .. } => ExitCode::Provider,
        }
    }

    /// Returns true if no run can continue, because their journal or their results cannot be read or written.
    pub(in crate::batch) fn is_systemic(&self) -> bool {
        let is_of_journal = matches!(self, Self::Engine(EngineError::Journal(_)));
        is_of_journal || !matches!(self, Self::Engine(_) | Self::Panic(_))
    }

    /// Returns the error of reading the manifest at `path`.
    pub(super) fn of_manifest(path: &Path, source: std::io::Error) -> Self {
        let path = path.to_owned();
        if is_damage(&source) {
            return Self::Manifest { path, why: source.to_string() };
        }
        Self::Io { action: "read", path, source }
    }

    /// Returns the error of reading the line of this number, from 1, of the results at `path`.
    pub(in crate::batch) fn of_results(path: &Path, line: u64, source: std::io::Error) -> Self {
        let path = path.to_owned();
        if is_damage(&source) {
            return Self::Results { path, line, why: source.to_string() };
        }
        Self::Io { action: "read", path, source }
    }

    /// Returns the error of a line of the results at `path` that is not what this program writes.
    pub(in crate::batch) fn bad_result(path: &Path, line: u64, why: String) -> Self {
        Self::Results { path: path.to_owned(), line, why }
    }

    /// Returns a function that turns a system error into a [`BatchError::Io`] with this action and path.
    pub(in crate::batch) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// Describes which runs would be counted together, and the remedies.
fn describe_settings(folder: &Path, roleset: &str, model: &str, arm: &str) -> String {
    let model = if model.is_empty() { String::new() } else { format!(" on `{model}`") };
    let arm = if arm.is_empty() { String::new() } else { format!(" in the arm `{arm}`") };
    format!(
        "`{}` has runs of `{roleset}`{model}{arm} with other settings: name the new runs with --arm NAME, choose \
         another --output, or keep the old runs and make only the missing ones with --keep-old",
        folder.display()
    )
}
