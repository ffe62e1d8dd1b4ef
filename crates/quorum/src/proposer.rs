//! An orchestrator: it numbers changes, proposes them in its own views, and learns the decisions.
//!
//! The input is changes, packets of reviewers and time-outs. The output is proposals, and decisions in their order,
//! each once. An orchestrator has no vote. Like a reviewer, it depends on its inputs alone: given again in the same
//! order, they lead to the same proposals.
//!
//! A change that was submitted is decided on, or comes back with the reason. If its place goes to something else, it
//! gets another place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::message::{Commit, LeaderProposal, Reviewer, Value, View, Vote};
use super::node_id::NodeId;
use super::packet::{Commits, PROOFS_AT_ONCE, Packet, Proof, To, WINDOW, leader};
use super::quorum::Quorum;
use super::statement::{Change, Sequence, Signed, SignedMessage, Signer, Statement};
use crypto::Digest;

/// The number of decisions under way at once. It is half of what reviewers allow, since their checkpoints may be
/// late.
pub const IN_FLIGHT: Sequence = WINDOW / 2;

/// The number of views in which a change is proposed at most, if no reviewer says why it is not approved.
const TRIES_MAX: u32 = 3;

/// The number of other orchestrators' changes that are kept for each decision.
const CHANGES_MAX: usize = 4;

/// An input of an orchestrator.
#[derive(Clone, Debug)]
pub enum ProposerInput<S> {
    /// A change is to be decided on.
    Submit(Change),
    /// A packet has come from this party. A claim to have decisions changes nothing here: see [`Proposer::answer`].
    Heard(NodeId, Packet<S>),
    /// The time to acknowledge the proposal of a view is over.
    Expired(Sequence, View),
    /// Earlier messages may be lost, and it is time to repeat them.
    Again,
}

/// An action that an orchestrator asks for.
#[derive(Clone, Debug)]
pub enum ProposerAction<S> {
    /// Send a packet.
    Send(To, Packet<S>),
    /// Begin the time to acknowledge the proposal of a view.
    Wait(Sequence, View),
    /// Report the reviewers that did not acknowledge the proposal of a view in time. It has been sent to them again.
    Late(Sequence, View, Vec<Reviewer>),
    /// Keep a decision that follows on all before it; each place comes once, in order. The decision is forgotten
    /// here.
    Decide(Sequence, Value, Proof<S>),
    /// Return a change that was submitted, with the reason. Nothing was decided at its place, and it is no longer
    /// proposed.
    Return(Sequence, Change, Why),
    /// Send some of the decisions after this one, which were reported before, to a party that wants them.
    Recall(NodeId, Sequence),
}

/// The reason why a change comes back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Why {
    /// So many reviewers do not approve it that no quorum can: these.
    Refused(BTreeSet<Reviewer>),
    /// It was proposed as often as a change may be, and no quorum has answered.
    NoQuorum,
}

/// A change, with the number of views in which it was proposed and the reviewers that do not approve it.
#[derive(Clone, Debug)]
struct Wish {
    change: Change,
    tries: u32,
    against: BTreeSet<Reviewer>,
}

/// The orchestrator's knowledge of one decision.
#[derive(Clone, Debug)]
struct Job<S> {
    /// The change that it wants to be decided on here.
    wish: Option<Wish>,
    /// The changes of others that may be decided here. Without a wish of its own, it proposes the one that is wanted.
    changes: BTreeMap<Digest, Change>,
    wanted: Option<Digest>,
    /// The last view that each reviewer has gone to, with its message. A lock in it, if any, holds.
    left: BTreeMap<Reviewer, (View, SignedMessage<S>)>,
    commits: Commits<S>,
    /// The last of its proposals. The reviewers below have acknowledged it.
    proposal: Option<(View, SignedMessage<S>)>,
    acknowledged: BTreeSet<Reviewer>,
    decision: Option<(Value, Proof<S>)>,
}

