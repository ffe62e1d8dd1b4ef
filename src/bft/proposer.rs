//! An orchestrator: it numbers changes, proposes them in the views that are its own, and hears what is decided.
//!
//! In come changes, packets of reviewers and time-outs; out go proposals, and decisions in their order, each once. It has no
//! vote. Like a reviewer it is what was put in: put in again, in the same order, it proposes nothing else.
//!
//! A change that was submitted is decided on, or comes back with the reason: where a place goes to something else, it
//! gets another one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::message::{Commit, LeaderProposal, Reviewer, Value, View, Vote};
use super::node_id::NodeId;
use super::packet::{Commits, PROOFS_AT_ONCE, Packet, Proof, To, WINDOW, leader};
use super::quorum::Quorum;
use super::statement::{Change, Sequence, Signed, SignedMessage, Signer, Statement};
use crate::crypto::Digest;

/// So many decisions are under way at once. Half of what reviewers allow: their checkpoints may be late.
pub const IN_FLIGHT: Sequence = WINDOW / 2;

/// A change is proposed in so many views at most, if nobody says why it is not approved.
const TRIES_MAX: u32 = 3;

/// So many changes of other orchestrators are kept for each decision.
const CHANGES_MAX: usize = 4;

/// What happens to an orchestrator.
#[derive(Clone, Debug)]
pub enum ProposerInput<S> {
    /// A change is to be decided on.
    Submit(Change),
    /// Something has come from somebody. What somebody says it has changes nothing here: see [`Proposer::answer`].
    Heard(NodeId, Packet<S>),
    /// The time to acknowledge the proposal of a view is over.
    Expired(Sequence, View),
    /// What was said may be lost: it is time to say it again.
    Again,
}

/// What an orchestrator wants.
#[derive(Clone, Debug)]
pub enum ProposerAction<S> {
    /// To be sent.
    Send(To, Packet<S>),
    /// The time to acknowledge the proposal of a view begins.
    Wait(Sequence, View),
    /// These reviewers have not acknowledged the proposal of a view in time; it has been sent to them again.
    Late(Sequence, View, Vec<Reviewer>),
    /// This is decided, and so is all before it; once for each place, in order. To be kept: it is forgotten here.
    Decide(Sequence, Value, Proof<S>),
    /// A change that was submitted is not proposed any more: nothing was decided at this place, where it was.
    Return(Sequence, Change, Why),
    /// Somebody wants some of the decisions after this one, which have been told.
    Recall(NodeId, Sequence),
}

/// Why a change comes back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Why {
    /// So many do not approve of it that no quorum can: these.
    Refused(BTreeSet<Reviewer>),
    /// It was proposed as often as a change is, and no quorum has said anything.
    NoQuorum,
}

/// A change, in how many views it has been proposed, and who does not approve of it.
#[derive(Clone, Debug)]
struct Wish {
    change: Change,
    tries: u32,
    against: BTreeSet<Reviewer>,
}

/// One decision.
#[derive(Clone, Debug)]
struct Job<S> {
    /// The change that it wants to be decided on here.
    wish: Option<Wish>,
    /// Those of others: what may be decided here, and what it proposes for them where it has no wish.
    changes: BTreeMap<Digest, Change>,
    wanted: Option<Digest>,
    /// The last view that each reviewer has gone to, with a lock that holds or none.
    left: BTreeMap<Reviewer, (View, SignedMessage<S>)>,
    commits: Commits<S>,
    /// The last of its proposals, and who has it.
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
    /// All decisions up to this one have been told.
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

    /// What it proposes where it may choose.
    fn choice(&self, quorum: Quorum) -> Value {
        let own = self.wish.as_ref().filter(|wish| wish.why(quorum).is_none());
        let others = self.wanted.filter(|_| self.wish.is_none() && self.proposal.is_none());
        own.map(|wish| wish.change.value()).or(others.map(Value::Change)).unwrap_or(Value::Nothing)
    }

    /// Whether it is decided, and what was decided is known.
    fn is_known(&self) -> bool {
        let is_told = |(value, proof): &(Value, Proof<S>)| *value == Value::Nothing || proof.change.is_some();
        self.decision.as_ref().is_some_and(is_told)
    }

