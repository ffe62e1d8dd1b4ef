//! A running party: it hears packets, writes them down, and acts on them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::NodeError;
use super::inbox::Inbox;
use super::log::NodeLog;
use super::timers::{PhaseTimeouts, Timers};
use super::votes::Votes;
use crypto::{Digest, Signature};
use quorum::local_cluster::DecisionProof;
use quorum::node_machine::{NodeAction, NodeInput, NodeMachine};
use quorum::proposer::Proposer;
use quorum::replica::Replica;
use quorum::{
    Change, Membership, ModelOpinion, NodeId, Opinion, PROOFS_AT_ONCE, Packet, Proof, Reviewer, RosterSigner,
    Sequence, Signed, To, Value,
};

mod hearing;

/// The most packets that are written down together, with one sync.
const AT_ONCE: usize = 64;

/// The interval at which missing votes are asked for. It is longer than the interval at which they are answered.
const ASK_EVERY: std::time::Duration = std::time::Duration::from_millis(400);

/// A carrier of packets to other parties.
pub trait Carrier {
    /// Sends a packet to a party. The packet may be lost.
    fn send(&self, to: NodeId, packet: &Arc<str>);
}

/// A reviewer, which has opinions on changes.
pub trait ReviewerNode {
    /// Reviews the change that is proposed at this place, and names the model that did so. A reviewer that cannot review
    /// abstains.
    fn review(&self, sequence: Sequence, change: &Change) -> impl Future<Output = ModelOpinion>;
}

/// A party that takes part in decisions.
#[derive(Debug)]
pub struct Node {
    me: NodeId,
    membership: Arc<Membership>,
    member: NodeMachine<RosterSigner>,
    log: NodeLog,
    /// The decisions, for parties that have missed them.
    decisions: BTreeMap<Sequence, Proof<Signature>>,
    /// The votes that were heard, each with its opinion.
    votes: watch::Sender<Votes>,
    /// The submitted changes, each with the place at which it ended: it was decided on there, or given up.
    submitted: BTreeMap<Digest, Option<Sequence>>,
    /// The actions that are wanted and were not done yet.
    pending: Vec<NodeAction<Signature>>,
    /// The time at which each party was last sent what it has missed: after it asked, and after it sent something that is over.
    answered: BTreeMap<(NodeId, bool), Instant>,
    /// The bytes of each party that were written down since the last decision.
    heard_bytes: BTreeMap<NodeId, usize>,
    /// The last checkpoint that a quorum has signed.
    stable: Sequence,
    /// The statements that this party has signed since then.
    signed: BTreeSet<(Sequence, Digest)>,
    folder: PathBuf,
    /// Whether the log was empty.
    is_new: bool,
    /// The place up to which nothing is signed, until it is known what was decided there.
    held: Sequence,
}

impl Node {
    /// Opens the party whose log is in this folder, or begins a new log there.
    ///
    /// Returns [`NodeError`] if the log is in use or cannot be trusted.
    pub fn open(
        folder: &Path,
        membership: &Arc<Membership>,
        me: NodeId,
        signer: RosterSigner,
    ) -> Result<Self, NodeError> {
        let (quorum, orchestrators) = (membership.quorum(), membership.roster().orchestrators.len());
        let member = match me {
            NodeId::Reviewer(at) => NodeMachine::Reviewer(Replica::new(signer, at, quorum, orchestrators)),
            NodeId::Orchestrator(at) => {
                NodeMachine::Orchestrator(Proposer::new(signer, at, quorum, orchestrators))
            }
        };
        let (log, inputs) = NodeLog::open(folder, membership)?;
        let mut node = Self {
            me,
            membership: Arc::clone(membership),
            member,
            log,
            decisions: BTreeMap::new(),
            votes: watch::Sender::default(),
            submitted: BTreeMap::new(),
            pending: Vec::new(),
            answered: BTreeMap::new(),
            heard_bytes: BTreeMap::new(),
            stable: 0,
            signed: BTreeSet::new(),
            folder: folder.to_owned(),
            is_new: inputs.is_empty(),
            held: 0,
        };
        for input in inputs {
            node.note_input(&input);
            for action in node.member.step(input) {
                node.note_action(&action);
                // A process that died in between has not reported it.
                if matches!(action, NodeAction::Accuse(_)) {
                    node.pending.push(action);
                }
            }
        }
        node.log.forget(node.member.known(), node.stable);
        Ok(node)
    }

    /// Returns the place up to which all decisions are known.
    pub fn known(&self) -> Sequence {
        self.member.known()
    }

    /// Returns whether the log was empty when it was opened.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the start of the log, as its owner has given it. Decisions that a branch shows below that place were made by
    /// other keys, or without this one.
    pub fn starts_at(&self) -> Option<Sequence> {
        self.log.starts_at()
    }

    /// Writes down the start of the log, once and for all. The same value again changes nothing.
    ///
    /// Returns [`NodeError::StartsElsewhere`] if another start was given before; another error if it cannot be written.
    pub fn start_at(&mut self, sequence: Sequence) -> Result<(), NodeError> {
        self.log.start_at(sequence)
    }

