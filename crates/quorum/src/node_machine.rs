//! The machine of a party, reviewer or orchestrator, for the code that runs it. Nothing is decided here.

use super::message::NodeId;
use super::proposer::Proposer;
use super::replica::Replica;
use super::statement::{Sequence, Signer, Statement};

pub use super::node_event::{NodeAction, NodeInput, ReturnReason};

/// A machine: a reviewer or an orchestrator.
#[derive(Clone, Debug)]
pub enum NodeMachine<K: Signer> {
    /// A reviewer, which votes.
    Reviewer(Replica<K>),
    /// An orchestrator, which proposes.
    Orchestrator(Proposer<K>),
}

impl<K: Signer> NodeMachine<K> {
    /// Takes an input. The same inputs give the same outputs; an input that makes no sense is dropped.
    pub fn step(&mut self, input: NodeInput<K::Signature>) -> Vec<NodeAction<K::Signature>> {
        match self {
            Self::Reviewer(replica) => replica.step(input),
            Self::Orchestrator(orchestrator) => orchestrator.step(input),
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
            Self::Reviewer(replica) => replica.resume(),
            Self::Orchestrator(orchestrator) => orchestrator.resume(),
        }
    }

    /// Returns the answer to a party that knows all decisions up to one. This changes nothing.
    pub fn answer(&self, to: NodeId, known: Sequence) -> Vec<NodeAction<K::Signature>> {
        match self {
            Self::Reviewer(replica) => replica.answer(to, known),
            Self::Orchestrator(orchestrator) => orchestrator.answer(to, known),
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
            Self::Orchestrator(orchestrator) => orchestrator.known(),
        }
    }
}
