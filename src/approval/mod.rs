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
//!
//! # Wings
//!
//! A file uses its own wing and the wings of lower lines. The test `tidy` reads this block.
//!
//! ```text
//! propose  replica
//! decision_context  connected_node
//! review  ledger
//! request
//! error  keys  facts
//! decision_error  node
//! ```

mod connected_node;
mod decision_context;
mod decision_error;
mod error;
pub mod facts;
mod keys;
mod ledger;
pub mod node;
mod propose;
mod replica;
mod request;
mod review;

pub use decision_error::DecisionError;
pub use error::ApprovalError;
pub use keys::{KeyFolder, MovedKeys, ORCHESTRATOR, ROSTER_FILE, RUNS_MODEL, export, import};
pub use ledger::{
    Case, CaseOutcome, CommandVerification, DecisionLog, DecisionRecord, LandedCase, LandedDecision,
    LedgerContext, LedgerMatch, Placement, Proposal, ProposalDraft, Reader, RecordedDecision,
    VerificationResult, VerifiedRecord, VotedFor, compare, landed_decisions, quorum_of_votes,
};
pub use propose::{DecisionEnd, ProposalOutcome, ProposingNode, ReadinessReport, UNBEGUN, check_readiness};
pub use replica::{Examination, ReviewingNode};
pub use request::{ApprovalRequest, CutOff, ReviewRequest};
pub use review::{ChangeReview, ReadChange, read_diff, review_task};
