//! What must hold in every schedule, at every moment.

use std::collections::{BTreeMap, BTreeSet};

use crypto::Digest;
use quorum::node_machine::ReturnReason;
use quorum::{Change, Commit, NodeId, Quorum, Reviewer, Sequence, Statement, Value, View, Vote};

use crate::nodes::{Packet, Proof, Signed};

/// What a statement is one of: an honest author makes one of each.
type Kind = (u8, View);

/// All that honest ones have said and decided.
#[derive(Debug)]
pub(crate) struct Checks {
    quorum: Quorum,
    liars: BTreeSet<NodeId>,
    said: BTreeMap<(NodeId, Sequence, Kind), Statement>,
    committed: BTreeMap<(Sequence, View), Value>,
    approved: BTreeMap<(Sequence, Value), BTreeSet<Reviewer>>,
    refused: BTreeMap<(Sequence, Value), BTreeSet<Reviewer>>,
    decided: BTreeMap<Sequence, Value>,
    heads: BTreeMap<Sequence, Digest>,
}

impl Checks {
    pub(crate) fn new(quorum: Quorum, liars: BTreeSet<NodeId>) -> Self {
        Self {
            quorum,
            liars,
            said: BTreeMap::new(),
            committed: BTreeMap::new(),
            approved: BTreeMap::new(),
            refused: BTreeMap::new(),
            decided: BTreeMap::new(),
            heads: BTreeMap::new(),
        }
    }

    /// An honest one sends this, in its own name if it is a message.
    pub(crate) fn sends(&mut self, party: NodeId, packet: &Packet) -> Result<(), String> {
        match packet {
            Packet::Message(message) if kind(&message.signed).0 == party => self.says(&message.signed),
            Packet::Message(message) => Err(format!("{party:?} sends what is not its own: {message:?}")),
            Packet::Proof(_) | Packet::Stable(_) | Packet::Have(_) => Ok(()),
        }
    }

    /// An honest one says this: it has not said, and never will say, another thing of the same kind.
    fn says(&mut self, signed: &Signed) -> Result<(), String> {
        if matches!(signed.statement, Statement::Want { .. }) {
            return Ok(());
        }
        let (party, kind) = kind(signed);
        let key = (party, signed.sequence, kind);
        let first = self.said.entry(key).or_insert_with(|| signed.statement.clone());
        if *first != signed.statement {
            return Err(format!("{party:?} says {first:?} and {:?}", signed.statement));
        }
        match &signed.statement {
            Statement::Commit(Commit { view, value }) => {
                let first = *self.committed.entry((signed.sequence, *view)).or_insert(*value);
                if first != *value {
                    return Err(format!("two values were approved in view {view} of {}", signed.sequence));
                }
            }
            Statement::Prepare { value, vote, .. } => {
                let all = match vote {
                    Vote::Approve => &mut self.approved,
                    Vote::Reject | Vote::Abstain => &mut self.refused,
                    Vote::Follow => return Ok(()),
                };
                all.entry((signed.sequence, *value)).or_default().insert(signed.by);
            }
            Statement::Checkpoint { head } => {
                if *self.heads.entry(signed.sequence).or_insert(*head) != *head {
                    return Err(format!("there are two chains up to {}", signed.sequence));
                }
            }
            Statement::PrePrepare { .. }
            | Statement::Want { .. }
            | Statement::Acknowledge { .. }
            | Statement::ViewChange { .. } => {}
        }
        Ok(())
    }

    /// An honest one learns of a decision: it is everybody's, it is proven, and enough honest reviewers approve.
    pub(crate) fn decides(&mut self, sequence: Sequence, proof: &Proof) -> Result<Value, String> {
        let proven = proof.check(self.quorum).ok_or_else(|| format!("{sequence} is not proven"))?;
        if proven.sequence != sequence {
            return Err(format!("the proof of {sequence} is one of {}", proven.sequence));
        }
        let value = proven.value;
        let first = *self.decided.entry(sequence).or_insert(value);
        if first != value {
            return Err(format!("{sequence} is decided as {first} and as {value}"));
        }
        if value != Value::Nothing {
            let honest = self.approved.get(&(sequence, value)).map_or(0, BTreeSet::len);
            let lying = self.liars.iter().filter(|party| matches!(party, NodeId::Reviewer(_))).count();
            if honest + lying < self.quorum.size() {
                return Err(format!("{sequence}: {honest} honest reviewers approve"));
            }
            if proof.change.as_ref().is_some_and(|change| change.value() != value) {
                return Err(format!("{sequence}: the change in the proof is another"));
            }
        }
        Ok(value)
    }

    /// An honest orchestrator tells of a decision, with the change that is to be applied.
    pub(crate) fn tells(&mut self, sequence: Sequence, value: Value, proof: &Proof) -> Result<(), String> {
        let proven = self.decides(sequence, proof)?;
        if proven != value || value != Value::Nothing && proof.change.is_none() {
            return Err(format!("{sequence} is told as {value}, wrongly or without its change"));
        }
        Ok(())
    }

    /// A change comes back as refused: honest reviewers have refused it, or enough liars.
    pub(crate) fn returns(&self, change: &Change, why: &ReturnReason) -> Result<(), String> {
        let ReturnReason::Refused(by) = why else { return Ok(()) };
        let honest = by.iter().filter(|by| !self.liars.contains(&NodeId::Reviewer(**by)));
        let of_change = self.refused.iter().filter(|((_, value), _)| *value == change.value());
        let refused: BTreeSet<Reviewer> = of_change.flat_map(|(_, by)| by.iter().copied()).collect();
        if by.len() < self.quorum.blocking() || !honest.clone().all(|by| refused.contains(by)) {
            return Err(format!("a change comes back as refused by {by:?}, who are too few or did not"));
        }
        Ok(())
    }

    /// A node is accused: a liar, of two things that no honest one says.
    pub(crate) fn accuses(&self, first: &Signed, second: &Signed) -> Result<(), String> {
        let (party, of) = kind(first);
        let is_fraud = kind(second) == (party, of)
            && first.sequence == second.sequence
            && first.statement != second.statement;
        if !is_fraud || !self.liars.contains(&party) {
            return Err(format!("{party:?} is accused of {first:?} and {second:?}"));
        }
        Ok(())
    }
}

fn kind(signed: &Signed) -> (NodeId, Kind) {
    let reviewer = NodeId::Reviewer(signed.by);
    match &signed.statement {
        Statement::PrePrepare { view, .. } => (NodeId::Orchestrator(signed.by), (0, *view)),
        Statement::Want { .. } => (NodeId::Orchestrator(signed.by), (1, 0)),
        Statement::Acknowledge { view, .. } => (reviewer, (2, *view)),
        Statement::Prepare { view, .. } => (reviewer, (3, *view)),
        Statement::Commit(Commit { view, .. }) => (reviewer, (4, *view)),
        Statement::ViewChange { view, .. } => (reviewer, (5, *view)),
        Statement::Checkpoint { .. } => (reviewer, (6, 0)),
    }
}