/// An orchestrator.
#[derive(Clone, Debug)]
pub struct Proposer<K: Signer> {
    key: K,
    me: usize,
    quorum: Quorum,
    orchestrators: usize,
    /// The place up to which all decisions have been reported.
    told: Sequence,
    waiting: VecDeque<Wish>,
    jobs: BTreeMap<Sequence, Job<K::Signature>>,
}

impl Wish {
    fn why(&self, quorum: Quorum) -> Option<Why> {
        if self.against.len() >= quorum.blocking() {
            return Some(Why::Refused(self.against.clone()));
        }
        (self.tries >= TRIES_MAX).then_some(Why::NoQuorum)
    }
}

impl<S> Default for Job<S> {
    fn default() -> Self {
        Self {
            wish: None,
            changes: BTreeMap::new(),
            wanted: None,
            left: BTreeMap::new(),
            commits: Commits::default(),
            proposal: None,
            acknowledged: BTreeSet::new(),
            decision: None,
        }
    }
}

impl<S: Clone> Job<S> {
    fn learn(&mut self, change: Option<&Change>) {
        if let Some(change) = change.filter(|_| self.changes.len() < CHANGES_MAX) {
            self.changes.entry(change.digest()).or_insert_with(|| change.clone());
        }
    }

    fn change(&self, value: Value) -> Option<&Change> {
        let Value::Change(digest) = value else { return None };
        let own = self.wish.as_ref().map(|wish| &wish.change);
        own.filter(|change| change.digest() == digest).or_else(|| self.changes.get(&digest))
    }

    /// Returns the value that it proposes if it may choose.
    fn choice(&self, quorum: Quorum) -> Value {
        let own = self.wish.as_ref().filter(|wish| wish.why(quorum).is_none());
        let others = self.wanted.filter(|_| self.wish.is_none() && self.proposal.is_none());
        own.map(|wish| wish.change.value()).or(others.map(Value::Change)).unwrap_or(Value::Nothing)
    }

    /// Returns true if a decision has been made and its value is known in full.
    fn is_known(&self) -> bool {
        let is_told = |(value, proof): &(Value, Proof<S>)| *value == Value::Nothing || proof.change.is_some();
        self.decision.as_ref().is_some_and(is_told)
    }

    /// Returns true if no message has been sent about this place.
    fn is_untouched(&self) -> bool {
        self.wish.is_none() && self.decision.is_none() && self.proposal.is_none() && self.left.is_empty()
    }
}

impl<K: Signer> Proposer<K> {
    /// Returns the orchestrator at place `me` of `orchestrators`, for these reviewers. It has proposed nothing yet.
    pub fn new(key: K, me: usize, quorum: Quorum, orchestrators: usize) -> Self {
        Self { key, me, quorum, orchestrators, told: 0, waiting: VecDeque::new(), jobs: BTreeMap::new() }
    }

    /// Returns the place up to which all decisions have been reported.
    pub fn told(&self) -> Sequence {
        self.told
    }

    /// Returns the number of submitted changes that are neither decided on nor returned.
    pub fn pending(&self) -> usize {
        self.waiting.len() + self.jobs.values().filter(|job| job.wish.is_some()).count()
    }

    /// Takes an input. The same inputs give the same outputs; an input that makes no sense is dropped.
    pub fn step(&mut self, input: ProposerInput<K::Signature>) -> Vec<ProposerAction<K::Signature>> {
        let mut out = Vec::new();
        match input {
            ProposerInput::Submit(change) => {
                self.waiting.push_back(Wish { change, tries: 0, against: BTreeSet::new() });
            }
            ProposerInput::Heard(_, Packet::Message(message)) => self.message(&message, &mut out),
            ProposerInput::Heard(_, Packet::Proof(proof)) => self.proof(proof),
            ProposerInput::Heard(_, Packet::Stable(_) | Packet::Have(_)) => {}
            ProposerInput::Expired(sequence, view) => self.late(sequence, view, &mut out),
            ProposerInput::Again => self.again(&mut out),
        }
        self.tell(&mut out);
        self.begin(&mut out);
        out
    }

