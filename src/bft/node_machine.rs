//! Whoever takes part, whichever part it has: one form of what happens to it and what it wants, for those who run it.
//!
//! Nothing is decided in here: what happens goes to the machine that it is, and what does not concern its part is dropped.

use std::sync::Arc;

use super::event::Phase;
use super::message::{Reviewer, Value, View};
use super::model_opinion::ModelOpinion;
use super::node_id::NodeId;
use super::packet::{Packet, Proof, To};
use super::proposer::{Proposer, ProposerAction, ProposerInput, Why};
use super::replica::{Replica, ReplicaAction, ReplicaInput};
use super::statement::{Change, Sequence, Signed, Signer, Statement};
use crate::crypto::Digest;

/// A machine: a reviewer or an orchestrator.
#[derive(Clone, Debug)]
pub enum NodeMachine<K: Signer> {
    /// One that votes.
    Reviewer(Replica<K>),
    /// One that proposes.
    Orchestrator(Proposer<K>),
}

/// What happens to one.
#[derive(Clone, Debug)]
pub enum NodeInput<S> {
    /// A change is to be decided on; an orchestrator's.
    Submit(Change),
    /// Something has come from somebody, who may not be its author.
    Heard(NodeId, Packet<S>),
    /// The change with this digest has been reviewed for this decision; a reviewer's.
    Reviewed(Sequence, Digest, Arc<ModelOpinion>),
    /// The time for a phase is over; that of an orchestrator is [`Phase::PrePrepare`].
    Expired(Sequence, View, Phase),
    /// What was said may be lost: it is time to say it again. Changes nothing in a machine, and need not be written down.
    Again,
}

/// What one wants.
#[derive(Clone, Debug)]
pub enum NodeAction<S> {
    /// To be sent.
    Send(To, Packet<S>),
    /// To be reviewed.
    Review(Sequence, Change),
    /// The time for a phase begins.
    Wait(Sequence, View, Phase),
    /// Something is decided, for good; of a reviewer, not always in order. To be kept.
    Decide(Sequence, Proof<S>),
    /// Something is decided, and so is all before it; of an orchestrator, once for each place. To be kept.
    Tell(Sequence, Value, Proof<S>),
    /// A change that was submitted is not proposed any more: nothing was decided at this place, where it was.
    Return(Sequence, Change, Why),
    /// These reviewers have not acknowledged a proposal in time; it has been sent to them again.
    Late(Sequence, View, Vec<Reviewer>),
    /// Somebody wants some of the decisions after this one: those that were kept.
    Recall(NodeId, Sequence),
    /// A quorum knows all decisions up to this one.
    Stable(Sequence, Vec<Signed<S>>),
    /// Two statements by one author, of which an honest one makes one.
    Accuse(Box<(Signed<S>, Signed<S>)>),
}

impl<K: Signer> NodeMachine<K> {
    /// Goes on. The same inputs give the same outputs; what makes no sense is dropped.
    pub fn step(&mut self, input: NodeInput<K::Signature>) -> Vec<NodeAction<K::Signature>> {
        match self {
            Self::Reviewer(replica) => {
                let input = match input {
                    NodeInput::Heard(from, packet) => ReplicaInput::Heard(from, packet),
                    NodeInput::Reviewed(sequence, digest, opinion) => {
                        ReplicaInput::Reviewed(sequence, digest, opinion)
                    }
                    NodeInput::Expired(sequence, view, phase) => ReplicaInput::Expired(sequence, view, phase),
                    NodeInput::Again => ReplicaInput::Again,
                    NodeInput::Submit(_) => return Vec::new(),
                };
                all(replica.step(input))
            }
            Self::Orchestrator(orchestrator) => {
                let input = match input {
                    NodeInput::Heard(from, packet) => ProposerInput::Heard(from, packet),
                    NodeInput::Submit(change) => ProposerInput::Submit(change),
                    NodeInput::Expired(sequence, view, _) => ProposerInput::Expired(sequence, view),
                    NodeInput::Again => ProposerInput::Again,
                    NodeInput::Reviewed(..) => return Vec::new(),
                };
                all(orchestrator.step(input))
            }
        }
    }

    /// Whether a message that says this can make a difference here. Its signature need not be checked if not.
    #[must_use]
    pub fn wants(&self, sequence: Sequence, statement: &Statement) -> bool {
        match self {
            Self::Reviewer(replica) => replica.wants(sequence, statement),
            Self::Orchestrator(orchestrator) => orchestrator.wants(sequence, statement),
        }
    }

    /// Returns what is waited for: for whoever has put in again all that was put in before.
    #[must_use]
    pub fn resume(&self) -> Vec<NodeAction<K::Signature>> {
        match self {
            Self::Reviewer(replica) => all(replica.resume()),
            Self::Orchestrator(orchestrator) => all(orchestrator.resume()),
        }
    }

    /// What is sent to somebody who knows all decisions up to one. Nothing changes by it.
    #[must_use]
    pub fn answer(&self, to: NodeId, known: Sequence) -> Vec<NodeAction<K::Signature>> {
        match self {
            Self::Reviewer(replica) => all(replica.answer(to, known)),
            Self::Orchestrator(orchestrator) => all(orchestrator.answer(to, known)),
        }
    }

    /// So many changes that were submitted are neither decided on nor returned; a reviewer has none.
    #[must_use]
    pub fn pending(&self) -> usize {
        match self {
            Self::Reviewer(_) => 0,
            Self::Orchestrator(orchestrator) => orchestrator.pending(),
        }
    }

    /// All decisions up to this one are known.
    #[must_use]
    pub fn known(&self) -> Sequence {
        match self {
            Self::Reviewer(replica) => replica.known().0,
            Self::Orchestrator(orchestrator) => orchestrator.told(),
        }
    }
}

fn all<S, O: Into<NodeAction<S>>>(outputs: Vec<O>) -> Vec<NodeAction<S>> {
    outputs.into_iter().map(Into::into).collect()
}

impl<S> From<ReplicaAction<S>> for NodeAction<S> {
    fn from(output: ReplicaAction<S>) -> Self {
        match output {
            ReplicaAction::Send(to, packet) => Self::Send(to, packet),
            ReplicaAction::Review(sequence, change) => Self::Review(sequence, change),
            ReplicaAction::Wait(sequence, view, phase) => Self::Wait(sequence, view, phase),
            ReplicaAction::Decide(sequence, proof) => Self::Decide(sequence, proof),
            ReplicaAction::Recall(to, after) => Self::Recall(to, after),
            ReplicaAction::Stable(sequence, signed) => Self::Stable(sequence, signed),
            ReplicaAction::Accuse(pair) => Self::Accuse(pair),
        }
    }
}

impl<S> From<ProposerAction<S>> for NodeAction<S> {
    fn from(output: ProposerAction<S>) -> Self {
        match output {
            ProposerAction::Send(to, packet) => Self::Send(to, packet),
            ProposerAction::Wait(sequence, view) => Self::Wait(sequence, view, Phase::PrePrepare),
            ProposerAction::Late(sequence, view, late) => Self::Late(sequence, view, late),
            ProposerAction::Decide(sequence, value, proof) => Self::Tell(sequence, value, proof),
            ProposerAction::Return(sequence, change, why) => Self::Return(sequence, change, why),
            ProposerAction::Recall(to, after) => Self::Recall(to, after),
        }
    }
}
