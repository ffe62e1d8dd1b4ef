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

use super::event::Phase;
use super::message::{Commit, LeaderProposal, NodeId, Reviewer, Value, View, Vote};
use super::node_event::{NodeAction, NodeInput, ReturnReason};
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

/// A change, with the number of views in which it was proposed and the reviewers that do not approve it.
#[derive(Clone, Debug)]
struct Wish {
    change: Change,
    tries: u32,
    against: BTreeSet<Reviewer>,
}

/// The orchestrator's knowledge of one decision.
#[derive(Clone, Debug)]
struct DecisionJob<S> {
    /// The change that it wants to be decided on here.
    wish: Option<Wish>,
    /// The changes of others that may be decided here. Without a wish of its own, it proposes the one that is wanted.
    changes: BTreeMap<Digest, Change>,
    requested: Option<Digest>,
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
    known: Sequence,
    waiting: VecDeque<Wish>,
    jobs: BTreeMap<Sequence, DecisionJob<K::Signature>>,
}

impl Wish {
    /// Returns the reason why the change is to be returned, if it is.
    fn return_reason(&self, quorum: Quorum) -> Option<ReturnReason> {
        if self.against.len() >= quorum.blocking() {
            Some(ReturnReason::Refused(self.against.clone()))
        } else if self.tries >= TRIES_MAX {
            Some(ReturnReason::NoQuorum)
        } else {
            None
        }
    }
}

impl<S> Default for DecisionJob<S> {
    fn default() -> Self {
        Self {
            wish: None,
            changes: BTreeMap::new(),
            requested: None,
            left: BTreeMap::new(),
            commits: Commits::default(),
            proposal: None,
            acknowledged: BTreeSet::new(),
            decision: None,
        }
    }
}

impl<S: Clone> DecisionJob<S> {
    fn learn(&mut self, change: Option<&Change>) {
        if let Some(change) = change
            && self.changes.len() < CHANGES_MAX
        {
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
        match (&self.wish, self.requested) {
            (Some(wish), _) if wish.return_reason(quorum).is_none() => wish.change.value(),
            (None, Some(requested)) if self.proposal.is_none() => Value::Change(requested),
            (Some(_) | None, _) => Value::Nothing,
        }
    }

    /// Returns true if a decision has been made and its value is known in full.
    fn is_known(&self) -> bool {
        match &self.decision {
            Some((value, proof)) => *value == Value::Nothing || proof.change.is_some(),
            None => false,
        }
    }

    /// Returns true if no message has been sent about this place.
    fn is_untouched(&self) -> bool {
        self.wish.is_none() && self.decision.is_none() && self.proposal.is_none() && self.left.is_empty()
    }
}

impl<K: Signer> Proposer<K> {
    /// Returns the orchestrator at place `me` of `orchestrators`, for these reviewers. It has proposed nothing yet.
    pub fn new(key: K, me: usize, quorum: Quorum, orchestrators: usize) -> Self {
        Self { key, me, quorum, orchestrators, known: 0, waiting: VecDeque::new(), jobs: BTreeMap::new() }
    }

    /// Returns the place up to which all decisions have been reported.
    pub fn known(&self) -> Sequence {
        self.known
    }

    /// Returns the number of submitted changes that are neither decided on nor returned.
    pub fn pending(&self) -> usize {
        self.waiting.len() + self.jobs.values().filter(|job| job.wish.is_some()).count()
    }

    /// Takes an input. The same inputs give the same outputs; an input that makes no sense is dropped.
    pub fn step(&mut self, input: NodeInput<K::Signature>) -> Vec<NodeAction<K::Signature>> {
        let mut out = Vec::new();
        match input {
            NodeInput::Submit(change) => {
                self.waiting.push_back(Wish { change, tries: 0, against: BTreeSet::new() });
            }
            NodeInput::Heard(_, Packet::Message(message)) => self.hear_message(&message, &mut out),
            NodeInput::Heard(_, Packet::Proof(proof)) => self.accept_proof(proof),
            NodeInput::Heard(_, Packet::Stable(_) | Packet::Have(_)) => {}
            NodeInput::Expired(sequence, view, _) => self.report_late(sequence, view, &mut out),
            NodeInput::Again => self.repeat(&mut out),
            NodeInput::Reviewed(..) => return out,
        }
        self.report(&mut out);
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
        sequence > self.known && sequence <= self.known + WINDOW
    }

