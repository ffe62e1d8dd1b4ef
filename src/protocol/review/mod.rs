//! What reviewers think of a change: the part of `approval` that asks models.
//!
//! ```text
//!  diff ──► parts     whole files where they fit, else pieces of one; binary content is left out and said to be
//!             │
//!             ▼
//!  review   every reviewer reads every part alone: findings, each on a line of the diff, then its verdict
//!             │
//!             ▼
//!  opinion  one a reviewer: it rejects if it rejects a part, abstains if a part could not be judged, else approves
//!             │
//!             ▼
//!  verdict  a critical finding of whoever rejects is a veto, if the roleset says so; else a quorum must approve
//! ```
//!
//! In comes a task whose documents are diffs; out come opinions. Who may sign them, and what follows for a repository, is
//! decided elsewhere ([`approval`](super::approval)).
//!
//! # Invariants
//!
//! - **Reviews are blind.** No reviewer's prompt has a word of another's in it, nor the author's own words about the change.
//! - **A finding is on a line that is there.** The line is chosen from the diff, or looked up in it; what stands nowhere is
//!   sent back.
//! - **Silence and abstention never help.** The quorum is taken of all reviewers, whether they answer or not.
//! - **A confidence is a figure for people**, and never a weight.
//! - **Every run ends.** One form for each reviewer and part, each of at most `1 + max_repairs` attempts.

mod diff;
mod form;
mod machine;
mod params;
mod plan;
mod prompt;
mod report;

pub use diff::{PARTS_MAX, added_lines};
pub use form::Finding;
pub use machine::Review;
pub use params::{ApprovalParams, REVIEWERS_MAX};
pub use plan::worst_case;
pub use prompt::RULES;
pub use report::{ApprovalSection, Reviewed};

/// One run of `approval`.
pub type Setup = crate::protocol::Setup<ApprovalParams>;
