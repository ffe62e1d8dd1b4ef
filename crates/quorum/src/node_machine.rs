//! The machine of a party, reviewer or orchestrator, with one form of input and output for the code that runs it.
//!
//! Nothing is decided here. An input goes to the machine of the party, and an input that does not concern its part is
//! dropped.

use std::sync::Arc;

use super::event::Phase;
use super::message::{Reviewer, Value, View};
use super::model_opinion::ModelOpinion;
use super::node_id::NodeId;
use super::packet::{Packet, Proof, To};
use super::proposer::{Proposer, ProposerAction, ProposerInput, Why};
use super::replica::{Replica, ReplicaAction, ReplicaInput};
use super::statement::{Change, Sequence, Signed, Signer, Statement};
use crypto::Digest;

/// A machine: a reviewer or an orchestrator.
#[derive(Clone, Debug)]
pub enum NodeMachine<K: Signer> {
    /// A reviewer, which votes.
    Reviewer(Replica<K>),
    /// An orchestrator, which proposes.
    Orchestrator(Proposer<K>),
}

/// An input of a party.
#[derive(Clone, Debug)]
pub enum NodeInput<S> {
    /// A change is to be decided on. This is for an orchestrator.
    Submit(Change),
    /// A packet has come from this party, which may not be its author.
    Heard(NodeId, Packet<S>),
    /// The change with this digest has been reviewed for this decision. This is for a reviewer.
    Reviewed(Sequence, Digest, Arc<ModelOpinion>),
    /// The time for a phase is over. The phase of an orchestrator is [`Phase::PrePrepare`].
    Expired(Sequence, View, Phase),
    /// Earlier messages may be lost, and it is time to repeat them. This changes nothing in a machine, and need not
    /// be written down.
    Again,
}

/// An action that a party asks for.
#[derive(Clone, Debug)]
pub enum NodeAction<S> {
    /// Send a packet.
    Send(To, Packet<S>),
    /// Review a change.
    Review(Sequence, Change),
    /// Begin the time for a phase.
    Wait(Sequence, View, Phase),
    /// Keep a final decision. A reviewer does not always report decisions in order.
    Decide(Sequence, Proof<S>),
    /// Keep a final decision that follows on all before it. An orchestrator reports each place once.
    Tell(Sequence, Value, Proof<S>),
    /// Return a change that was submitted, with the reason. Nothing was decided at its place, and it is no longer
    /// proposed.
    Return(Sequence, Change, Why),
    /// Report the reviewers that did not acknowledge a proposal in time. It has been sent to them again.
    Late(Sequence, View, Vec<Reviewer>),
    /// Send some of the kept decisions after this one to a party that wants them.
    Recall(NodeId, Sequence),
    /// Report that a quorum knows all decisions up to this one.
    Stable(Sequence, Vec<Signed<S>>),
    /// Accuse one author of two statements, of which an honest author makes only one.
    Accuse(Box<(Signed<S>, Signed<S>)>),
}

impl<K: Signer> NodeMachine<K> {
    /// Takes an input. The same inputs give the same outputs; an input that makes no sense is dropped.
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

    /// Returns true if a message with this statement can make a difference here. Otherwise its signature need not be
    /// checked.
    pub fn wants(&self, sequence: Sequence, statement: &Statement) -> bool {
        match self {
            Self::Reviewer(replica) => replica.wants(sequence, statement),
            Self::Orchestrator(orchestrator) => orchestrator.wants(sequence, statement),
        }
    }

    /// Returns the actions that are still awaited, for a caller that has given all earlier inputs again.
    pub fn resume(&self) -> Vec<NodeAction<K::Signature>> {
        match self {
            Self::Reviewer(replica) => all(replica.resume()),
            Self::Orchestrator(orchestrator) => all(orchestrator.resume()),
        }
    }

    /// Returns the answer to a party that knows all decisions up to one. This changes nothing.
    pub fn answer(&self, to: NodeId, known: Sequence) -> Vec<NodeAction<K::Signature>> {
        match self {
            Self::Reviewer(replica) => all(replica.answer(to, known)),
            Self::Orchestrator(orchestrator) => all(orchestrator.answer(to, known)),
        }
    }

    /// Returns the number of submitted changes that are neither decided on nor returned; a reviewer has none.
    pub fn pending(&self) -> usize {
        match self {
            Self::Reviewer(_) => 0,
            Self::Orchestrator(orchestrator) => orchestrator.pending(),
        }
    }

    /// Returns the place up to which all decisions are known.
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
