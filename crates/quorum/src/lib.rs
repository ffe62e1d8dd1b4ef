//! Deciding on a change by a Byzantine quorum of reviewers, who sign.
//!
//! ```text
//! pre-prepare   the orchestrator of a view proposes one value: a change, or nothing
//! prepare       each reviewer votes once in each view; its opinion on a change is asked once for all views
//! commit        each reviewer that sees a quorum approve in its view says so; a quorum of such messages decides
//! view change   after a time-out, or when no quorum can approve any more: reviewers report what they saw a
//!               quorum approve, and the next view must propose the last of it
//! ```
//!
//! Start with `wire`, which reads a message and checks its signatures, and `payload`, which signs each statement. The
//! signature binds it to its decision: the repository, the list of reviewers and the sequence number. Each place in the
//! order of decisions is a `slot`. A reviewer with all its slots is a `replica`, and an orchestrator is a `proposer`.
//!
//! The input is messages, reviews and time-outs. The output is messages to send, requests for a review, decisions,
//! and proof against authors of two contradictory messages in one view. There is no clock, network or file here.
//!
//! The caller must write inputs down before it acts on their outputs. After a restart it must give them again in the
//! same order, and a review that was written down must not be made again. Then a process that is killed at any moment
//! never contradicts itself afterwards. Messages are repeated until there is a decision; its proof is then repeated
//! to all that still continue.
//!
//! Each phase has its purpose. Against an orchestrator that can be trusted, signed votes would be enough. Preparing
//! keeps an orchestrator that shows two changes to two reviewers from having both approved. Committing makes the
//! outcome outlive the view. The orchestrator can always stop progress, or have nothing decided; it can never have a
//! change decided by itself.
//!
//! The protocol follows Castro and Liskov, Practical Byzantine Fault Tolerance (OSDI 1999), with reviewers in place
//! of replicas that execute. Two honest reviewers may disagree, so each approval counts, and a reviewer that
//! disagreed still reports what a quorum approved.

#![warn(missing_docs)]

mod event;
pub mod local_cluster;
mod message;
mod model_opinion;
mod node_event;
pub mod node_machine;
mod opinion;
mod packet;
mod payload;
pub mod proposer;
mod quorum;
mod refused;
pub mod replica;
mod roster;
mod slot;
mod slot_evidence;
mod statement;
mod wire;

pub use event::{Decision, Fraud, Phase, SlotAction, SlotInput};
pub use message::{
    CHANGE_BYTES_MAX, Commit, Grounds, LeaderProposal, Lock, NodeId, PACKET_BYTES_MAX, Prepare, Reviewer,
    SlotMessage, Value, View, ViewChange, Vote,
};
pub use model_opinion::{MODEL_BYTES_MAX, ModelAt, ModelOpinion, VOTE_TYPE};
pub use opinion::{OPINION_BYTES_MAX, Opinion, Severity};
pub use packet::{CHECKPOINT_EVERY, PROOFS_AT_ONCE, Packet, Proof, ProvenDecision, To, WINDOW, leader};
pub use payload::{PREDICATE_TYPE, RosterSigner};
pub use quorum::Quorum;
pub use refused::Refused;
pub use roster::{Membership, Roster, RosterEntry, RosterFault};
pub use slot::Slot;
pub use statement::{Change, Sequence, Signed, SignedMessage, Signer, Statement};
