//! All parties in one process: the usual reviewers and orchestrator, with a queue in place of a network.
//!
//! The input is the earlier decisions, then a change and each reviewer's opinion on it. The output is a decision with
//! its proof. There is no clock here: when no message is on its way any more, the oldest awaited time-out comes. The
//! same inputs give the same signatures. So a caller that writes them down first can start again after a crash, and
//! the parties never contradict themselves.
//!
//! A process with all keys can make any decision. Against reviewers who err or were persuaded, a decision here is
//! worth as much as anywhere else; against this very process it is worth nothing.

use std::collections::{BTreeMap, VecDeque};

use thiserror::Error;

use super::event::Phase;
use super::message::{NodeId, Value, View};
use super::model_opinion::ModelOpinion;
use super::node_machine::{NodeAction, NodeInput, NodeMachine};
use super::packet::{Packet, Proof, To};
use super::proposer::Proposer;
use super::quorum::Quorum;
use super::replica::Replica;
use super::statement::{Change, Sequence, SignedMessage, Signer, Statement};

/// The step limit. A decision takes a few dozen packets for each pair of reviewers; far more than that means a bug in
/// this program.
const STEPS_MAX: usize = 4_000_000;

/// The orchestrator, which proposes.
const ORCHESTRATOR: NodeId = NodeId::Orchestrator(0);

/// All parties.
#[derive(Debug)]
pub struct LocalCluster<K: Signer> {
    members: BTreeMap<NodeId, NodeMachine<K>>,
    inbox: VecDeque<(NodeId, NodeId, Packet<K::Signature>)>,
    /// The time-outs that are awaited.
    waits: VecDeque<(NodeId, Sequence, View, Phase)>,
    /// The opinion of each reviewer on the current change, with its model.
    opinions: Vec<ModelOpinion>,
    votes: Vec<SignedMessage<K::Signature>>,
    reported: Option<(Sequence, Value, Proof<K::Signature>)>,
}

/// A decision with its proof.
#[derive(Clone, Debug)]
pub struct DecisionProof<S> {
    /// The place of the decision.
    pub sequence: Sequence,
    /// The value that was decided.
    pub value: Value,
    /// The commits of a quorum.
    pub proof: Proof<S>,
    /// The votes on the change, each with its opinion, in the order of the reviewers.
    pub votes: Vec<SignedMessage<S>>,
}

/// The parties come to no decision, or not to the one that was made before.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum ClusterError {
    /// The number of opinions differs from the number of reviewers.
    #[error("there are {0} opinions; there must be one for each reviewer")]
    Opinions(usize),
    /// The parties come to no decision.
    #[error("the reviewers came to no decision; this is a bug in the program")]
    Endless,
    /// An earlier decision does not fit.
    #[error("decision {0} is not the next one, or its proof is not valid")]
    OutOfOrder(Sequence),
}

impl<K: Signer> LocalCluster<K> {
    /// Returns a cluster with these keys, the reviewers' in the order of the roster. Nothing has been decided yet.
    pub fn new(quorum: Quorum, orchestrator: K, reviewers: Vec<K>) -> Self {
        let reviewers = reviewers.into_iter().enumerate();
        let reviewers = reviewers
            .map(|(at, key)| (NodeId::Reviewer(at), NodeMachine::Reviewer(Replica::new(key, at, quorum, 1))));
        let orchestrator = NodeMachine::Orchestrator(Proposer::new(orchestrator, 0, quorum, 1));
        Self {
            members: reviewers.chain([(ORCHESTRATOR, orchestrator)]).collect(),
            inbox: VecDeque::new(),
            waits: VecDeque::new(),
            opinions: Vec::new(),
            votes: Vec::new(),
            reported: None,
        }
    }

    /// Returns the place of the next decision.
    pub fn next(&self) -> Sequence {
        self.members.get(&ORCHESTRATOR).map_or(0, NodeMachine::known) + 1
    }

