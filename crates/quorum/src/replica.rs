//! A reviewer: its part in all decisions that are under way.
//!
//! The input is messages whose signatures have been checked, opinions and time-outs. The output is packets, requests
//! for a review, decisions, and proof against authors of contradictory messages. Decisions are independent of each
//! other. All that are known without a gap form a chain. After every few of them, reviewers sign the head of the
//! chain, so that everything before it can be forgotten.
//!
//! The inputs are all there is to remember: given again in the same order after a restart, they lead to the same
//! signatures. [`Replica::resume`] then returns the actions that are still awaited.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::event::{Decision, Fraud, Phase, SlotAction, SlotInput};
use super::message::{Reviewer, SlotMessage, Value, View, ViewChange};
use super::model_opinion::ModelOpinion;
use super::node_id::NodeId;
use super::packet::{
    CHECKPOINT_EVERY, PROOFS_AT_ONCE, Packet, Proof, To, WINDOW, is_quorum_on_the_same, leader,
};
use super::quorum::Quorum;
use super::slot_evidence::{SlotEvidence, proof_of, say, sign};
use super::statement::{Change, Sequence, Signed, SignedMessage, Signer, Statement};
use crypto::Digest;

/// An input of a reviewer.
#[derive(Clone, Debug)]
pub enum ReplicaInput<S> {
    /// A packet has come from this party. A message names its author, which may be another party. A claim to have
    /// decisions changes nothing here: see [`Replica::answer`].
    Heard(NodeId, Packet<S>),
    /// The change with this digest has been reviewed for this decision. The first opinion is kept.
    Reviewed(Sequence, Digest, Arc<ModelOpinion>),
    /// The time for a phase is over. The time should double from view to view, up to some bound, so that all
    /// reviewers meet in one view in the end.
    Expired(Sequence, View, Phase),
    /// Earlier messages may be lost, and it is time to repeat them.
    Again,
}

/// An action that a reviewer asks for.
#[derive(Clone, Debug)]
pub enum ReplicaAction<S> {
    /// Send a packet.
    Send(To, Packet<S>),
    /// Review a change.
    Review(Sequence, Change),
    /// Begin the time for a phase.
    Wait(Sequence, View, Phase),
    /// Keep a final decision. Decisions do not always come in order, and are forgotten here after a checkpoint.
    Decide(Sequence, Proof<S>),
    /// Send some of the kept decisions after this one, which are forgotten here, to an orchestrator that wants them.
    Recall(NodeId, Sequence),
    /// Report that a quorum knows all decisions up to this one.
    Stable(Sequence, Vec<Signed<S>>),
    /// Accuse one author of two statements, of which an honest author makes only one.
    Accuse(Box<(Signed<S>, Signed<S>)>),
}

/// The last checkpoint that a quorum has signed.
#[derive(Clone, Debug)]
struct Stable<S> {
    sequence: Sequence,
    signed: Vec<Signed<S>>,
}

/// A reviewer.
#[derive(Clone, Debug)]
pub struct Replica<K: Signer> {
    key: K,
    me: Reviewer,
    quorum: Quorum,
    orchestrators: usize,
    stable: Stable<K::Signature>,
    /// The place up to which all decisions are known, and the last link of their chain.
    known: (Sequence, Digest),
    checkpoints: BTreeMap<Sequence, BTreeMap<Reviewer, Signed<K::Signature>>>,
    /// The reviewers that have been accused of two checkpoints at one place.
    accused: BTreeSet<(Sequence, Reviewer)>,
    instances: BTreeMap<Sequence, SlotEvidence<K::Signature>>,
}

impl<K: Signer> Replica<K> {
    /// Returns the reviewer at place `me`, with this many orchestrators that take turns. It knows of no decision.
    pub fn new(key: K, me: Reviewer, quorum: Quorum, orchestrators: usize) -> Self {
        Self {
            key,
            me,
            quorum,
            orchestrators,
            stable: Stable { sequence: 0, signed: Vec::new() },
            known: (0, Digest::ZERO),
            checkpoints: BTreeMap::new(),
            accused: BTreeSet::new(),
            instances: BTreeMap::new(),
        }
    }

