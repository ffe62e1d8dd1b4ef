//! A git repository, as decisions on changes need it.
//!
//! ```text
//! a patch or a branch ──► candidate: base, tree and diff, with no checkout
//!                             │
//!                             ├──► export: the tree's files in a folder of their own, without `.git`
//!                             └──► commit (the same bytes each time) ──► land: one branch moved, if it is where it was
//! ```
//!
//! The input is names of branches, patches and places. The output is object names, files and diffs. Git itself does the work.
//! It works in a folder of our own that only borrows the repository's objects and references. So no setting and no hook of a
//! user, a system or a repository changes a tree or runs anything. Two commands still use the owner's own git: the update of
//! a work tree, which happens only if it was asked for and nothing in it was changed, and a fetch. Without that wish, a branch
//! that is checked out somewhere is not moved.
//!
//! A branch and the mark of the decision that moved it are moved in one transaction of git. A process that starts after a crash
//! sees by the two what was done, and finishes it.

mod authorship;
mod candidate;
mod error;
mod git;
mod history;
mod landing;
mod oid;
mod substitute;

pub use authorship::Authorship;
pub use candidate::{Candidate, FileChange, FileKind};
pub use error::RepositoryError;
pub use git::Repository;
pub use history::Trailer;
pub use landing::{Landing, LandingMark};
pub use oid::Oid;