    /// Returns the value that was decided at a place, if its proof is here. A place that is known by a checkpoint alone has no
    /// proof here.
    pub fn value_at(&self, sequence: Sequence) -> Option<Value> {
        Some(self.decisions.get(&sequence)?.check(self.membership.quorum())?.value)
    }

    /// Signs nothing at places up to this one until others have shown what was decided there. A branch says that these places
    /// are decided, and this log does not know how. Proofs are taken as ever.
    pub fn hold_up_to(&mut self, up_to: Sequence) {
        self.held = self.held.max(up_to);
    }

    /// Returns whether nothing is signed at this place for now.
    fn holds(&self, sequence: Sequence) -> bool {
        sequence <= self.held && sequence > self.member.known()
    }

    /// Returns whether a decision on the change with this digest is wanted, or was.
    pub fn has_submitted(&self, change: Digest) -> bool {
        self.submitted.contains_key(&change)
    }

    /// Returns the place at which a submitted change has ended. It was decided on there, or nothing was and it is no longer
    /// proposed. Returns `None` while it is under way.
    pub fn ended(&self, change: Digest) -> Option<Sequence> {
        self.submitted.get(&change).copied().flatten()
    }

    /// Asks for a decision on a change. The request is durable when this returns, and the change is proposed when the party
    /// runs.
    ///
    /// Returns [`NodeError`] if it cannot be written down.
    pub fn submit(&mut self, change: Change) -> Result<(), NodeError> {
        let (actions, _) = self.take(vec![NodeInput::Submit(change)])?;
        self.pending.extend(actions);
        Ok(())
    }

    /// Returns the votes that are heard, for as long as this party takes part.
    pub fn votes(&self) -> watch::Receiver<Votes> {
        self.votes.subscribe()
    }

    /// Returns the decision at a place, with the votes on a change that were heard, or `None` if it is not known.
    pub fn proof_of(&self, sequence: Sequence, on: Value) -> Option<DecisionProof<Signature>> {
        let proof = self.decisions.get(&sequence)?.clone();
        let value = proof.check(self.membership.quorum())?.value;
        Some(DecisionProof { sequence, value, proof, votes: self.votes.borrow().on(sequence, on) })
    }

    /// Asks for the votes of these reviewers on a change that has ended, and listens until all are there. They are for the
    /// record alone: a decision is known as soon as one packet proves it, which may come before the votes of others do. The
    /// future can be dropped at any moment.
    ///
    /// Returns [`NodeError`] if something cannot be written down.
    pub async fn hear_votes(
        &mut self,
        change: &Change,
        reviewers: &[Reviewer],
        inbox: &mut Inbox,
        carrier: &impl Carrier,
    ) -> Result<(), NodeError> {
        let Some(sequence) = self.ended(change.digest()) else { return Ok(()) };
        let mut asks = tokio::time::interval(ASK_EVERY);
        while reviewers.iter().any(|by| !self.votes.borrow().has(sequence, *by, change.value())) {
            tokio::select! {
                packets = inbox.take(AT_ONCE) => {
                    if packets.is_empty() {
                        return Ok(());
                    }
                    let mut news = Vec::new();
                    let mut actions = self.hear_all(packets, &mut news)?;
                    actions.extend(self.take(news)?.0);
                    for action in actions {
                        self.note_action(&action);
                        self.deliver(carrier, &action);
                    }
                }
                // Reviewers answer a party that knows less with their votes, and with the proof.
                _ = asks.tick() => {
                    self.send(carrier, To::Reviewers, &Packet::Have(sequence.saturating_sub(1)));
                }
            }
        }
        Ok(())
    }

    /// Takes part until `tell` has heard enough, or nothing can be heard any more. The future can be dropped at any moment, and
    /// this can be run again.
    ///
    /// Returns [`NodeError`] if something cannot be written down. Then it is not done either.
    pub async fn run<R: ReviewerNode>(
        &mut self,
        inbox: &mut Inbox,
        carrier: &impl Carrier,
        reviewer: &R,
        timeouts: PhaseTimeouts,
        mut tell: impl FnMut(&NodeAction<Signature>) -> ControlFlow<()>,
    ) -> Result<(), NodeError> {
        let mut timers = Timers::new(timeouts, Instant::now());
        let mut reviews = FuturesUnordered::new();
        let mut actions = std::mem::take(&mut self.pending);
        actions.extend(self.member.resume());
        loop {
            let mut is_enough = false;
            for action in actions {
                self.note_action(&action);
                is_enough |= tell(&action).is_break();
                self.deliver(carrier, &action);
                match action {
                    NodeAction::Review(sequence, _) if self.holds(sequence) => {}
                    NodeAction::Review(sequence, change) => reviews.push(async move {
                        let reading = reviewer.review(sequence, &change).await;
                        NodeInput::Reviewed(sequence, change.digest(), Arc::new(reading))
                    }),
                    NodeAction::Wait(sequence, view, phase) => {
                        timers.wait(Instant::now(), sequence, view, phase);
                    }
                    NodeAction::Decide(sequence, _) | NodeAction::Tell(sequence, ..) => {
                        timers.forget(sequence);
                    }
                    NodeAction::Send(..)
                    | NodeAction::Recall(..)
                    | NodeAction::Return(..)
                    | NodeAction::Late(..)
                    | NodeAction::Stable(..)
                    | NodeAction::Accuse(_) => {}
                }
            }
            if is_enough {
                return Ok(());
            }
            let mut news = Vec::new();
            actions = Vec::new();
            tokio::select! {
                packets = inbox.take(AT_ONCE) => {
                    if packets.is_empty() {
                        return Ok(());
                    }
                    actions = self.hear_all(packets, &mut news)?;
                }
                Some(review) = reviews.next() => news.push(review),
                () = tokio::time::sleep_until(timers.next()) => {
                    for input in timers.take_due(Instant::now()) {
                        if let NodeInput::Expired(sequence, ..) = input
                            && self.holds(sequence)
                        {
                            continue;
                        }
                        // A repetition changes nothing, and need not be written down.
                        if let NodeInput::Again = input {
                            actions.extend(self.member.step(input));
                        } else {
                            news.push(input);
                        }
                    }
                }
            }
            let (more, is_new) = self.take(news)?;
            actions.extend(more);
            if is_new {
                timers.note_news(Instant::now());
            }
        }
    }

