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

use super::event::{Decision, Fraud, Phase, SlotAction, SlotInput};
use super::message::{NodeId, Reviewer, SlotMessage, Value, ViewChange};
use super::node_event::{NodeAction, NodeInput};
use super::packet::{
    CHECKPOINT_EVERY, PROOFS_AT_ONCE, Packet, Proof, To, WINDOW, is_quorum_on_the_same, leader,
};
use super::quorum::Quorum;
use super::slot_evidence::{SlotEvidence, proof_of, say, sign};
use super::statement::{Sequence, Signed, SignedMessage, Signer, Statement};
use crypto::Digest;

/// A reviewer.
#[derive(Clone, Debug)]
pub struct Replica<K: Signer> {
    key: K,
    me: Reviewer,
    quorum: Quorum,
    orchestrators: usize,
    /// The place of the last checkpoint that a quorum has signed, and their statements.
    stable: Sequence,
    stable_signed: Vec<Signed<K::Signature>>,
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
            stable: 0,
            stable_signed: Vec::new(),
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
    pub fn step(&mut self, input: NodeInput<K::Signature>) -> Vec<NodeAction<K::Signature>> {
        let mut out = Vec::new();
        match input {
            NodeInput::Heard(from, Packet::Message(message)) => self.hear_message(from, &message, &mut out),
            NodeInput::Heard(_, Packet::Proof(proof)) => self.accept_proof(proof, &mut out),
            NodeInput::Heard(_, Packet::Stable(signed)) => self.accept_checkpoint(signed, &mut out),
            NodeInput::Reviewed(sequence, digest, opinion) => {
                if let Some(instance) = self.instances.get_mut(&sequence) {
                    let vote = opinion.vote();
                    instance.opinions.entry(digest).or_insert(opinion);
                    self.run(sequence, SlotInput::Reviewed(digest, vote), None, &mut out);
                }
            }
            NodeInput::Expired(sequence, view, phase) => {
                let slot = self.instances.get(&sequence).map(|instance| &instance.slot);
                if slot.is_some_and(|slot| slot.view() == view && slot.phase() == Some(phase)) {
                    self.run(sequence, SlotInput::Expired(view), None, &mut out);
                }
            }
            NodeInput::Again => self.repeat(&mut out),
            // A claim to have decisions is for `answer`, and only an orchestrator takes a change.
            NodeInput::Heard(_, Packet::Have(_)) | NodeInput::Submit(_) => {}
        }
        out
    }

    /// Returns true if a message with this statement can make a difference here. Otherwise its signature need not be
    /// checked: it comes after a decision, or is for a place outside the window.
    pub fn wants(&self, sequence: Sequence, statement: &Statement) -> bool {
        if !self.is_in_window(sequence) {
            return false;
        }
        match statement {
            // A party that still proposes or changes views does not know of the decision.
            Statement::Checkpoint { .. } | Statement::PrePrepare { .. } | Statement::ViewChange { .. } => {
                true
            }
            Statement::Prepare { .. } | Statement::Commit(_) | Statement::Want { .. } => {
                self.instances.get(&sequence).is_none_or(|instance| !instance.is_decided())
            }
            Statement::Acknowledge { .. } => false,
        }
    }

    fn is_in_window(&self, sequence: Sequence) -> bool {
        sequence > self.stable && sequence <= self.stable + WINDOW
    }

    /// Returns the actions that are still awaited, for a caller that has given all earlier inputs again.
    pub fn resume(&self) -> Vec<NodeAction<K::Signature>> {
        let mut out = Vec::new();
        for (sequence, instance) in self.instances.iter().filter(|(_, instance)| !instance.is_decided()) {
            let reviews = instance.slot.awaited().filter_map(|digest| instance.changes.get(&digest));
            out.extend(reviews.map(|change| NodeAction::Review(*sequence, change.clone())));
            if let Some((view, phase)) = instance.waits
                && phase != Phase::ViewChange
            {
                out.push(NodeAction::Wait(*sequence, view, phase));
            }
        }
        out
    }

