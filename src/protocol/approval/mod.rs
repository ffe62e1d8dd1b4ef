//! `approval`: a change is decided by a Byzantine quorum of reviewers.
//!
//! ```text
//! pre-prepare   the orchestrator of a view proposes one value: a change, or none
//! prepare       each reviewer votes, once for each change and by nobody's opinion but its own
//! commit        whoever has seen a quorum approve says so; a quorum of such messages is the decision
//! view change   after a time-out, or when no quorum can approve any more: reviewers tell what they have seen a
//!               quorum approve, and the next view must propose the last of it
//! ```
//!
//! In come messages whose signatures have been checked, reviews and time-outs; out go messages to be signed and sent,
//! wishes for a review, decisions, and proof of reviewers who said two things. There is no clock, network, file or
//! key in here, and no message is sent that was not an action: an edge that writes events down before it acts on them
//! can be killed at any moment and says nothing else afterwards.
//!
//! What each phase is worth: against an orchestrator that can be trusted, signed votes would do. Preparing keeps one
//! that shows two reviewers two changes from having both approved; committing makes the outcome outlive it. The
//! orchestrator can always stop progress, and never make a decision.
//!
//! After Castro and Liskov, Practical Byzantine Fault Tolerance (OSDI 1999), with reviewers in place of replicas that
//! execute: two honest ones may disagree, so that an approval counts, and whoever has disagreed still reports what a
//! quorum approved.

mod message;
mod quorum;
mod slot;

pub use message::{
    Commit, Grounds, Lock, Message, Prepare, Proposal, Reviewer, Value, View, ViewChange, Vote,
};
pub use quorum::{Quorum, TooFew};
pub use slot::{Decision, Fraud, Input, Output, Slot};
