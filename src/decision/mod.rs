//! A repository's decisions: keys, proposals, the ledger that they are made in, and what proves them.
//!
//! ```text
//!  keys ──────────────┐
//!  proposal ──► ledger (fsync) ──► quorum (pure) ─► ledger ──► repository ──► ledger
//!  opinions ──────────┘              signatures      │            branch        └─ how it ended
//!                                                    ▼
//!                                                 record, which anybody with the public keys can verify
//! ```
//!
//! In go a change that was made ready and what each reviewer thinks of it; out come decisions, in their order, and branches
//! that are moved. What is needed to sign is durable before anything is signed, and what is needed to move a branch before it
//! is moved: whoever comes after a crash signs the same again and brings the rest to its end.
//!
//! Before any of it, what the branch says of earlier decisions is compared with the ledger: keys that came without theirs sign
//! nothing. Keys and ledgers move together, as one file.
//!
//! Nothing in here asks a model, and nothing here counts a vote: that is [`bft`](crate::bft)'s.

mod error;
mod examination;
pub mod facts;
mod history;
mod keys;
mod landing;
mod log;
mod not_in_ledger;
mod portable;
mod proposal;
mod record;
mod verification;

pub use error::DecisionError;
pub use examination::Examined;
pub use history::{Beside, LandedDecision, LedgerMatch, compare, told};
pub use keys::{KeyFolder, ORCHESTRATOR, ROSTER_FILE, RUNS_MODEL};
pub use log::{Case, Decided, DecisionLog, Ended, Sitting};
pub use portable::{Exported, Imported, export, import};
pub use proposal::{Proposal, ProposalDraft, Reader};
pub use record::{DecisionRecord, Verified, VotedFor};
pub use verification::{Checked, CommandVerification};
