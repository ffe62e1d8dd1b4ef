//! A change is decided by a Byzantine quorum of reviewers, who sign.
//!
//! ```text
//! pre-prepare   the orchestrator of a view proposes one value: a change, or nothing
//! prepare       each reviewer votes once in each view; its opinion on a change is asked once for all views
//! commit        whoever sees a quorum approve in its view says so; a quorum of such messages is the decision
//! view change   after a time-out, or when no quorum can approve any more: reviewers tell what they have seen a
//!               quorum approve, and the next view must propose the last of it
//! ```
//!
//! Start with `wire`, which reads a message and checks its signatures, and `payload`, which binds each statement to its
//! decision (repository, list of reviewers, sequence number) and signs it. `slot` is one place in the order of decisions,
//! `replica` a reviewer with all its slots, and `proposer` the one who proposes.
//!
//! In come messages, reviews and time-outs; out go messages to be sent, wishes for a review, decisions, and proof of those
//! who said two things in one view. There is no clock, network or file in here.
//!
//! What the edge owes: inputs are written down before their outputs are acted on and are given in the same
//! order after a restart, where a review that has been written down is not made again; then whoever is killed at any
//! moment says nothing else afterwards. Messages are sent again until there is a decision, and its proof to whoever
//! goes on after it.
//!
//! What each phase is worth: against an orchestrator that can be trusted, signed votes would do. Preparing keeps one
//! that shows two reviewers two changes from having both approved; committing makes the outcome outlive it. The
//! orchestrator can always stop progress, or have nothing decided; it can never have a change decided by itself.
//!
//! After Castro and Liskov, Practical Byzantine Fault Tolerance (OSDI 1999), with reviewers in place of replicas that
//! execute: two honest ones may disagree, so that an approval counts, and whoever has disagreed still reports what a
//! quorum approved.

mod event;
mod limits;
pub mod local_cluster;
mod message;
mod model_opinion;
mod node_id;
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
pub use limits::MODEL_BYTES_MAX;
pub use limits::PACKET_BYTES_MAX;
pub use limits::{CHANGE_BYTES_MAX, OPINION_BYTES_MAX, TooLong};
pub use message::{
    Commit, Grounds, LeaderProposal, Lock, Prepare, Reviewer, SlotMessage, Value, View, ViewChange, Vote,
};
pub use model_opinion::{ModelAt, ModelOpinion, VOTE_TYPE};
pub use node_id::NodeId;
pub use opinion::{Opinion, Severity};
pub use packet::{CHECKPOINT_EVERY, PROOFS_AT_ONCE, Packet, Proof, Proven, To, WINDOW, leader};
pub use payload::{PREDICATE_TYPE, Seal};
pub use quorum::{Quorum, TooFew};
pub use refused::Refused;
pub use roster::{Membership, Roster, RosterEntry, RosterFault};
pub use slot::Slot;
pub use statement::{Change, Sequence, Signed, SignedMessage, Signer, Statement};
