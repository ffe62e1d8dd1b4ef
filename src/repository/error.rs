//! What can be wrong with a repository or a change.

use std::path::PathBuf;

use thiserror::Error;

use super::oid::Oid;
use crate::core::ExitCode;

/// Why something cannot be done with a repository. Nothing is changed then.
#[derive(Debug, Error)]
pub enum RepositoryError {
    /// Git is not there.
    #[error("git cannot be started: {0}; install git 2.38 or later")]
    NoGit(#[source] std::io::Error),
    /// A file of our own cannot be written.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] std::io::Error),
    /// Git says no.
    #[error("`git {command}` failed: {said}")]
    Git {
        /// What was asked.
        command: String,
        /// Git's own words.
        said: String,
    },
    /// Git says something that is not understood.
    #[error("`git {command}` said `{said}`, which is not understood; is this git 2.38 or later?")]
    Strange {
        /// What was asked.
        command: String,
        /// Git's own words.
        said: String,
    },
    /// The place is no repository.
    #[error("{0} is no git repository")]
    NotARepository(PathBuf),
    /// The name is no commit.
    #[error("`{0}` names no commit; give a branch, a tag or a commit")]
    NoCommit(String),
    /// The name is no branch.
    #[error("`{name}` is no branch of this copy, and decisions land on one; {advice}")]
    NoBranch {
        /// The name.
        name: String,
        /// What to do.
        advice: String,
    },
    /// The beginning of the history is not there.
    #[error(
        "the repository is a shallow copy, and cannot be told from others; `git fetch --unshallow` gets the rest"
    )]
    Shallow,
    /// The mark of a decision stands at another commit.
    #[error(
        "{mark} is at {found}: a decision of these keys has landed there that the ledger does not know; it is an older copy"
    )]
    Marked {
        /// The mark.
        mark: String,
        /// Where it is.
        found: Oid,
    },
    /// The change does not fit.
    #[error("the change does not apply to {base}: {said}")]
    DoesNotApply {
        /// The commit that it should apply to.
        base: Oid,
        /// Git's own words.
        said: String,
    },
    /// The change changes nothing.
    #[error("the change changes nothing in {0}")]
    Nothing(Oid),
    /// The change brings what is not decided on by reading it.
    #[error("`{0}` is a submodule: what it points to is in no diff; change its files where they are")]
    Submodule(String),
    /// A file's name cannot be shown.
    #[error("a file's name is not UTF-8: `{0}`; reviewers could not tell which it is")]
    Name(String),
    /// The branch is where somebody works.
    #[error(
        "`{branch}` is checked out in {}, whose files would not be those of the branch any more; choose another \
         branch, or check out another one there",
        place.display()
    )]
    CheckedOut {
        /// The branch.
        branch: String,
        /// Where it is checked out.
        place: PathBuf,
    },
    /// The branch is where somebody works, who has not committed all.
    #[error(
        "the branch is checked out in {}, where something was changed and not committed; commit it or put it away, so that the \
         files there can be brought along",
        .0.display()
    )]
    Dirty(PathBuf),
    /// The branch has been moved by somebody else.
    #[error(
        "`{branch}` is at {found}, and the decision is on {expected}; propose the change again on what is there now"
    )]
    Stale {
        /// The branch.
        branch: String,
        /// Where it should be.
        expected: Oid,
        /// Where it is.
        found: Oid,
    },
    /// A git that died, or is at work, holds the branch.
    #[error(
        "{0} is there: another git is at work, or one has died; if none is, remove the file and try again"
    )]
    Locked(PathBuf),
}

impl RepositoryError {
    /// Returns the code with which the program ends if this ends it.
    #[must_use]
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