    /// Returns the place up to which all decisions are known, and the last link of their chain.
    pub fn known(&self) -> (Sequence, Digest) {
        self.known
    }

    /// Takes an input. The same inputs give the same outputs; an input that makes no sense is dropped.
    pub fn step(&mut self, input: ReplicaInput<K::Signature>) -> Vec<ReplicaAction<K::Signature>> {
        let mut out = Vec::new();
        match input {
            ReplicaInput::Heard(from, Packet::Message(message)) => self.message(from, &message, &mut out),
            ReplicaInput::Heard(_, Packet::Proof(proof)) => self.proof(proof, &mut out),
            ReplicaInput::Heard(_, Packet::Stable(signed)) => self.stable(signed, &mut out),
            ReplicaInput::Heard(_, Packet::Have(_)) => {}
            ReplicaInput::Reviewed(sequence, digest, opinion) => {
                if let Some(instance) = self.instances.get_mut(&sequence) {
                    let vote = opinion.vote();
                    instance.opinions.entry(digest).or_insert(opinion);
                    self.run(sequence, SlotInput::Reviewed(digest, vote), None, &mut out);
                }
            }
            ReplicaInput::Expired(sequence, view, phase) => {
                let slot = self.instances.get(&sequence).map(|instance| &instance.slot);
                if slot.is_some_and(|slot| slot.view() == view && slot.phase() == Some(phase)) {
                    self.run(sequence, SlotInput::Expired(view), None, &mut out);
                }
            }
            ReplicaInput::Again => self.again(&mut out),
        }
        out
    }

    /// Returns true if a message with this statement can make a difference here. Otherwise its signature need not be
    /// checked: it comes after a decision, or is for a place outside the window.
    pub fn wants(&self, sequence: Sequence, statement: &Statement) -> bool {
        let is_in_window = sequence > self.stable.sequence && sequence <= self.stable.sequence + WINDOW;
        let is_decided = || self.instances.get(&sequence).is_some_and(SlotEvidence::is_decided);
        is_in_window
            && match statement {
                // A party that still proposes or changes views does not know of the decision.
                Statement::Checkpoint { .. }
                | Statement::PrePrepare { .. }
                | Statement::ViewChange { .. } => true,
                Statement::Prepare { .. } | Statement::Commit(_) | Statement::Want { .. } => !is_decided(),
                Statement::Acknowledge { .. } => false,
            }
    }

    /// Returns the actions that are still awaited, for a caller that has given all earlier inputs again.
    pub fn resume(&self) -> Vec<ReplicaAction<K::Signature>> {
        let mut out = Vec::new();
        for (sequence, instance) in self.instances.iter().filter(|(_, instance)| !instance.is_decided()) {
            let reviews = instance.slot.awaited().filter_map(|digest| instance.changes.get(&digest));
            out.extend(reviews.map(|change| ReplicaAction::Review(*sequence, change.clone())));
            let timed = instance.waits.filter(|(_, phase)| *phase != Phase::ViewChange);
            out.extend(timed.map(|(view, phase)| ReplicaAction::Wait(*sequence, view, phase)));
        }
        out
    }