    /// Returns true if a message with this statement, or a proof of it, can make a difference here. Otherwise its
    /// signature need not be checked.
    pub fn wants(&self, sequence: Sequence, statement: &Statement) -> bool {
        let is_about_it = !matches!(statement, Statement::Checkpoint { .. });
        is_about_it && self.is_near(sequence) && self.jobs.get(&sequence).is_none_or(|job| !job.is_known())
    }

    /// Returns true if something is still to be decided at this place.
    fn is_open(&self, sequence: Sequence) -> bool {
        self.is_near(sequence) && self.jobs.get(&sequence).is_none_or(|job| job.decision.is_none())
    }

    fn is_near(&self, sequence: Sequence) -> bool {
        sequence > self.told && sequence <= self.told + WINDOW
    }

    /// Returns the time-outs that are still awaited, for a caller that has given all earlier inputs again.
    pub fn resume(&self) -> Vec<ProposerAction<K::Signature>> {
        let open = self.jobs.iter().filter(|(_, job)| job.decision.is_none());
        open.filter_map(|(sequence, job)| Some(ProposerAction::Wait(*sequence, job.proposal.as_ref()?.0)))
            .collect()
    }

    fn is_mine(&self, sequence: Sequence, view: View) -> bool {
        leader(sequence, view, self.orchestrators) == self.me
    }

    fn sign(&self, sequence: Sequence, statement: Statement) -> Signed<K::Signature> {
        let signature = self.key.sign(sequence, &statement);
        Signed { by: self.me, sequence, statement, signature }
    }

    fn message(
        &mut self,
        message: &SignedMessage<K::Signature>,
        out: &mut Vec<ProposerAction<K::Signature>>,
    ) {
        let SignedMessage { signed, change, .. } = message;
        let (sequence, by, quorum, orchestrators) =
            (signed.sequence, signed.by, self.quorum, self.orchestrators);
        if !self.is_open(sequence) {
            return;
        }
        let job = self.jobs.entry(sequence).or_default();
        let is_reviewer = by < quorum.reviewers();
        match &signed.statement {
            Statement::PrePrepare { view, value } => {
                if by == leader(sequence, *view, orchestrators) && message.has(*value) {
                    job.learn(change.as_ref());
                }
            }
            Statement::Want { value: Value::Change(digest) } => {
                if job.wanted.is_none() && message.has(Value::Change(*digest)) {
                    job.learn(change.as_ref());
                    job.wanted = job.changes.contains_key(digest).then_some(*digest);
                    self.open(sequence, out);
                }
            }
            Statement::Acknowledge { view, .. } if is_reviewer => {
                if job.proposal.as_ref().is_some_and(|(own, _)| own == view) {
                    job.acknowledged.insert(by);
                }
            }
            Statement::Prepare { view, value, vote, .. } if is_reviewer => {
                if job.proposal.as_ref().is_some_and(|(own, _)| own == view) {
                    job.acknowledged.insert(by);
                }
                let wish = job.wish.as_mut().filter(|wish| wish.change.value() == *value);
                if let Some(wish) = wish.filter(|_| matches!(vote, Vote::Reject | Vote::Abstain)) {
                    wish.against.insert(by);
                }
            }
            Statement::Commit(commit) if is_reviewer => {
                job.commits.keep_latest(commit.view, signed);
                let commits = job.commits.to(*commit);
                if commits.len() >= quorum.size() {
                    let Commit { value, .. } = *commit;
                    let change = job.change(value).cloned();
                    job.decision = Some((value, Proof { change, commits }));
                }
            }
            Statement::ViewChange { view, .. } if is_reviewer => {
                let view = *view;
                let is_news = job.left.get(&by).is_none_or(|(last, _)| *last < view);
                // A message whose grounds were lost on the way would block the whole proposal.
                if let Some((_, change)) = message.view_change(sequence).filter(|_| is_news)
                    && change.lock.as_ref().is_none_or(|lock| {
                        lock.holds(quorum) && (message.has(lock.value) || job.change(lock.value).is_some())
                    })
                {
                    let locked = message.change.iter().filter(|_| change.lock.is_some());
                    job.changes.extend(locked.map(|change| (change.digest(), change.clone())));
                    job.left.insert(by, (view, message.bare()));
                    self.lead(sequence, view, out);
                }
            }
            Statement::Want { value: Value::Nothing }
            | Statement::Acknowledge { .. }
            | Statement::Prepare { .. }
            | Statement::Commit(_)
            | Statement::ViewChange { .. }
            | Statement::Checkpoint { .. } => {}
        }
    }