    /// Takes note of an earlier decision. All earlier decisions must be given, in their order. The signatures in the
    /// proof must have been checked.
    ///
    /// # Errors
    ///
    /// [`ClusterError::OutOfOrder`] if the decision is not the next one.
    pub fn recall(&mut self, sequence: Sequence, proof: &Proof<K::Signature>) -> Result<(), ClusterError> {
        if sequence != self.next() {
            return Err(ClusterError::OutOfOrder(sequence));
        }
        let packet = Packet::Proof(proof.clone());
        self.inbox.extend(self.members.keys().map(|to| (ORCHESTRATOR, *to, packet.clone())));
        self.run()?;
        let reported = self.reported.take().map(|(reported, ..)| reported);
        if reported == Some(sequence) { Ok(()) } else { Err(ClusterError::OutOfOrder(sequence)) }
    }

    /// Decides on a change, given the opinion of each reviewer.
    ///
    /// # Errors
    ///
    /// [`ClusterError`].
    pub fn decide<R: Into<ModelOpinion>>(
        &mut self,
        change: Change,
        opinions: Vec<R>,
    ) -> Result<DecisionProof<K::Signature>, ClusterError> {
        if opinions.len() + 1 != self.members.len() {
            return Err(ClusterError::Opinions(opinions.len()));
        }
        self.opinions = opinions.into_iter().map(Into::into).collect();
        self.votes.clear();
        let value = change.value();
        self.step(ORCHESTRATOR, NodeInput::Submit(change));
        self.run()?;
        let (sequence, decided, proof) = self.reported.take().ok_or(ClusterError::Endless)?;
        let mut votes = std::mem::take(&mut self.votes);
        votes.retain(
            |message| matches!(message.signed.statement, Statement::Prepare { value: on, .. } if on == value),
        );
        votes.sort_by_key(|message| message.signed.by);
        votes.dedup_by_key(|message| message.signed.by);
        self.waits.clear();
        Ok(DecisionProof { sequence, value: decided, proof, votes })
    }

    /// Delivers packets until a decision is reported and none is on its way.
    fn run(&mut self) -> Result<(), ClusterError> {
        for _ in 0..STEPS_MAX {
            if let Some((from, to, packet)) = self.inbox.pop_front() {
                match packet {
                    Packet::Have(known) => {
                        let actions = self.members.get(&to).map(|member| member.answer(from, known));
                        self.perform(to, actions.unwrap_or_default());
                    }
                    Packet::Message(_) | Packet::Proof(_) | Packet::Stable(_) => {
                        self.step(to, NodeInput::Heard(from, packet));
                    }
                }
            } else if self.reported.is_some() {
                return Ok(());
            } else {
                let (party, sequence, view, phase) = self.waits.pop_front().ok_or(ClusterError::Endless)?;
                self.step(party, NodeInput::Expired(sequence, view, phase));
            }
        }
        Err(ClusterError::Endless)
    }

    fn step(&mut self, party: NodeId, input: NodeInput<K::Signature>) {
        let actions = self.members.get_mut(&party).map(|member| member.step(input));
        self.perform(party, actions.unwrap_or_default());
    }

    /// Performs the actions of a party.
    fn perform(&mut self, party: NodeId, actions: Vec<NodeAction<K::Signature>>) {
        for action in actions {
            match action {
                NodeAction::Send(to, packet) => {
                    if let Packet::Message(message) = &packet
                        && message.opinion.is_some()
                    {
                        self.votes.push(message.clone());
                    }
                    self.send(party, to, &packet);
                }
                NodeAction::Review(sequence, change) => {
                    let NodeId::Reviewer(at) = party else { continue };
                    if let Some(opinion) = self.opinions.get(at) {
                        let opinion = opinion.clone().into();
                        self.step(party, NodeInput::Reviewed(sequence, change.digest(), opinion));
                    }
                }
                NodeAction::Wait(sequence, view, phase) => {
                    self.waits.push_back((party, sequence, view, phase));
                }
                NodeAction::Tell(sequence, value, proof) => self.reported = Some((sequence, value, proof)),
                // No party contradicts itself here, and one that knows the decisions has reported them to all.
                NodeAction::Accuse(_)
                | NodeAction::Decide(..)
                | NodeAction::Recall(..)
                | NodeAction::Stable(..)
                | NodeAction::Late(..)
                | NodeAction::Return(..) => {}
            }
        }
    }