    fn message(
        &mut self,
        from: NodeId,
        message: &SignedMessage<K::Signature>,
        out: &mut Vec<ReplicaAction<K::Signature>>,
    ) {
        let SignedMessage { signed, .. } = message;
        let sequence = signed.sequence;
        if !self.wants(sequence, &signed.statement) {
            return;
        }
        if let Statement::Checkpoint { .. } = signed.statement {
            return self.checkpoint(signed, out);
        }
        let quorum = self.quorum;
        let instance = self.instances.entry(sequence).or_insert_with(|| SlotEvidence::new(quorum));
        if instance.is_decided() {
            return out.extend(decided(instance, from));
        }
        match &signed.statement {
            Statement::PrePrepare { view, .. } => {
                let is_his = signed.by == leader(sequence, *view, self.orchestrators);
                if let Some(proposal) = message.proposal().filter(|_| is_his) {
                    self.run(sequence, SlotInput::Proposed(proposal), Some(message), out);
                }
            }
            Statement::Prepare { view, .. } => {
                let is_heard = instance.slot.hears_votes(*view) && signed.by < quorum.reviewers();
                if let Some(said) = signed.statement.message().filter(|_| is_heard) {
                    instance.prepares.entry((*view, signed.by)).or_insert_with(|| message.bare());
                    self.run(sequence, SlotInput::Said(signed.by, said), Some(message), out);
                }
            }
            Statement::Commit(commit) => {
                if instance.slot.is_near(commit.view) && signed.by < quorum.reviewers() {
                    instance.commits.keep(commit.view, signed);
                    let said = SlotMessage::Commit(*commit);
                    self.run(sequence, SlotInput::Said(signed.by, said), Some(message), out);
                }
            }
            Statement::ViewChange { view, .. } => {
                let message = SlotMessage::ViewChange(ViewChange { view: *view, lock: None });
                self.run(sequence, SlotInput::Said(signed.by, message), None, out);
            }
            Statement::Want { .. } => {
                instance.is_wanted = true;
                self.wait(sequence, out);
            }
            Statement::Acknowledge { .. } | Statement::Checkpoint { .. } => {}
        }
    }

    /// Gives an input to a decision, and then the messages that this produces, until there are no more. `cause` is
    /// the message behind the input.
    fn run(
        &mut self,
        sequence: Sequence,
        input: SlotInput,
        cause: Option<&SignedMessage<K::Signature>>,
        out: &mut Vec<ReplicaAction<K::Signature>>,
    ) {
        let quorum = self.quorum;
        let instance = self.instances.entry(sequence).or_insert_with(|| SlotEvidence::new(quorum));
        let mut inputs = VecDeque::from([input]);
        let mut cause = cause;
        while let Some(input) = inputs.pop_front() {
            for wanted in instance.slot.step(input) {
                match wanted {
                    SlotAction::Acknowledge(view, value) => {
                        let Some(message) = cause else { continue };
                        instance.is_wanted = true;
                        instance.proposals.insert(view, message.signed.clone());
                        let change = message.change.iter().map(|change| (change.digest(), change.clone()));
                        instance.changes.extend(change);
                        let statement = Statement::Acknowledge { view, value };
                        let own = sign(&self.key, self.me, sequence, statement);
                        instance.own.push((view, SignedMessage::alone(own.clone())));
                        let author = NodeId::Orchestrator(message.signed.by);
                        out.push(ReplicaAction::Send(
                            To::One(author),
                            Packet::Message(SignedMessage::alone(own)),
                        ));
                    }
                    SlotAction::Review(digest) => {
                        let change = instance.changes.get(&digest).cloned();
                        out.extend(change.map(|change| ReplicaAction::Review(sequence, change)));
                    }
                    SlotAction::Say(said) => {
                        let (view, message) = say(&self.key, self.me, sequence, instance, &said);
                        instance.own.push((view, message.clone()));
                        out.push(ReplicaAction::Send(To::All, Packet::Message(message)));
                        inputs.push_back(SlotInput::Said(self.me, said));
                    }
                    SlotAction::Decide(decision) => {
                        let proof = proof_of(instance, &decision);
                        instance.proof = Some(proof.clone());
                        out.push(ReplicaAction::Decide(sequence, proof));
                    }
                    SlotAction::Accuse(fraud) => {
                        let first = match fraud {
                            Fraud::Proposals(view, ..) => instance.proposals.get(&view).cloned(),
                            Fraud::Prepares(by, first, _) => {
                                instance.prepares.get(&(first.view, by)).map(|message| message.signed.clone())
                            }
                            Fraud::Commits(by, first, _) => instance.commits.first(first.view, by).cloned(),
                        };
                        let pair = first.zip(cause.map(|message| message.signed.clone()));
                        out.extend(pair.map(|pair| ReplicaAction::Accuse(Box::new(pair))));
                    }
                }
            }
            // Everything from here on is caused by the reviewer's own messages.
            cause = None;
        }
        instance.prune();
        if instance.is_decided() {
            self.advance(out);
        } else {
            self.wait(sequence, out);
        }
    }