    /// Accepts a decision that a quorum proves.
    fn proof(&mut self, proof: Proof<K::Signature>) {
        let Some(proven) = proof.check(self.quorum) else { return };
        if !self.is_near(proven.sequence) {
            return;
        }
        let job = self.jobs.entry(proven.sequence).or_default();
        let change = proof.change.filter(|change| change.value() == proven.value);
        // A decision whose change is not known yet can be reported once a party sends the change.
        if job.decision.as_ref().is_none_or(|(_, known)| known.change.is_none()) {
            let change = change.or_else(|| job.change(proven.value).cloned());
            job.decision = Some((proven.value, Proof { change, commits: proof.commits }));
        }
    }

    /// Proposes in the first view of a place, if that view is its own and there is something to propose.
    fn open(&mut self, sequence: Sequence, out: &mut Vec<ProposerAction<K::Signature>>) {
        let (is_mine, quorum) = (self.is_mine(sequence, 0), self.quorum);
        let job =
            self.jobs.get(&sequence).filter(|job| is_mine && job.proposal.is_none() && job.left.is_empty());
        let choice = job.map_or(Value::Nothing, |job| job.choice(quorum));
        if choice != Value::Nothing {
            self.propose(sequence, 0, choice, Arc::new([]), out);
        }
    }

    /// Proposes a value in a view of its own that a quorum has gone to.
    fn lead(&mut self, sequence: Sequence, view: View, out: &mut Vec<ProposerAction<K::Signature>>) {
        let (is_mine, quorum) = (self.is_mine(sequence, view), self.quorum);
        let Some(job) = self.jobs.get(&sequence).filter(|_| is_mine) else { return };
        if job.proposal.as_ref().is_some_and(|(own, _)| *own >= view) {
            return;
        }
        let here = job.left.values().filter(|(other, _)| *other == view);
        let grounds: Vec<SignedMessage<K::Signature>> = here.map(|(_, message)| message.clone()).collect();
        let said = grounds.iter().filter_map(|message| message.view_change(sequence)).collect();
        if let Some(proposal) = LeaderProposal::after(view, said, job.choice(quorum), quorum) {
            self.propose(sequence, view, proposal.value, grounds.into(), out);
        }
    }

    fn propose(
        &mut self,
        sequence: Sequence,
        view: View,
        value: Value,
        grounds: Arc<[SignedMessage<K::Signature>]>,
        out: &mut Vec<ProposerAction<K::Signature>>,
    ) {
        let signed = self.sign(sequence, Statement::PrePrepare { value, view });
        let Some(job) = self.jobs.get_mut(&sequence) else { return };
        let message =
            SignedMessage { change: job.change(value).cloned(), grounds, ..SignedMessage::alone(signed) };
        if let Some(wish) = job.wish.as_mut().filter(|wish| wish.change.value() == value) {
            wish.tries += 1;
        }
        job.proposal = Some((view, message.clone()));
        job.acknowledged.clear();
        out.push(ProposerAction::Send(To::All, Packet::Message(message)));
        out.push(ProposerAction::Wait(sequence, view));
    }

    /// Reports decisions in order, as far as they and their changes are known.
    fn tell(&mut self, out: &mut Vec<ProposerAction<K::Signature>>) {
        loop {
            let sequence = self.told + 1;
            let decision = self.jobs.get(&sequence).and_then(|job| job.decision.as_ref());
            let Some((value, proof)) =
                decision.filter(|_| self.jobs.get(&sequence).is_some_and(Job::is_known))
            else {
                return;
            };
            let value = *value;
            out.push(ProposerAction::Decide(sequence, value, proof.clone()));
            self.told = sequence;
            let wish = self.jobs.remove(&sequence).and_then(|job| job.wish);
            let Some(wish) = wish.filter(|wish| wish.change.value() != value) else { continue };
            match wish.why(self.quorum) {
                Some(why) => out.push(ProposerAction::Return(sequence, wish.change, why)),
                None => self.waiting.push_front(wish),
            }
        }
    }

