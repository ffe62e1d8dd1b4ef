//! A change is reviewed, decided on by a quorum, and brought onto its branch: keys, proposals, the log of a repository's decisions,
//! and what proves them.
//!
//! ```text
//!  keys ──────────────┐
//!  proposal ──► log (fsync) ──► quorum (pure) ─► log ──► repository ──► log
//!  opinions ──────────┘              signatures    │          branch         └─ how it ended
//!                                                  ▼
//!                                               record, which anybody with the public keys can verify
//! ```
//!
//! In go a change that was made ready and what each reviewer thinks of it; out come decisions, in their order, and branches
//! that are moved. What is needed to sign is durable before anything is signed, and what is needed to move a branch before it
//! is moved: whoever comes after a crash signs the same again and brings the rest to its end.
//!
//! Before any of it, what the branch says of earlier decisions is compared with the log: keys that came without theirs sign
//! nothing. Keys and logs move together, as one file.
//!
//! There are two ways in. A [`ProposingNode`] proposes a change and has it decided on; a [`ReviewingNode`] is one reviewer in a
//! process of its own. Votes are counted by [`bft`](crate::bft) alone; here a record is checked for the votes that it needs. Nothing is
//! printed, and no signal is caught.

mod awaiting;
mod cluster;
mod decider;
mod decision_error;
mod error;
pub mod facts;
mod given_change;
mod history;
mod keys;
mod landing;
mod log;
pub mod node;
mod not_in_ledger;
mod portable;
mod preflight;
mod proposal;
mod propose;
mod quorum_words;
mod recheck;
mod record;
mod replica;
mod request;
mod review;
mod reviewed;
mod reviewers;
mod seat;
mod site;
mod upstream;
mod verification;
mod watcher;

pub use decider::DecisionEnd;
pub use decision_error::DecisionError;
pub use error::ApprovalError;
pub use history::{Beside, LandedDecision, LedgerMatch, compare, told};
pub use keys::{KeyFolder, ORCHESTRATOR, ROSTER_FILE, RUNS_MODEL};
pub use log::{Case, Decided, DecisionLog, Ended, LandedCase, Placement};
pub use portable::{Exported, Imported, export, import};
pub use preflight::{Attendance, attendance};
pub use proposal::{Proposal, ProposalDraft, Reader};
pub use propose::{ProposalOutcome, ProposingNode, UNBEGUN};
pub use quorum_words::{in_words as quorum_in_words, of_votes as quorum_of_votes};
pub use recheck::Examined;
pub use record::{DecisionRecord, Verified, VotedFor};
pub use replica::ReviewingNode;
pub use request::{ApprovalRequest, CutOff, ReviewRequest};
pub use reviewed::{ChangeReview, ReadChange};
pub use verification::{Checked, CommandVerification};
pub use watcher::ApprovalWatcher;
