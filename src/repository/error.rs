//! The errors of a repository or a change.

use std::path::PathBuf;

use thiserror::Error;

use super::oid::Oid;
use protocol::core::ExitCode;

/// A reason why something cannot be done with a repository. Nothing is changed then.
#[derive(Debug, Error)]
pub enum RepositoryError {
    /// Git cannot be started.
    #[error("git cannot be started: {0}; install git 2.38 or later")]
    NoGit(#[source] std::io::Error),
    /// A file of this program cannot be written.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] std::io::Error),
    /// Git reports an error.
    #[error("`git {command}` failed: {said}")]
    Git { command: String, said: String },
    /// Git gives an answer that is not understood.
    #[error("`git {command}` said `{said}`, which is not understood; is this git 2.38 or later?")]
    Strange { command: String, said: String },
    /// The place is not in a repository.
    #[error("{0} is not a git repository")]
    NotARepository(PathBuf),
    /// The name is not a commit.
    #[error("`{0}` names no commit; give a branch, a tag or a commit")]
    NoCommit(String),
    /// The name is not a branch.
    #[error("`{name}` is not a branch of this copy, and decisions land on one; {advice}")]
    NoBranch {
        name: String,
        /// The advice for the user.
        advice: String,
    },
    /// The beginning of the history is missing.
    #[error(
        "the repository is a shallow copy, so that its identity is not known; `git fetch --unshallow` gets the rest"
    )]
    Shallow,
    /// The mark of a decision is at another commit.
    #[error(
        "{mark} is at {found}: a decision of these keys has landed there that the ledger does not know, so it is an older copy"
    )]
    Marked {
        mark: String,
        /// The commit that the mark is at.
        found: Oid,
    },
    /// The change does not apply.
    #[error("the change does not apply to {base}: {said}")]
    DoesNotApply {
        /// The commit that it should apply to.
        base: Oid,
        said: String,
    },
    /// The change changes nothing.
    #[error("the change is already in {0}")]
    Nothing(Oid),
    /// The change brings content that cannot be judged by reading.
    #[error("`{0}` is a submodule, whose files are in no diff; change them in their own repository")]
    Submodule(String),
    /// The name of a file cannot be shown.
    #[error("a file's name is not UTF-8: `{0}`; reviewers could not tell which it is")]
    Name(String),
    /// The branch is checked out in a work tree.
    #[error(
        "`{branch}` is checked out in {}, whose files would not be those of the branch any more; choose another \
         branch, or check out another one there",
        place.display()
    )]
    CheckedOut {
        branch: String,
        /// The work tree in which it is checked out.
        place: PathBuf,
    },
    /// A work tree of the branch has changes that are not committed.
    #[error(
        "the branch is checked out in {}, where something was changed and not committed; commit or stash it, so that the \
         files there can be updated",
        .0.display()
    )]
    Dirty(PathBuf),
    /// The branch was moved by someone else.
    #[error(
        "`{branch}` is at {found}, but the decision is on {expected}; propose the change again on the new commit"
    )]
    Stale {
        branch: String,
        /// The commit that it should be at.
        expected: Oid,
        /// The commit that it is at.
        found: Oid,
    },
    /// A git process that died, or is at work, holds the branch.
    #[error(
        "{0} is there: another git is at work, or one has died; if none is at work, remove the file and try again"
    )]
    Locked(PathBuf),
}

impl RepositoryError {
    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::File(..) | Self::Git { .. } | Self::Strange { .. } => ExitCode::Internal,
            Self::NoGit(_)
            | Self::NotARepository(_)
            | Self::NoCommit(_)
            | Self::NoBranch { .. }
            | Self::DoesNotApply { .. }
            | Self::Nothing(_)
            | Self::Shallow
            | Self::Marked { .. }
            | Self::Submodule(_)
            | Self::Name(_)
            | Self::CheckedOut { .. }
            | Self::Dirty(_)
            | Self::Stale { .. }
            | Self::Locked(_) => ExitCode::Usage,
        }
    }
}