    /// Whether nothing has been said about this place.
    fn is_untouched(&self) -> bool {
        self.wish.is_none() && self.decision.is_none() && self.proposal.is_none() && self.left.is_empty()
    }
}

impl<K: Signer> Proposer<K> {
    /// The orchestrator at place `me` of so many, for these reviewers; it has proposed nothing yet.
    #[must_use]
    pub fn new(key: K, me: usize, quorum: Quorum, orchestrators: usize) -> Self {
        Self { key, me, quorum, orchestrators, told: 0, waiting: VecDeque::new(), jobs: BTreeMap::new() }
    }

    /// All decisions up to this one have been told.
    #[must_use]
    pub fn told(&self) -> Sequence {
        self.told
    }

    /// So many changes that were submitted are neither decided on nor returned.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.waiting.len() + self.jobs.values().filter(|job| job.wish.is_some()).count()
    }

    /// Goes on. The same inputs give the same outputs; what makes no sense is dropped.
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

    /// Whether a message that says this, or a proof of it, can make a difference here. Its signature need not be checked if not.
    #[must_use]
    pub fn wants(&self, sequence: Sequence, statement: &Statement) -> bool {
        let is_about_it = !matches!(statement, Statement::Checkpoint { .. });
        is_about_it && self.is_near(sequence) && self.jobs.get(&sequence).is_none_or(|job| !job.is_known())
    }

    /// Whether this is a place where something is still to be decided.
    fn is_open(&self, sequence: Sequence) -> bool {
        self.is_near(sequence) && self.jobs.get(&sequence).is_none_or(|job| job.decision.is_none())
    }

    fn is_near(&self, sequence: Sequence) -> bool {
        sequence > self.told && sequence <= self.told + WINDOW
    }

    /// Returns what is waited for: for whoever has put in again all that was put in before.
    #[must_use]
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
                // One whose grounds were lost on the way would stand in the way of the whole.
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

    /// Takes a quorum's word for a decision.
    fn proof(&mut self, proof: Proof<K::Signature>) {
        let Some(proven) = proof.check(self.quorum) else { return };
        if !self.is_near(proven.sequence) {
            return;
        }
        let job = self.jobs.entry(proven.sequence).or_default();
        let change = proof.change.filter(|change| change.value() == proven.value);
        // A decision whose change is not known yet can be told when somebody sends it.
        if job.decision.as_ref().is_none_or(|(_, known)| known.change.is_none()) {
            let change = change.or_else(|| job.change(proven.value).cloned());
            job.decision = Some((proven.value, Proof { change, commits: proof.commits }));
        }
    }

    /// Proposes in the first view of a place, if that is its own and it has something to propose.
    fn open(&mut self, sequence: Sequence, out: &mut Vec<ProposerAction<K::Signature>>) {
        let (is_mine, quorum) = (self.is_mine(sequence, 0), self.quorum);
        let job =
            self.jobs.get(&sequence).filter(|job| is_mine && job.proposal.is_none() && job.left.is_empty());
        let choice = job.map_or(Value::Nothing, |job| job.choice(quorum));
        if choice != Value::Nothing {
            self.propose(sequence, 0, choice, Arc::new([]), out);
        }
    }

    /// Proposes a value in a view of its own to which a quorum has gone.
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

    /// Tells decisions in order, as far as they and their changes are known.
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

    /// Gives the changes that wait their places.
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

    /// Asks for a decision at a place where others have the word.
    fn want(&self, sequence: Sequence, out: &mut Vec<ProposerAction<K::Signature>>) {
        let change = self.jobs.get(&sequence).and_then(|job| Some(job.wish.as_ref()?.change.clone()));
        let value = change.as_ref().map_or(Value::Nothing, Change::value);
        let signed = self.sign(sequence, Statement::Want { value });
        out.push(ProposerAction::Send(
            To::All,
            Packet::Message(SignedMessage { change, ..SignedMessage::alone(signed) }),
        ));
    }

    /// What is sent to somebody who knows all decisions up to one. It may be the only one who has heard a quorum: liars tell it
    /// what they tell nobody else.
    #[must_use]
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

    /// Says again what has led to nothing yet. All places up to the last that matters have to be decided, also those where
    /// nobody has said anything.
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