    fn send(&mut self, from: NodeId, to: To, packet: &Packet<K::Signature>) {
        let others = self.members.keys().filter(|party| to.reaches(from, **party));
        self.inbox.extend(others.map(|to| (from, *to, packet.clone())));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{CHECKPOINT_EVERY, Membership, Opinion, Roster, RosterEntry, RosterSigner, Severity};
    use super::*;
    use crypto::{Digest, SecretKey};

    fn membership(reviewers: u8) -> Arc<Membership> {
        let seat = |seed: u8| RosterEntry {
            name: format!("seat {seed}"),
            key: SecretKey::from_seed(&[seed; 32]).public(),
            domain: "a model".to_owned(),
        };
        let roster =
            Roster { reviewers: (1..=reviewers).map(seat).collect(), orchestrators: vec![seat(200)] };
        Arc::new(Membership::new(Digest::new(b"a repository"), roster).unwrap())
    }

    fn cluster(reviewers: u8) -> LocalCluster<RosterSigner> {
        let membership = membership(reviewers);
        let seal = |seed: u8| {
            RosterSigner::new(SecretKey::from_seed(&[seed; 32]), Arc::clone(&membership)).unwrap().1
        };
        LocalCluster::new(membership.quorum(), seal(200), (1..=reviewers).map(seal).collect())
    }

    fn yes() -> Opinion {
        Opinion::Approve { confidence: 9000, notes: "fine".to_owned() }
    }

    fn no() -> Opinion {
        Opinion::Reject { reason: "wrong".to_owned(), severity: Severity::High }
    }

    fn change(number: u64) -> Change {
        Change::new(&format!("change {number}")).unwrap()
    }

    /// A change without a quorum of approvals is decided against.
    #[test]
    fn change_needs_quorum_to_be_approved() {
        for (reviewers, rejecting, is_approved) in [
            (4, 0, true),
            (4, 1, true),
            (4, 2, false),
            (7, 2, true),
            (7, 3, false),
            (1, 1, false),
            (3, 1, false),
            (31, 10, true),
        ] {
            let mut cluster = cluster(reviewers);
            let opinions = (0..reviewers).map(|at| if at < rejecting { no() } else { yes() }).collect();
            let DecisionProof { sequence, value, votes, proof } =
                cluster.decide(change(1), opinions).unwrap();
            let expected = if is_approved { change(1).value() } else { Value::Nothing };
            assert_eq!((sequence, value), (1, expected), "{rejecting} of {reviewers}");
            assert_eq!(votes.len(), usize::from(reviewers), "every vote is kept, dissent too");
            let membership = membership(reviewers);
            assert_eq!(proof.check(membership.quorum()).unwrap().value, value);
            let envelope = membership.envelope(&proof.commits).unwrap();
            assert!(membership.open(&envelope).is_ok(), "anyone with the public keys can check it");
        }
    }

    /// Decisions are numbered, and a cluster that begins again says nothing else.
    #[test]
    fn recalled_cluster_repeats_the_same_signatures() {
        let mut cluster = cluster(4);
        let mut proofs = Vec::new();
        // The run passes several checkpoints, so earlier decisions are forgotten.
        for number in 1..=3 * CHECKPOINT_EVERY {
            let opinions = if number % 5 == 0 { vec![no(), yes(), no(), yes()] } else { vec![yes(); 4] };
            let decision = cluster.decide(change(number), opinions).unwrap();
            assert_eq!(decision.sequence, number);
            proofs.push(decision.proof);
        }
        // A party that knows all decisions up to a checkpoint may not have that checkpoint itself, and then continues
        // only to the end of its window.
        let member = &cluster.members[&NodeId::Reviewer(0)];
        let said = member.answer(NodeId::Reviewer(1), 3 * CHECKPOINT_EVERY);
        assert!(said.iter().any(|want| matches!(want, NodeAction::Send(_, Packet::Stable(_)))), "{said:?}");
        let last = proofs.pop().unwrap();
        let mut again = self::cluster(4);
        for (sequence, proof) in (1..).zip(&proofs) {
            again.recall(sequence, proof).unwrap();
        }
        let decision = again.decide(change(3 * CHECKPOINT_EVERY), vec![yes(); 4]).unwrap();
        assert_eq!(decision.proof.commits, last.commits, "the same signatures");
        assert_eq!(again.recall(3, &proofs[2]), Err(ClusterError::OutOfOrder(3)));
    }
}