    fn hear_message(
        &mut self,
        from: NodeId,
        message: &SignedMessage<K::Signature>,
        out: &mut Vec<NodeAction<K::Signature>>,
    ) {
        let SignedMessage { signed, .. } = message;
        let sequence = signed.sequence;
        if !self.wants(sequence, &signed.statement) {
            return;
        }
        if let Statement::Checkpoint { .. } = signed.statement {
            return self.count_checkpoint(signed, out);
        }
        let quorum = self.quorum;
        let instance = self.instances.entry(sequence).or_insert_with(|| SlotEvidence::new(quorum));
        if instance.is_decided() {
            return out.extend(prove_decision(instance, from));
        }
        match &signed.statement {
            Statement::PrePrepare { view, .. } => {
                if signed.by == leader(sequence, *view, self.orchestrators)
                    && let Some(proposal) = message.proposal()
                {
                    self.run(sequence, SlotInput::Proposed(proposal), Some(message), out);
                }
            }
            Statement::Prepare { view, .. } => {
                if instance.slot.hears_votes(*view)
                    && signed.by < quorum.reviewers()
                    && let Some(said) = signed.statement.message()
                {
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
        out: &mut Vec<NodeAction<K::Signature>>,
    ) {
        let quorum = self.quorum;
        let instance = self.instances.entry(sequence).or_insert_with(|| SlotEvidence::new(quorum));
        let mut inputs = VecDeque::from([input]);
        let mut cause = cause;
        while let Some(input) = inputs.pop_front() {
            for action in instance.slot.step(input) {
                inputs.extend(perform(&self.key, self.me, sequence, instance, action, cause, out));
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
    fn wait(&mut self, sequence: Sequence, out: &mut Vec<NodeAction<K::Signature>>) {
        let Some(instance) = self.instances.get_mut(&sequence) else { return };
        let view = instance.slot.view();
        let mut waits = None;
        if instance.is_wanted || view > 0 {
            waits = instance.slot.phase().map(|phase| (view, phase));
        }
        if instance.waits == waits {
            return;
        }
        instance.waits = waits;
        if let Some((view, phase)) = waits
            && phase != Phase::ViewChange
        {
            out.push(NodeAction::Wait(sequence, view, phase));
        }
    }

    /// Accepts a decision that a quorum proves.
    fn accept_proof(&mut self, proof: Proof<K::Signature>, out: &mut Vec<NodeAction<K::Signature>>) {
        let Some(proven) = proof.check(self.quorum) else { return };
        let sequence = proven.sequence;
        if !self.is_in_window(sequence) {
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
        out.push(NodeAction::Decide(sequence, proof));
        self.advance(out);
    }

    /// Follows the chain of decisions as far as it is known.
    fn advance(&mut self, out: &mut Vec<NodeAction<K::Signature>>) {
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
                out.push(NodeAction::Send(
                    To::Reviewers,
                    Packet::Message(SignedMessage::alone(signed.clone())),
                ));
                self.count_checkpoint(&signed, out);
            }
        }
    }

    fn count_checkpoint(&mut self, signed: &Signed<K::Signature>, out: &mut Vec<NodeAction<K::Signature>>) {
        let sequence = signed.sequence;
        let is_one = sequence.is_multiple_of(CHECKPOINT_EVERY) && signed.by < self.quorum.reviewers();
        if !is_one || !self.is_in_window(sequence) {
            return;
        }
        let of_place = self.checkpoints.entry(sequence).or_default();
        let first = of_place.entry(signed.by).or_insert_with(|| signed.clone());
        if first.statement != signed.statement {
            let pair = (first.clone(), signed.clone());
            if self.accused.insert((sequence, signed.by)) {
                out.push(NodeAction::Accuse(Box::new(pair)));
            }
            return;
        }
        let same: Vec<Signed<K::Signature>> =
            of_place.values().filter(|other| other.statement == signed.statement).cloned().collect();
        self.accept_checkpoint(same, out);
    }

    /// Forgets everything up to a checkpoint that a quorum has signed.
    fn accept_checkpoint(
        &mut self,
        signed: Vec<Signed<K::Signature>>,
        out: &mut Vec<NodeAction<K::Signature>>,
    ) {
        let Some(Signed { sequence, statement: Statement::Checkpoint { head }, .. }) = signed.first() else {
            return;
        };
        let (sequence, head) = (*sequence, *head);
        if sequence <= self.stable || !is_quorum_on_the_same(&signed, self.quorum) {
            return;
        }
        self.stable = sequence;
        self.stable_signed.clone_from(&signed);
        self.instances = self.instances.split_off(&(sequence + 1));
        self.checkpoints = self.checkpoints.split_off(&(sequence + 1));
        self.accused.retain(|(other, _)| *other > sequence);
        out.push(NodeAction::Stable(sequence, signed));
        if self.known.0 < sequence {
            self.known = (sequence, head);
            self.advance(out);
        }
    }

    /// Returns the answer to a party that knows all decisions up to one: some of those that it misses. This changes
    /// nothing, and need not be written down. The caller decides how often a party may ask.
    pub fn answer(&self, to: NodeId, known: Sequence) -> Vec<NodeAction<K::Signature>> {
        let mut out = Vec::new();
        match to {
            // A reviewer continues from there. One that knows just as much may have no checkpoint yet, and then
            // accepts nothing beyond its window.
            NodeId::Reviewer(_) if self.stable > 0 && known <= self.stable => {
                out.push(NodeAction::Send(To::One(to), Packet::Stable(self.stable_signed.clone())));
            }
            // An orchestrator needs every decision, so it does not skip to a checkpoint.
            NodeId::Orchestrator(_) if known < self.stable => out.push(NodeAction::Recall(to, known)),
            NodeId::Reviewer(_) | NodeId::Orchestrator(_) => {}
        }
        let after = known.max(self.stable).saturating_add(1);
        let known = self.instances.range(after..).filter(|(_, instance)| instance.is_decided());
        out.extend(known.take(PROOFS_AT_ONCE).flat_map(|(_, instance)| prove_decision(instance, to)));
        out
    }

    /// Repeats the messages that have led to nothing yet, and asks for decisions that others may know.
    fn repeat(&self, out: &mut Vec<NodeAction<K::Signature>>) {
        for instance in self.instances.values().filter(|instance| !instance.is_decided()) {
            for (view, message) in &instance.own {
                // Votes of views that were left are for the record alone.
                if *view >= instance.slot.view() || message.opinion.is_none() {
                    out.push(NodeAction::Send(To::All, Packet::Message(message.clone())));
                }
            }
        }
        for signed in self.checkpoints.values().filter_map(|of_place| of_place.get(&self.me)) {
            let message = SignedMessage::alone(signed.clone());
            out.push(NodeAction::Send(To::Reviewers, Packet::Message(message)));
        }
        out.push(NodeAction::Send(To::All, Packet::Have(self.known.0)));
    }
}

/// Performs an action of a slot. `cause` is the message behind it. Returns the reviewer's own message, as an input of the slot.
fn perform<K: Signer>(
    key: &K,
    me: Reviewer,
    sequence: Sequence,
    instance: &mut SlotEvidence<K::Signature>,
    action: SlotAction,
    cause: Option<&SignedMessage<K::Signature>>,
    out: &mut Vec<NodeAction<K::Signature>>,
) -> Option<SlotInput> {
    match action {
        SlotAction::Acknowledge(view, value) => {
            let message = cause?;
            instance.is_wanted = true;
            instance.proposals.insert(view, message.signed.clone());
            if let Some(change) = &message.change {
                instance.changes.insert(change.digest(), change.clone());
            }
            let own = sign(key, me, sequence, Statement::Acknowledge { view, value });
            instance.own.push((view, SignedMessage::alone(own.clone())));
            let author = NodeId::Orchestrator(message.signed.by);
            out.push(NodeAction::Send(To::One(author), Packet::Message(SignedMessage::alone(own))));
        }
        SlotAction::Review(digest) => {
            if let Some(change) = instance.changes.get(&digest) {
                out.push(NodeAction::Review(sequence, change.clone()));
            }
        }
        SlotAction::Say(said) => {
            let (view, message) = say(key, me, sequence, instance, &said);
            instance.own.push((view, message.clone()));
            out.push(NodeAction::Send(To::All, Packet::Message(message)));
            return Some(SlotInput::Said(me, said));
        }
        SlotAction::Decide(decision) => {
            let proof = proof_of(instance, &decision);
            instance.proof = Some(proof.clone());
            out.push(NodeAction::Decide(sequence, proof));
        }
        SlotAction::Accuse(fraud) => {
            let first = match fraud {
                Fraud::Proposals(view, ..) => instance.proposals.get(&view).cloned(),
                Fraud::Prepares(by, first, _) => {
                    instance.prepares.get(&(first.view, by)).map(|message| message.signed.clone())
                }
                Fraud::Commits(by, first, _) => instance.commits.first(first.view, by).cloned(),
            };
            if let (Some(first), Some(message)) = (first, cause) {
                out.push(NodeAction::Accuse(Box::new((first, message.signed.clone()))));
            }
        }
    }
    None
}

/// Returns the answer to a party that does not know of a decision: its proof. An orchestrator first gets this
/// reviewer's opinions, which are for the record and may not have come.
fn prove_decision<S: Clone>(instance: &SlotEvidence<S>, to: NodeId) -> Vec<NodeAction<S>> {
    let mut packets = Vec::new();
    if matches!(to, NodeId::Orchestrator(_)) {
        let own = instance.own.iter().map(|(_, message)| message);
        packets.extend(own.filter(|message| message.opinion.is_some()).cloned().map(Packet::Message));
    }
    packets.extend(instance.proof.clone().map(Packet::Proof));
    packets.into_iter().map(|packet| NodeAction::Send(To::One(to), packet)).collect()
}

/// Returns the next link of the chain of decisions: the SHA-256 of the last link, the place and the value, one per
/// line.
pub fn link(head: Digest, sequence: Sequence, value: Value) -> Digest {
    Digest::new(format!("{head}\n{sequence}\n{value}\n").as_bytes())
}