    /// Begins the time of the phase that a decision is in, if the phase is new and has a time.
    fn wait(&mut self, sequence: Sequence, out: &mut Vec<ReplicaAction<K::Signature>>) {
        let Some(instance) = self.instances.get_mut(&sequence) else { return };
        let is_wanted = instance.is_wanted || instance.slot.view() > 0;
        let phase = instance.slot.phase().filter(|_| is_wanted);
        let waits = phase.map(|phase| (instance.slot.view(), phase));
        if instance.waits != waits {
            instance.waits = waits;
            let timed = waits.filter(|(_, phase)| *phase != Phase::ViewChange);
            out.extend(timed.map(|(view, phase)| ReplicaAction::Wait(sequence, view, phase)));
        }
    }

    /// Accepts a decision that a quorum proves.
    fn proof(&mut self, proof: Proof<K::Signature>, out: &mut Vec<ReplicaAction<K::Signature>>) {
        let Some(proven) = proof.check(self.quorum) else { return };
        let sequence = proven.sequence;
        if sequence <= self.stable.sequence || sequence > self.stable.sequence + WINDOW {
            return;
        }
        let quorum = self.quorum;
        let instance = self.instances.entry(sequence).or_insert_with(|| SlotEvidence::new(quorum));
        let committers = proof.commits.iter().map(|signed| signed.by).collect();
        let decision = Decision { view: proven.view, value: proven.value, committers };
        if instance.slot.step(SlotInput::Decided(decision)).is_empty() {
            return;
        }
        let known = instance.change(proven.value);
        let given = proof.change.filter(|change| change.value() == proven.value);
        let proof = Proof { change: known.or(given), commits: proof.commits };
        instance.proof = Some(proof.clone());
        out.push(ReplicaAction::Decide(sequence, proof));
        self.advance(out);
    }

    /// Follows the chain of decisions as far as it is known.
    fn advance(&mut self, out: &mut Vec<ReplicaAction<K::Signature>>) {
        while let Some(decision) =
            self.instances.get(&(self.known.0 + 1)).and_then(|instance| instance.slot.decision())
        {
            let (sequence, head) = (self.known.0 + 1, self.known.1);
            self.known = (sequence, link(head, sequence, decision.value));
            if let Some(instance) = self.instances.get_mut(&sequence) {
                instance.forget();
            }
            if sequence.is_multiple_of(CHECKPOINT_EVERY) {
                let statement = Statement::Checkpoint { head: self.known.1 };
                let signed = sign(&self.key, self.me, sequence, statement);
                out.push(ReplicaAction::Send(
                    To::Reviewers,
                    Packet::Message(SignedMessage::alone(signed.clone())),
                ));
                self.checkpoint(&signed, out);
            }
        }
    }

    fn checkpoint(&mut self, signed: &Signed<K::Signature>, out: &mut Vec<ReplicaAction<K::Signature>>) {
        let sequence = signed.sequence;
        let is_one = sequence.is_multiple_of(CHECKPOINT_EVERY) && signed.by < self.quorum.reviewers();
        if !is_one || sequence <= self.stable.sequence || sequence > self.stable.sequence + WINDOW {
            return;
        }
        let of_place = self.checkpoints.entry(sequence).or_default();
        let first = of_place.entry(signed.by).or_insert_with(|| signed.clone());
        if first.statement != signed.statement {
            let pair = (first.clone(), signed.clone());
            if self.accused.insert((sequence, signed.by)) {
                out.push(ReplicaAction::Accuse(Box::new(pair)));
            }
            return;
        }
        let same: Vec<Signed<K::Signature>> =
            of_place.values().filter(|other| other.statement == signed.statement).cloned().collect();
        self.stable(same, out);
    }

