//! A git repository, as changes that are decided on need it.
//!
//! ```text
//! a patch or a branch ──► candidate: base, tree and diff, with no checkout
//!                             │
//!                             ├──► export: the tree's files in a folder of their own, without `.git`
//!                             └──► commit (the same bytes each time) ──► land: one branch moved, if it is where it was
//! ```
//!
//! In go names of branches, patches and places; out come object names, files and diffs. Git itself does the work, and is
//! asked with settings of our own, so that what a user or a system has configured, hooks among it, changes no tree. A
//! work tree of the user's is touched only where that was asked for and nothing in it was changed; without that, a branch that is
//! checked out somewhere is not moved.
//!
//! A branch and the mark of the decision that moved it are moved in one transaction of git's: whoever comes after a crash
//! sees by the two what was done, and brings it to its end.

mod authorship;
mod candidate;
mod error;
mod git;
mod history;
mod landing;
mod oid;

pub use authorship::Authorship;
pub use candidate::{Candidate, ChangeSource, FileChange, FileKind};
pub use error::RepositoryError;
pub use git::Repository;
pub use history::Trailer;
pub use landing::{Landing, LandingMark};
pub use oid::Oid;