    /// Writes down inputs, and gives them to the machine. Returns the actions that it asks for, and whether any input had not
    /// come before.
    fn take(
        &mut self,
        news: Vec<NodeInput<Signature>>,
    ) -> Result<(Vec<NodeAction<Signature>>, bool), NodeError> {
        if news.is_empty() {
            return Ok((Vec::new(), false));
        }
        let is_new = self.log.write(&news, &self.membership, &mut self.heard_bytes)?;
        let known = self.member.known();
        let mut actions = Vec::new();
        for input in news {
            self.note_input(&input);
            actions.extend(self.member.step(input));
        }
        if self.member.known() > known {
            self.heard_bytes.clear();
        }
        self.log.forget(self.member.known(), self.stable);
        Ok((actions, is_new))
    }

    /// Sends the packets that an action asks for.
    fn deliver(&self, carrier: &impl Carrier, action: &NodeAction<Signature>) {
        if let NodeAction::Send(to, packet) = action {
            self.send(carrier, *to, packet);
        }
        if let NodeAction::Recall(to, after) = action {
            for (_, proof) in self.decisions.range(after.saturating_add(1)..).take(PROOFS_AT_ONCE) {
                self.send(carrier, To::One(*to), &Packet::Proof(proof.clone()));
            }
        }
    }

    fn send(&self, carrier: &impl Carrier, to: To, packet: &Packet<Signature>) {
        let text: Arc<str> = self.membership.write(packet).into();
        for (party, _) in self.membership.seats() {
            if to.reaches(self.me, party) {
                carrier.send(party, &text);
            }
        }
    }

    fn note_input(&mut self, input: &NodeInput<Signature>) {
        match input {
            NodeInput::Heard(_, Packet::Message(message)) => {
                self.votes.send_if_modified(|votes| votes.keep(message));
            }
            NodeInput::Submit(change) => _ = self.submitted.insert(change.digest(), None),
            NodeInput::Heard(..) | NodeInput::Reviewed(..) | NodeInput::Expired(..) | NodeInput::Again => {}
        }
    }

    fn note_action(&mut self, action: &NodeAction<Signature>) {
        if let NodeAction::Decide(sequence, proof) | NodeAction::Tell(sequence, _, proof) = action {
            self.decisions.insert(*sequence, proof.clone());
        }
        if let NodeAction::Stable(sequence, _) = action {
            self.stable = *sequence;
            self.signed.retain(|(signed, _)| signed > sequence);
        }
        if let NodeAction::Send(_, Packet::Message(message)) = action
            && message.signed.author() == self.me
        {
            self.signed.insert(key_of(&message.signed));
        }
        let ended = match action {
            NodeAction::Tell(sequence, Value::Change(digest), _) => Some((*sequence, *digest)),
            NodeAction::Return(sequence, change, _) => Some((*sequence, change.digest())),
            NodeAction::Tell(_, Value::Nothing, _)
            | NodeAction::Send(..)
            | NodeAction::Review(..)
            | NodeAction::Wait(..)
            | NodeAction::Decide(..)
            | NodeAction::Late(..)
            | NodeAction::Recall(..)
            | NodeAction::Stable(..)
            | NodeAction::Accuse(_) => None,
        };
        if let Some((sequence, digest)) = ended {
            self.submitted.insert(digest, Some(sequence));
        }
    }
}

/// Returns the place and the digest of the signature, which distinguish a statement from all others of its author.
fn key_of(signed: &Signed<Signature>) -> (Sequence, Digest) {
    (signed.sequence, Digest::new(&signed.signature.to_bytes()))
}

/// A party without opinions: an orchestrator is never asked for one.
impl ReviewerNode for () {
    async fn review(&self, _: Sequence, _: &Change) -> ModelOpinion {
        Opinion::Abstain { reason: "no one reviews here".to_owned() }.into()
    }
}