    /// Returns the time-outs that are still awaited, for a caller that has given all earlier inputs again.
    pub fn resume(&self) -> Vec<NodeAction<K::Signature>> {
        let open = self.jobs.iter().filter(|(_, job)| job.decision.is_none());
        open.filter_map(|(sequence, job)| {
            Some(NodeAction::Wait(*sequence, job.proposal.as_ref()?.0, Phase::PrePrepare))
        })
        .collect()
    }

    fn is_mine(&self, sequence: Sequence, view: View) -> bool {
        leader(sequence, view, self.orchestrators) == self.me
    }

    fn sign(&self, sequence: Sequence, statement: Statement) -> Signed<K::Signature> {
        let signature = self.key.sign(sequence, &statement);
        Signed { by: self.me, sequence, statement, signature }
    }

    fn hear_message(
        &mut self,
        message: &SignedMessage<K::Signature>,
        out: &mut Vec<NodeAction<K::Signature>>,
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
                if job.requested.is_none() && message.has(Value::Change(*digest)) {
                    job.learn(change.as_ref());
                    if job.changes.contains_key(digest) {
                        job.requested = Some(*digest);
                    }
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
                if let Some(wish) = &mut job.wish
                    && wish.change.value() == *value
                    && matches!(vote, Vote::Reject | Vote::Abstain)
                {
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
                if is_news
                    && let Some((_, change)) = message.view_change(sequence)
                    && change.lock.as_ref().is_none_or(|lock| {
                        lock.holds(quorum) && (message.has(lock.value) || job.change(lock.value).is_some())
                    })
                {
                    if change.lock.is_some()
                        && let Some(locked) = &message.change
                    {
                        job.changes.insert(locked.digest(), locked.clone());
                    }
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
    fn accept_proof(&mut self, proof: Proof<K::Signature>) {
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
    fn open(&mut self, sequence: Sequence, out: &mut Vec<NodeAction<K::Signature>>) {
        let Some(job) = self.jobs.get(&sequence) else { return };
        if !self.is_mine(sequence, 0) || job.proposal.is_some() || !job.left.is_empty() {
            return;
        }
        let choice = job.choice(self.quorum);
        if choice != Value::Nothing {
            self.propose(sequence, 0, choice, Arc::new([]), out);
        }
    }

    /// Proposes a value in a view of its own that a quorum has gone to.
    fn lead(&mut self, sequence: Sequence, view: View, out: &mut Vec<NodeAction<K::Signature>>) {
        let Some(job) = self.jobs.get(&sequence) else { return };
        if !self.is_mine(sequence, view) || job.proposal.as_ref().is_some_and(|(own, _)| *own >= view) {
            return;
        }
        let here = job.left.values().filter(|(other, _)| *other == view);
        let grounds: Vec<SignedMessage<K::Signature>> = here.map(|(_, message)| message.clone()).collect();
        let said = grounds.iter().filter_map(|message| message.view_change(sequence)).collect();
        if let Some(proposal) = LeaderProposal::after(view, said, job.choice(self.quorum), self.quorum) {
            self.propose(sequence, view, proposal.value, grounds.into(), out);
        }
    }

    fn propose(
        &mut self,
        sequence: Sequence,
        view: View,
        value: Value,
        grounds: Arc<[SignedMessage<K::Signature>]>,
        out: &mut Vec<NodeAction<K::Signature>>,
    ) {
        let signed = self.sign(sequence, Statement::PrePrepare { value, view });
        let Some(job) = self.jobs.get_mut(&sequence) else { return };
        let message =
            SignedMessage { change: job.change(value).cloned(), grounds, ..SignedMessage::alone(signed) };
        if let Some(wish) = &mut job.wish
            && wish.change.value() == value
        {
            wish.tries += 1;
        }
        job.proposal = Some((view, message.clone()));
        job.acknowledged.clear();
        out.push(NodeAction::Send(To::All, Packet::Message(message)));
        out.push(NodeAction::Wait(sequence, view, Phase::PrePrepare));
    }

    /// Reports decisions in order, as far as they and their changes are known.
    fn report(&mut self, out: &mut Vec<NodeAction<K::Signature>>) {
        while self.jobs.get(&(self.known + 1)).is_some_and(DecisionJob::is_known) {
            let sequence = self.known + 1;
            let Some(DecisionJob { decision: Some((value, proof)), wish, .. }) = self.jobs.remove(&sequence)
            else {
                return;
            };
            out.push(NodeAction::Tell(sequence, value, proof));
            self.known = sequence;
            let Some(wish) = wish else { continue };
            if wish.change.value() == value {
                continue;
            }
            match wish.return_reason(self.quorum) {
                Some(why) => out.push(NodeAction::Return(sequence, wish.change, why)),
                None => self.waiting.push_front(wish),
            }
        }
    }

    /// Gives places to the changes that wait.
    fn begin(&mut self, out: &mut Vec<NodeAction<K::Signature>>) {
        while !self.waiting.is_empty() {
            let mut places = self.known + 1..=self.known + IN_FLIGHT;
            let place = places.find(|sequence| self.jobs.get(sequence).is_none_or(DecisionJob::is_untouched));
            let Some(sequence) = place else { return };
            self.jobs.entry(sequence).or_default().wish = self.waiting.pop_front();
            if self.is_mine(sequence, 0) {
                self.open(sequence, out);
            } else {
                self.want(sequence, out);
            }
        }
    }

    /// Asks for a decision at a place where another orchestrator proposes first.
    fn want(&self, sequence: Sequence, out: &mut Vec<NodeAction<K::Signature>>) {
        let change = self.jobs.get(&sequence).and_then(|job| Some(job.wish.as_ref()?.change.clone()));
        let value = change.as_ref().map_or(Value::Nothing, Change::value);
        let signed = self.sign(sequence, Statement::Want { value });
        out.push(NodeAction::Send(
            To::All,
            Packet::Message(SignedMessage { change, ..SignedMessage::alone(signed) }),
        ));
    }

    /// Returns the answer to a party that knows all decisions up to one. This orchestrator may be the only party that
    /// has heard a quorum, since liars may send to it alone.
    pub fn answer(&self, to: NodeId, known: Sequence) -> Vec<NodeAction<K::Signature>> {
        let mut out = Vec::new();
        if known < self.known {
            out.push(NodeAction::Recall(to, known));
        }
        let after = self.jobs.range(known.saturating_add(1)..);
        let decided = after.filter_map(|(_, job)| job.decision.as_ref()).take(PROOFS_AT_ONCE);
        let packets = decided.map(|(_, proof)| Packet::Proof(proof.clone()));
        out.extend(packets.map(|packet| NodeAction::Send(To::One(to), packet)));
        out
    }

    fn report_late(&mut self, sequence: Sequence, view: View, out: &mut Vec<NodeAction<K::Signature>>) {
        let reviewers = self.quorum.reviewers();
        let Some(job) = self.jobs.get(&sequence) else { return };
        let Some((own, message)) = &job.proposal else { return };
        if job.decision.is_some() || *own != view {
            return;
        }
        let late: Vec<Reviewer> = (0..reviewers).filter(|by| !job.acknowledged.contains(by)).collect();
        if late.is_empty() {
            return;
        }
        for by in &late {
            let to = To::One(NodeId::Reviewer(*by));
            out.push(NodeAction::Send(to, Packet::Message(message.clone())));
        }
        out.push(NodeAction::Late(sequence, view, late));
    }

    /// Repeats the messages that have led to nothing yet. All places up to the last that matters must be decided,
    /// including those that have no messages.
    fn repeat(&self, out: &mut Vec<NodeAction<K::Signature>>) {
        let mut last_first = self.jobs.iter().rev();
        let last = last_first.find(|(_, job)| job.wish.is_some() || job.decision.is_some());
        let last = last.map_or(0, |(sequence, _)| *sequence);
        for sequence in self.known + 1..=last {
            let job = self.jobs.get(&sequence);
            if job.is_some_and(|job| job.decision.is_some()) {
                continue;
            }
            match job.and_then(|job| job.proposal.as_ref()) {
                Some((_, message)) => {
                    out.push(NodeAction::Send(To::All, Packet::Message(message.clone())));
                }
                None => self.want(sequence, out),
            }
        }
        out.push(NodeAction::Send(To::Reviewers, Packet::Have(self.known)));
    }
}