    /// Gives places to the changes that wait.
    fn begin(&mut self, out: &mut Vec<ProposerAction<K::Signature>>) {
        while !self.waiting.is_empty() {
            let mut places = self.told + 1..=self.told + IN_FLIGHT;
            let place = places.find(|sequence| self.jobs.get(sequence).is_none_or(Job::is_untouched));
            let Some((sequence, wish)) = place.and_then(|place| Some((place, self.waiting.pop_front()?)))
            else {
                return;
            };
            self.jobs.entry(sequence).or_default().wish = Some(wish);
            if self.is_mine(sequence, 0) {
                self.open(sequence, out);
            } else {
                self.want(sequence, out);
            }
        }
    }

    /// Asks for a decision at a place where another orchestrator proposes first.
    fn want(&self, sequence: Sequence, out: &mut Vec<ProposerAction<K::Signature>>) {
        let change = self.jobs.get(&sequence).and_then(|job| Some(job.wish.as_ref()?.change.clone()));
        let value = change.as_ref().map_or(Value::Nothing, Change::value);
        let signed = self.sign(sequence, Statement::Want { value });
        out.push(ProposerAction::Send(
            To::All,
            Packet::Message(SignedMessage { change, ..SignedMessage::alone(signed) }),
        ));
    }

    /// Returns the answer to a party that knows all decisions up to one. This orchestrator may be the only party that
    /// has heard a quorum, since liars may send to it alone.
    pub fn answer(&self, to: NodeId, known: Sequence) -> Vec<ProposerAction<K::Signature>> {
        let mut out = Vec::new();
        if known < self.told {
            out.push(ProposerAction::Recall(to, known));
        }
        let after = self.jobs.range(known.saturating_add(1)..);
        let decided = after.filter_map(|(_, job)| job.decision.as_ref()).take(PROOFS_AT_ONCE);
        let packets = decided.map(|(_, proof)| Packet::Proof(proof.clone()));
        out.extend(packets.map(|packet| ProposerAction::Send(To::One(to), packet)));
        out
    }

    fn late(&mut self, sequence: Sequence, view: View, out: &mut Vec<ProposerAction<K::Signature>>) {
        let reviewers = self.quorum.reviewers();
        let Some(job) = self.jobs.get(&sequence).filter(|job| job.decision.is_none()) else { return };
        let Some((_, message)) = job.proposal.as_ref().filter(|(own, _)| *own == view) else { return };
        let late: Vec<Reviewer> = (0..reviewers).filter(|by| !job.acknowledged.contains(by)).collect();
        if late.is_empty() {
            return;
        }
        let packet = |by: &Reviewer| {
            ProposerAction::Send(To::One(NodeId::Reviewer(*by)), Packet::Message(message.clone()))
        };
        out.extend(late.iter().map(packet));
        out.push(ProposerAction::Late(sequence, view, late));
    }

    /// Repeats the messages that have led to nothing yet. All places up to the last that matters must be decided,
    /// including those that have no messages.
    fn again(&self, out: &mut Vec<ProposerAction<K::Signature>>) {
        let matters = |job: &Job<K::Signature>| job.wish.is_some() || job.decision.is_some();
        let last = self.jobs.iter().rev().find(|(_, job)| matters(job)).map_or(0, |(sequence, _)| *sequence);
        for sequence in self.told + 1..=last {
            let job = self.jobs.get(&sequence);
            if job.is_some_and(|job| job.decision.is_some()) {
                continue;
            }
            match job.and_then(|job| job.proposal.as_ref()) {
                Some((_, message)) => {
                    out.push(ProposerAction::Send(To::All, Packet::Message(message.clone())));
                }
                None => self.want(sequence, out),
            }
        }
        out.push(ProposerAction::Send(To::Reviewers, Packet::Have(self.told)));
    }
}
