//! The review of a change: the change as it was given, its reviewers, and the run in which they read it. Nothing is decided here.

mod change_review;
mod given_change;
mod review_run;
mod reviewers;

pub use change_review::{ChangeReview, ReadChange, read_diff};
pub(super) use given_change::GivenChange;
pub(super) use review_run::{ReviewEnd, find_earlier, reopen, review};
pub(super) use reviewers::Reviewers;
pub use reviewers::review_task;
