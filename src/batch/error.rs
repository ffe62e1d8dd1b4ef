//! What can keep a batch from going on.

use std::path::{Path, PathBuf};

use thiserror::Error;
use uuid::Uuid;

use super::shard_id::ShardOf;
use crate::core::{ExitCode, is_unusable};
use crate::engine::{EngineError, ReplayError};
use crate::journal::JournalError;

/// A batch that cannot go on. What is durable stays so, and the same command goes on with it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The journal cannot be written, read or trusted, or somebody else has it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A run cannot go on, for a reason that all others share.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The file system said no.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The tasks cannot be read to their end.
    #[error("the tasks cannot be read any further")]
    Tasks(#[source] std::io::Error),
    /// A file of the batch is not what this program writes.
    #[error(
        "`{path}` line {line} is no result: {why}; once it is removed, the same command makes it anew from the journal"
    )]
    Results {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Results say how runs have ended, and the journal does not.
    #[error(
        "`{results}` has {missing} results that `{journal}` does not bear out: it was cut, replaced or lost; bring it back, or remove the results for their runs to be made anew"
    )]
    Evidence {
        /// The results.
        results: PathBuf,
        /// The journal.
        journal: PathBuf,
        /// How many of the results.
        missing: usize,
    },
    /// Runs that would send what earlier ones have kept back.
    #[error(
        "the batch has runs of `{roleset}` with --redact, and what they kept back would be sent; give --redact, or another --output"
    )]
    Private {
        /// The roleset.
        roleset: String,
    },
    /// A file is of a shard that the batch does not have, or whose records are gone.
    #[error(
        "`{path}` contradicts the batch: {why}; bring back what was changed or lost, or take the file out of the folder with the runs that it speaks of"
    )]
    Stray {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// What a batch is made of cannot be read.
    #[error("`{path}` says nothing of a batch: {why}; remove it, and give the same --shard as before")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The models cannot be called, and more runs would only fail.
    #[error(
        "calls fail again and again with no answer between them, so no more runs that need them are begun: {why}; once that is mended, the same command goes on with what was under way, and with --retry failed also with what has failed"
    )]
    CircuitOpen {
        /// Why the last one failed.
        why: String,
    },
    /// The tokens of a run mean nothing without its table.
    #[error("run {run} needs its table of redactions: {why}; bring it back, or give --output another folder")]
    Redactions {
        /// The run.
        run: Uuid,
        /// What is wrong with the table.
        why: String,
    },
    /// The batch was begun with another number of shards.
    #[error(
        "the batch in `{path}` was begun in {was} shards, and this is {now}: give the same number, or another folder"
    )]
    Shards {
        /// The folder.
        path: PathBuf,
        /// How many there were.
        was: u64,
        /// Which one was asked for.
        now: ShardOf,
    },
    /// Journals of which no page with transcripts is made.
    #[error(
        "the journals of `{folder}` have {} MB, and a page with transcripts is made of {} at most; leave out --with-transcripts, and \
         `consensus show {folder} TASK` shows one of them", bytes.div_ceil(1 << 20), most >> 20
    )]
    TooLongForTranscripts {
        /// The folder.
        folder: PathBuf,
        /// How long they are.
        bytes: u64,
        /// How long they may be.
        most: u64,
    },
    /// A run's records do not fit together.
    #[error("run {run} in `{path}` has records that do not fit together: {why}")]
    Transcript {
        /// The journal.
        path: PathBuf,
        /// The run.
        run: String,
        /// What is wrong with them.
        why: ReplayError,
    },
    /// Runs of this name were made by other settings.
    #[error("{}", settings_in_words(folder, [roleset, model, arm]))]
    Settings {
        /// The folder.
        folder: PathBuf,
        /// The roleset.
        roleset: String,
        /// The model as it was named.
        model: String,
        /// The arm.
        arm: String,
    },
}

impl BatchError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Journal(error) => error.exit_code(),
            Self::Engine(error) => error.exit_code(),
            Self::Io { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            Self::Io { .. } | Self::Tasks(_) => ExitCode::Internal,
            Self::Results { .. }
            | Self::Evidence { .. }
            | Self::Stray { .. }
            | Self::Manifest { .. }
            | Self::Transcript { .. } => ExitCode::Integrity,
            Self::Settings { .. }
            | Self::Shards { .. }
            | Self::Redactions { .. }
            | Self::Private { .. }
            | Self::TooLongForTranscripts { .. } => ExitCode::Usage,
            Self::CircuitOpen { .. } => ExitCode::Provider,
        }
    }

    /// Says what was tried, and where.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// Says which runs would be counted together, and what can be done about it.
fn settings_in_words(folder: &Path, [roleset, model, arm]: [&str; 3]) -> String {
    let model = if model.is_empty() { String::new() } else { format!(" on `{model}`") };
    let arm = if arm.is_empty() { String::new() } else { format!(" in the arm `{arm}`") };
    format!(
        "`{}` has runs of `{roleset}`{model}{arm} with other settings: give these a name of their own with --arm NAME, take \
         another --output, or keep those runs, and make only what is missing, with --keep-old",
        folder.display()
    )
}
