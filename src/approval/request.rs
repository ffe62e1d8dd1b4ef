//! A request for a decision, as types: the flags of `approve` make one, and so can a program.
//!
//! The input is values, and the output is the same values. Nothing is read, checked or looked up here.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::error::ApprovalError;
use crate::engine::StopRequest;
use crate::run::RolesetSettings;
use crate::sandbox::Confinement;
use quorum::Sequence;

/// A request for a review of a change.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// The repository, unless the change is a patch.
    pub repo: PathBuf,
    /// The change: a file with a patch, `-` for one on standard input, or a branch, tag or commit.
    pub change: String,
    /// The base that a branch, tag or commit is compared with.
    pub base: String,
    /// The roleset of the reviewers.
    pub roleset: Option<String>,
    /// The settings; the answer of scripted reviewers is a verdict.
    pub settings: RolesetSettings,
    /// The seed of every draw.
    pub seed: Option<u64>,
    /// The folder of run folders.
    pub runs_dir: PathBuf,
}

/// A request for a decision: a change, its reviewers, and the branch on which it lands.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// The change, the branch that it lands on, and the way in which it is reviewed. The change is a file with a patch, `-` for
    /// one on standard input, or a branch.
    pub review: ReviewRequest,
    /// Whether work trees that have the branch checked out are updated with it.
    pub with_checkout: bool,
    /// A command that must succeed on the changed files.
    pub verify: Option<String>,
    /// The time limit of that command.
    pub verify_timeout: Duration,
    /// The way in which that command is run.
    pub confinement: Confinement,
    /// An LCOV tracefile.
    pub coverage: Option<PathBuf>,
    /// A SARIF log with the findings of other tools.
    pub findings: Option<PathBuf>,
    /// The folder with the reviewers' keys.
    pub keys: PathBuf,
    /// The start of the log of decisions, as the owner gives it.
    pub ledger_starts_at: Option<Sequence>,
    /// The commit's message.
    pub message: Option<String>,
    /// The file with the addresses of all parties, if each is in a process of its own.
    pub peers: Option<PathBuf>,
    /// The address on which this party listens, if it is not the one in that file.
    pub listen: Option<String>,
    /// A remote to fetch the branch from before each review.
    pub fetch: Option<String>,
    /// The time that a reviewer may take before the others continue without it.
    pub review_timeout: Duration,
    /// The file for a copy of the record.
    pub output: Option<PathBuf>,
    /// The run of a review that was made before.
    pub earlier_review: Option<String>,
    /// The file for the findings, as SARIF.
    pub sarif: Option<PathBuf>,
}

/// The ways in which a decision can be cut off: a signal, or a deadline.
#[derive(Clone, Debug)]
pub struct CutOff {
    /// The channel of requests to stop.
    pub stop: watch::Receiver<StopRequest>,
    /// The time of the deadline.
    pub deadline: Option<Instant>,
}

impl CutOff {
    /// Resolves when the deadline or a signal has come. `left` says what is left then.
    pub(super) async fn wait(&mut self, left: &'static str) -> ApprovalError {
        tokio::select! {
            () = wait_until(self.deadline) => ApprovalError::TooLate(left),
            _ = self.stop.changed() => ApprovalError::Interrupted(left),
        }
    }

    /// Returns whether a request to stop has come.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow() != StopRequest::None
    }
}

/// Resolves when this moment has come, and never without one.
pub(super) async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}
