//! Reviews a change, has a quorum decide on it, and brings it onto its branch. This includes keys, proposals, the log of a
//! repository's decisions, and the records that prove them.
//!
//! ```text
//!  keys ──────────────┐
//!  proposal ──► log (fsync) ──► quorum (pure) ─► log ──► repository ──► log
//!  opinions ──────────┘              signatures    │          branch         └─ how it ended
//!                                                  ▼
//!                                               record, which anyone with the public keys can verify
//! ```
//!
//! The input is a change that was made ready, and the opinion of each reviewer on it. The output is decisions, in their order,
//! and branches that are moved. Everything needed to sign is durable before anything is signed, and everything needed to move a
//! branch is durable before it is moved. So a process that starts after a crash signs the same again, and finishes the rest.
//!
//! Before all that, the decisions that the branch carries are compared with the log: keys that came without their log sign
//! nothing. Keys and logs move together, as one file.
//!
//! There are two entry points. A [`ProposingNode`] proposes a change and has it decided on; a [`ReviewingNode`] is one reviewer
//! in a process of its own. Only [`quorum`] counts votes; here a record is checked for the votes that it needs.
//! Nothing is printed here, and no signal is caught.

mod cluster;
mod connected_node;
mod decider;
mod decision_context;
mod decision_error;
mod error;
pub mod facts;
mod given_change;
mod history;
mod keys;
mod landing;
mod log;
pub mod node;
mod portable;
mod preflight;
mod proposal;
mod propose;
mod recheck;
mod record;
mod replica;
mod request;
mod review;
mod reviewed;
mod reviewers;
mod upstream;
mod verification;
mod vote_status;

pub use decider::DecisionEnd;
pub use decision_error::DecisionError;
pub use error::ApprovalError;
pub use history::{LandedDecision, LedgerContext, LedgerMatch, compare, landed_decisions};
pub use keys::{KeyFolder, ORCHESTRATOR, ROSTER_FILE, RUNS_MODEL};
pub use log::{Case, CaseOutcome, DecisionLog, LandedCase, Placement, RecordedDecision};
pub use portable::{MovedKeys, export, import};
pub use preflight::{ReadinessReport, check_readiness};
pub use proposal::{Proposal, ProposalDraft, Reader};
pub use propose::{ProposalOutcome, ProposingNode, UNBEGUN};
pub use recheck::Examination;
pub use record::{DecisionRecord, VerifiedRecord, VotedFor, quorum_of_votes};
pub use replica::ReviewingNode;
pub use request::{ApprovalRequest, CutOff, ReviewRequest};
pub use review::ApprovalWatcher;
pub use reviewed::{ChangeReview, ReadChange, read_diff};
pub use reviewers::review_task;
pub use verification::{CommandVerification, VerificationResult};