    /// Forgets everything up to a checkpoint that a quorum has signed.
    fn stable(&mut self, signed: Vec<Signed<K::Signature>>, out: &mut Vec<ReplicaAction<K::Signature>>) {
        let Some(Signed { sequence, statement: Statement::Checkpoint { head }, .. }) = signed.first() else {
            return;
        };
        let (sequence, head) = (*sequence, *head);
        if sequence <= self.stable.sequence || !is_quorum_on_the_same(&signed, self.quorum) {
            return;
        }
        self.stable = Stable { sequence, signed: signed.clone() };
        self.instances = self.instances.split_off(&(sequence + 1));
        self.checkpoints = self.checkpoints.split_off(&(sequence + 1));
        self.accused.retain(|(other, _)| *other > sequence);
        out.push(ReplicaAction::Stable(sequence, signed));
        if self.known.0 < sequence {
            self.known = (sequence, head);
            self.advance(out);
        }
    }

    /// Returns the answer to a party that knows all decisions up to one: some of those that it misses. This changes
    /// nothing, and need not be written down. The caller decides how often a party may ask.
    pub fn answer(&self, to: NodeId, known: Sequence) -> Vec<ReplicaAction<K::Signature>> {
        let mut out = Vec::new();
        let Stable { sequence, signed } = &self.stable;
        match to {
            // A reviewer continues from there. One that knows just as much may have no checkpoint yet, and then
            // accepts nothing beyond its window.
            NodeId::Reviewer(_) if *sequence > 0 && known <= *sequence => {
                out.push(ReplicaAction::Send(To::One(to), Packet::Stable(signed.clone())));
            }
            // An orchestrator needs every decision, so it does not skip to a checkpoint.
            NodeId::Orchestrator(_) if known < *sequence => out.push(ReplicaAction::Recall(to, known)),
            NodeId::Reviewer(_) | NodeId::Orchestrator(_) => {}
        }
        let after = known.max(self.stable.sequence).saturating_add(1);
        let known = self.instances.range(after..).filter(|(_, instance)| instance.is_decided());
        out.extend(known.take(PROOFS_AT_ONCE).flat_map(|(_, instance)| decided(instance, to)));
        out
    }

    /// Repeats the messages that have led to nothing yet, and asks for decisions that others may know.
    fn again(&self, out: &mut Vec<ReplicaAction<K::Signature>>) {
        let open = self.instances.values().filter(|instance| !instance.is_decided());
        let own = open.flat_map(|instance| {
            let view = instance.slot.view();
            // Votes of views that were left are for the record alone.
            let matters = move |(other, message): &&(View, SignedMessage<_>)| {
                *other >= view || message.opinion.is_none()
            };
            instance.own.iter().filter(matters).map(|(_, message)| message)
        });
        out.extend(own.map(|message| ReplicaAction::Send(To::All, Packet::Message(message.clone()))));
        let checkpoints = self.checkpoints.values().filter_map(|of_place| of_place.get(&self.me));
        let messages = checkpoints.map(|signed| Packet::Message(SignedMessage::alone(signed.clone())));
        out.extend(messages.map(|message| ReplicaAction::Send(To::Reviewers, message)));
        out.push(ReplicaAction::Send(To::All, Packet::Have(self.known.0)));
    }
}

/// Returns the answer to a party that does not know of a decision: its proof. An orchestrator first gets this
/// reviewer's opinions, which are for the record and may not have come.
fn decided<S: Clone>(instance: &SlotEvidence<S>, to: NodeId) -> Vec<ReplicaAction<S>> {
    let votes = instance.own.iter().map(|(_, message)| message).filter(|message| message.opinion.is_some());
    let votes = votes.filter(|_| matches!(to, NodeId::Orchestrator(_))).cloned().map(Packet::Message);
    let packets = votes.chain(instance.proof.clone().map(Packet::Proof));
    packets.map(|packet| ReplicaAction::Send(To::One(to), packet)).collect()
}

/// Returns the next link of the chain of decisions: the SHA-256 of the last link, the place and the value, one per
/// line.
pub fn link(head: Digest, sequence: Sequence, value: Value) -> Digest {
    Digest::new(format!("{head}\n{sequence}\n{value}\n").as_bytes())
}
