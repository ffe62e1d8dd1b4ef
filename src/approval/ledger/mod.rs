//! The ledger of a repository's decisions: the proposals, the records that prove how they were decided on, and the landing.

mod command_verification;
mod history;
mod landing;
mod log;
mod proposal;
mod record;

pub(super) use command_verification::VERIFICATION_LOG;
pub use command_verification::{CommandVerification, VerificationResult};
pub use history::{LandedDecision, LedgerContext, LedgerMatch, compare, landed_decisions};
pub use log::{Case, CaseOutcome, DecisionLog, LandedCase, Placement, RecordedDecision};
pub use proposal::{Proposal, ProposalDraft, Reader};
pub use record::{DecisionRecord, VerifiedRecord, VotedFor, quorum_of_votes};
