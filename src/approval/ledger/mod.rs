//! The ledger of a repository's decisions: the proposals, the records that prove how they were decided on, and the landing.

mod history;
mod landing;
mod log;
mod proposal;
mod record;
mod verification;

pub use history::{LandedDecision, LedgerContext, LedgerMatch, compare, landed_decisions};
pub use log::{Case, CaseOutcome, DecisionLog, LandedCase, Placement, RecordedDecision};
pub use proposal::{Proposal, ProposalDraft, Reader};
pub use record::{DecisionRecord, VerifiedRecord, VotedFor, quorum_of_votes};
pub(super) use verification::VERIFICATION_LOG;
pub use verification::{CommandVerification, VerificationResult};
