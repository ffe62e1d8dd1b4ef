//! A request for a decision, typed: the flags of `approve` say it, and so can a program.
//!
//! In: values. Out: the same. Nothing is read, checked or looked up here.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::error::ApprovalError;
use crate::bft::Sequence;
use crate::config::Chosen;
use crate::engine::StopRequest;
use crate::journal::Limits;
use crate::run::MockChoice;

/// A change, who reviews it, and where it lands.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// The repository.
    pub repo: PathBuf,
    /// The change: a file with a patch, `-` for one on standard input, or a branch.
    pub change: String,
    /// The branch that it lands on.
    pub base: String,
    /// Whether files of a work tree in which the branch is checked out are brought along.
    pub with_checkout: bool,
    /// A command that must succeed on the changed files.
    pub verify: Option<String>,
    /// How long it may take.
    pub verify_timeout: Duration,
    /// An LCOV tracefile.
    pub coverage: Option<PathBuf>,
    /// A SARIF log of what other tools found.
    pub findings: Option<PathBuf>,
    /// The folder with the reviewers' keys.
    pub keys: PathBuf,
    /// What the owner says of where the log of decisions starts.
    pub ledger_starts_at: Option<Sequence>,
    /// The commit's message.
    pub message: Option<String>,
    /// The roleset of the reviewers.
    pub roleset: Option<String>,
    /// A folder with rolesets that is searched first.
    pub rolesets_dir: Option<PathBuf>,
    /// Where models are called; the script of mock reviewers aside.
    pub servers: Chosen,
    /// Scripted reviewers, if they are wanted.
    pub mock: MockChoice,
    /// Where those who take part are, if each is in a process of its own.
    pub peers: Option<PathBuf>,
    /// Where this one is heard, if not where that file says.
    pub listen: Option<String>,
    /// A remote to fetch the branch from before each review.
    pub fetch: Option<String>,
    /// How long a reviewer may take before the others go on without it.
    pub review_timeout: Duration,
    /// Tokens of one reply at most, for every reviewer.
    pub max_tokens: Option<u32>,
    /// The seed of every draw.
    pub seed: Option<u64>,
    /// What the review may use.
    pub limits: Limits,
    /// The folder of run folders.
    pub runs_dir: PathBuf,
    /// A file for a copy of the record.
    pub output: Option<PathBuf>,
    /// The run of a review that was made before.
    pub review: Option<String>,
    /// Where the findings are written, as SARIF.
    pub sarif: Option<PathBuf>,
}

/// By whom and how a change is reviewed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReviewedBy<'a> {
    pub(super) roleset: Option<&'a str>,
    pub(super) rolesets_dir: Option<&'a PathBuf>,
    pub(super) servers: &'a Chosen,
    pub(super) mock: &'a MockChoice,
    pub(super) max_tokens: Option<u32>,
    pub(super) seed: Option<u64>,
    pub(super) limits: Limits,
}

impl ApprovalRequest {
    pub(super) fn reviewed_by(&self) -> ReviewedBy<'_> {
        ReviewedBy {
            roleset: self.roleset.as_deref(),
            rolesets_dir: self.rolesets_dir.as_ref(),
            servers: &self.servers,
            mock: &self.mock,
            max_tokens: self.max_tokens,
            seed: self.seed,
            limits: self.limits,
        }
    }
}

/// A change that is reviewed, and not decided on.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// The repository, where the change is no patch.
    pub repo: PathBuf,
    /// The change: a file with a patch, `-` for one on standard input, or a branch, tag or commit.
    pub change: String,
    /// What a branch, tag or commit is compared with.
    pub base: String,
    /// The roleset of the reviewers.
    pub roleset: Option<String>,
    /// A folder with rolesets that is searched first.
    pub rolesets_dir: Option<PathBuf>,
    /// Where models are called; the script of mock reviewers aside.
    pub servers: Chosen,
    /// Scripted reviewers, if they are wanted.
    pub mock: MockChoice,
    /// Tokens of one reply at most, for every reviewer.
    pub max_tokens: Option<u32>,
    /// The seed of every draw.
    pub seed: Option<u64>,
    /// What the review may use.
    pub limits: Limits,
    /// The folder of run folders.
    pub runs_dir: PathBuf,
}

impl ReviewRequest {
    pub(super) fn reviewed_by(&self) -> ReviewedBy<'_> {
        ReviewedBy {
            roleset: self.roleset.as_deref(),
            rolesets_dir: self.rolesets_dir.as_ref(),
            servers: &self.servers,
            mock: &self.mock,
            max_tokens: self.max_tokens,
            seed: self.seed,
            limits: self.limits,
        }
    }
}

/// The ways in which a decision can be cut off: a signal, or a deadline.
#[derive(Clone, Debug)]
pub struct CutOff {
    /// Where a request to stop comes.
    pub stop: watch::Receiver<StopRequest>,
    /// When the time is over.
    pub deadline: Option<Instant>,
}

impl CutOff {
    /// Resolves when the deadline has come, or a signal; `left` says what is left then.
    pub(super) async fn heard(&mut self, left: &'static str) -> ApprovalError {
        tokio::select! {
            () = passed(self.deadline) => ApprovalError::TooLate(left),
            _ = self.stop.changed() => ApprovalError::Interrupted(left),
        }
    }

    /// Whether a request to stop has come.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow() != StopRequest::None
    }
}

/// Resolves when this moment has come; never without one.
pub(super) async fn passed(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}
