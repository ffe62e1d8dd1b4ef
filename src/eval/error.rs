//! The errors of evaluations.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::batch::BatchError;
use crate::config::ConfigError;
use crate::run::RunError;
use protocol::core::ExitCode;

/// An evaluation that cannot begin, or whose results cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The request cannot be carried out.
    #[error("{0}")]
    Usage(String),
    /// The configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The roleset of an arm cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A batch cannot continue, or its results cannot be read.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The data cannot be read.
    #[error("cannot read the data `{path}`: {why}")]
    Data { path: PathBuf, why: std::io::Error },
    /// A row of the data is no task with an answer.
    #[error("line {line} of `{path}`: {why}")]
    Row {
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        why: String,
    },
    /// The data has no row.
    #[error("`{0}` has no task; give a file with one task on each line")]
    Empty(PathBuf),
    /// A file of the evaluation cannot be read or written.
    #[error("cannot {action} `{path}`: {why}")]
    Io {
        /// The action that was tried.
        action: &'static str,
        path: PathBuf,
        why: std::io::Error,
    },
    /// The folder has no evaluation.
    #[error(
        "`{0}` has no evaluation, since there is no plan.json in it; name a folder that `consensus eval` made"
    )]
    NoPlan(PathBuf),
    /// The folder has no evaluation, and is not empty.
    #[error(
        "`{0}` is not empty and holds no evaluation, whose files would replace others; give a new folder for --out"
    )]
    NotEmpty(PathBuf),
    /// The plan cannot be read.
    #[error("`{path}` is no plan of an evaluation: {why}; restore it, or begin anew in another folder")]
    Plan { path: PathBuf, why: String },
    /// The plan or the tasks are not those that the runs were made for.
    #[error(
        "`{path}` was changed after the evaluation began: {why}; restore it, or begin anew in another folder"
    )]
    Changed { path: PathBuf, why: String },
    /// A folder of an evaluation where one batch is wanted.
    #[error("`{folder}` is an evaluation; its batches are `{folder}/arms` and `{folder}/bank`, or those of its parts", folder = .0.display())]
    SeveralBatches(PathBuf),
    /// An evaluation without its tasks.
    #[error("`{0}` is missing; the command that began the evaluation writes it again")]
    NoTasks(PathBuf),
    /// An evaluation that is compared or judged before all of its items are complete. The items that end first are the easy ones.
    #[error(
        "the evaluation in `{folder}` has {items} of its {planned} items, and a part says little about the whole; first complete it with the command that began it, and with `--retry failed` if runs have failed"
    )]
    Incomplete {
        folder: PathBuf,
        /// The items that are complete.
        items: usize,
        /// The items of its plan.
        planned: usize,
    },
    /// A baseline is about other items.
    #[error("the baseline is on `{before}`, this evaluation is on `{now}`, and no task is the same in both")]
    OtherData {
        /// The data of this evaluation.
        now: String,
        /// The data of the baseline.
        before: String,
    },
    /// A baseline compares answers in another way.
    #[error(
        "the baseline compares answers of kind {before}, and this evaluation compares those of kind {now}; give both the same --canonical"
    )]
    OtherKind {
        /// The kind of answers of this evaluation.
        now: &'static str,
        /// The kind of answers of the baseline.
        before: &'static str,
    },
    /// The label of clusters does not divide the items.
    #[error("the label `{label}` of --cluster {why}")]
    Clusters { label: String, why: String },
    /// The bars cannot be written as XML.
    #[error("the JUnit file cannot be made: {0}")]
    Junit(String),
    /// The folder holds an evaluation with another plan.
    #[error(
        "`{folder}` holds an evaluation with another plan: {what}; give the same command as before, or another --out with --reuse {folder}, which takes the replies from there"
    )]
    OtherPlan {
        folder: PathBuf,
        /// The part that differs.
        what: String,
    },
}

impl EvalError {
    /// Returns a function that turns a system error into one about reading the data at `path`.
    pub(super) fn data(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |why| Self::Data { path: path.to_owned(), why }
    }

    /// Returns a function that turns a system error into one about a file of the evaluation.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |why| Self::Io { action, path: path.to_owned(), why }
    }

    /// Returns the error of a row of the data.
    pub(super) fn row(path: &Path, line: u64, why: String) -> Self {
        Self::Row { path: path.to_owned(), line, why }
    }

    /// Returns the exit code of the program if this error ends it.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::Run(error) => error.exit_code(),
            Self::Batch(error) => error.exit_code(),
            Self::Io { .. } | Self::Junit(_) => ExitCode::Internal,
            Self::Changed { .. } | Self::Plan { .. } => ExitCode::Integrity,
            Self::Usage(_)
            | Self::Data { .. }
            | Self::Row { .. }
            | Self::Empty(_)
            | Self::NoPlan(_)
            | Self::NoTasks(_)
            | Self::SeveralBatches(_)
            | Self::Incomplete { .. }
            | Self::NotEmpty(_)
            | Self::OtherData { .. }
            | Self::OtherKind { .. }
            | Self::Clusters { .. }
            | Self::OtherPlan { .. } => ExitCode::Usage,
        }
    }
}
