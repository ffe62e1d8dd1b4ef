//! The orchestrator: it proposes a change once a quorum could vote on it, has the cluster decide, and brings the change onto its
//! branch.

mod cluster;
mod decider;
mod preflight;
mod proposing_node;
mod vote_status;

pub use decider::DecisionEnd;
pub use preflight::{ReadinessReport, check_readiness};
pub use proposing_node::{ProposalOutcome, ProposingNode, UNBEGUN};
