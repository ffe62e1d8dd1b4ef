//! Those who lie: what they say follows no protocol, and is signed in their own names all the same.

use std::collections::BTreeMap;

use crypto::Digest;
use fastrand::Rng;
use quorum::{Change, Commit, NodeId, Opinion, Sequence, Severity, Statement, Value, View, Vote, leader};

use crate::nodes::{Packet, Proof, Signed, SignedMessage};

/// So much of what others say is kept, to be sent again where it does harm.
const KEPT: usize = 48;

/// The ways of a liar who is not just an honest node that forgets or runs twice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LiarKind {
    /// Says nothing.
    Silent,
    /// Says anything.
    Liar,
}

/// One who lies.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    way: LiarKind,
    me: NodeId,
    reviewers: usize,
    orchestrators: usize,
    seen: Vec<SignedMessage>,
    values: BTreeMap<Sequence, Vec<Value>>,
    changes: Vec<Change>,
    next: Sequence,
}

/// What is sent to whom.
type Sent = Vec<(NodeId, Packet)>;

impl Script {
    pub(crate) fn new(way: LiarKind, me: NodeId, reviewers: usize, orchestrators: usize) -> Self {
        Self {
            way,
            me,
            reviewers,
            orchestrators,
            seen: Vec::new(),
            values: BTreeMap::new(),
            changes: Vec::new(),
            next: 1,
        }
    }

    fn message(&self, sequence: Sequence, statement: Statement) -> SignedMessage {
        let (NodeId::Reviewer(by) | NodeId::Orchestrator(by)) = self.me;
        SignedMessage::alone(Signed { by, sequence, statement, signature: () })
    }

    fn everybody(&self) -> impl Iterator<Item = NodeId> + use<> {
        let orchestrators = (0..self.orchestrators).map(NodeId::Orchestrator);
        (0..self.reviewers).map(NodeId::Reviewer).chain(orchestrators)
    }

    fn any_value(&self, sequence: Sequence, rng: &mut Rng) -> Value {
        let known = self.values.get(&sequence).map_or(&[][..], Vec::as_slice);
        match rng.choice(known) {
            Some(value) if rng.u8(..) > 40 => *value,
            Some(_) | None => Value::Nothing,
        }
    }

    /// Lies to everybody about a change that it is to propose.
    pub(crate) fn submit(&mut self, change: &Change, rng: &mut Rng) -> Sent {
        let other = Change::new(&format!("{} and something else", change.text())).expect("it is short");
        self.changes.extend([change.clone(), other.clone()]);
        let sequence = self.next;
        self.next += 1;
        if self.way == LiarKind::Silent {
            return Vec::new();
        }
        let of_two = |rng: &mut Rng| if rng.bool() { change.clone() } else { other.clone() };
        let tell = |to: NodeId| {
            let shown = of_two(rng);
            let mut message = self.message(sequence, Statement::PrePrepare { view: 0, value: shown.value() });
            // Another change than the one that is signed, or none.
            let mut beside = shown;
            if rng.u8(..) >= 20 {
                let drawn = of_two(rng);
                if rng.u8(..) < 40 {
                    beside = drawn;
                }
            }
            message.change = if rng.u8(..) > 10 { Some(beside) } else { None };
            (to, Packet::Message(message))
        };
        self.everybody().map(tell).collect()
    }

    /// Stirs up a place where nothing has been said.
    pub(crate) fn stir(&mut self, rng: &mut Rng) -> Sent {
        if self.way == LiarKind::Silent {
            return Vec::new();
        }
        let sequence = rng.u64(1..12);
        let statement = match self.me {
            NodeId::Reviewer(_) => Statement::ViewChange { view: rng.u32(1..3), lock: None },
            NodeId::Orchestrator(_) => Statement::Want { value: Value::Nothing },
        };
        let message = self.message(sequence, statement);
        self.everybody().map(|to| (to, Packet::Message(message.clone()))).collect()
    }

    /// Lies about what it hears.
    pub(crate) fn hear(&mut self, packet: &Packet, rng: &mut Rng) -> Sent {
        let Packet::Message(message) = packet else { return Vec::new() };
        let sequence = message.signed.sequence;
        if self.way == LiarKind::Silent {
            return Vec::new();
        }
        if self.seen.len() < KEPT {
            self.seen.push(message.clone());
        } else {
            let index = rng.usize(..KEPT);
            self.seen[index] = message.clone();
        }
        if let Statement::PrePrepare { value, .. } | Statement::Acknowledge { value, .. } =
            message.signed.statement
        {
            let values = self.values.entry(sequence).or_default();
            if !values.contains(&value) && values.len() < 4 {
                values.push(value);
            }
            if self.changes.len() < 16 {
                self.changes.extend(message.change.clone());
            }
        }
        let mut sent = match self.me {
            NodeId::Reviewer(_) => self.vote(message, rng),
            NodeId::Orchestrator(me) => self.propose(me, message, rng),
        };
        if rng.u8(..) < 8 {
            let to = self.anybody(rng);
            sent.push((to, self.forge(sequence, rng)));
        }
        if rng.u8(..) < 25 {
            let to = self.anybody(rng);
            let old = rng.choice(&self.seen).cloned();
            // Sometimes without what it rests on, which bears no signature.
            let old = old.map(|old| match rng.u8(..4) {
                0 => SignedMessage { grounds: [].into(), ..old },
                1 => SignedMessage { change: None, ..old },
                _ => old,
            });
            sent.extend(old.map(|old| (to, Packet::Message(old))));
        }
        sent
    }

    fn anybody(&self, rng: &mut Rng) -> NodeId {
        let all: Vec<NodeId> = self.everybody().collect();
        all[rng.usize(..all.len())]
    }

    /// Claims that something is decided, or known to all, with its own word many times.
    fn forge(&self, sequence: Sequence, rng: &mut Rng) -> Packet {
        let value = self.any_value(sequence, rng);
        let (sequence, statement) = if rng.bool() {
            (sequence, Statement::Commit(Commit { view: rng.u32(..3), value }))
        } else {
            let every = quorum::CHECKPOINT_EVERY;
            (sequence.next_multiple_of(every), Statement::Checkpoint { head: Digest::new(b"a lie") })
        };
        let signed = vec![self.message(sequence, statement).signed; self.reviewers];
        if rng.bool() {
            Packet::Proof(Proof { change: None, commits: signed })
        } else {
            Packet::Stable(signed)
        }
    }

    fn vote(&self, heard: &SignedMessage, rng: &mut Rng) -> Sent {
        let sequence = heard.signed.sequence;
        let mut sent = Vec::new();
        match heard.signed.statement {
            Statement::PrePrepare { view, .. } => {
                for to in self.everybody() {
                    let value = self.any_value(sequence, rng);
                    let opinion = match rng.u8(..4) {
                        0 => Opinion::Reject { reason: "no".to_owned(), severity: Severity::Critical },
                        1 => Opinion::Abstain { reason: "who knows".to_owned() },
                        _ => Opinion::Approve { confidence: 10_000, notes: "yes".to_owned() },
                    };
                    let opinion = if rng.u8(..) > 40 { Some(opinion) } else { None };
                    let vote = opinion.as_ref().map_or(Vote::Follow, Opinion::vote);
                    let opinion = opinion.map(|opinion| opinion.digest());
                    let vote = Statement::Prepare { view, value, vote, opinion };
                    sent.push((to, Packet::Message(self.message(sequence, vote))));
                    if rng.bool() {
                        let commit = Commit { view, value: self.any_value(sequence, rng) };
                        sent.push((to, Packet::Message(self.message(sequence, Statement::Commit(commit)))));
                    }
                }
            }
            Statement::ViewChange { view, .. } => {
                let view = if rng.u8(..) < 20 { view + rng.u32(..2000) } else { view };
                for to in self.everybody() {
                    sent.push((to, Packet::Message(self.leave(sequence, view, rng))));
                }
            }
            Statement::Prepare { view, .. } | Statement::Commit(Commit { view, .. }) if rng.u8(..) < 60 => {
                let view = if rng.u8(..) < 40 { view + rng.u32(..40) } else { view };
                let commit = Commit { view, value: self.any_value(sequence, rng) };
                let to = self.anybody(rng);
                sent.push((to, Packet::Message(self.message(sequence, Statement::Commit(commit)))));
            }
            Statement::Checkpoint { .. } => {
                let link = Digest::new(&[rng.u8(..3)]);
                let to = self.anybody(rng);
                let lie = self
                    .message(sequence + u64::from(rng.u8(..2)) * 16, Statement::Checkpoint { head: link });
                sent.push((to, Packet::Message(lie)));
            }
            Statement::Prepare { .. }
            | Statement::Commit(_)
            | Statement::Want { .. }
            | Statement::Acknowledge { .. } => {}
        }
        sent
    }

    /// Leaves for a view with no lock, with one that no quorum approved, or with one that was approved.
    fn leave(&self, sequence: Sequence, view: View, rng: &mut Rng) -> SignedMessage {
        if rng.bool() {
            return self.message(sequence, Statement::ViewChange { view, lock: None });
        }
        let value = self.any_value(sequence, rng);
        let of = rng.u32(..view.clamp(1, 4));
        let mut message = self.message(sequence, Statement::ViewChange { view, lock: Some((of, value)) });
        let is_vote = |other: &&SignedMessage| matches!(other.signed.statement, Statement::Prepare { .. });
        let mut votes: Vec<SignedMessage> = self.seen.iter().filter(is_vote).cloned().collect();
        let vote = Vote::Approve;
        let opinion = Some(Opinion::Approve { confidence: 1, notes: String::new() }.digest());
        let own = self.message(sequence, Statement::Prepare { view: of, value, vote, opinion });
        votes.extend((0..rng.u8(..4)).map(|_| own.clone()));
        message.change = self.changes.iter().find(|change| change.value() == value).cloned();
        message.grounds = votes.into();
        message
    }

    fn propose(&self, me: usize, heard: &SignedMessage, rng: &mut Rng) -> Sent {
        let Statement::ViewChange { view, .. } = heard.signed.statement else { return Vec::new() };
        let sequence = heard.signed.sequence;
        // Sometimes in a view that is another's.
        if leader(sequence, view, self.orchestrators) != me && rng.u8(..) > 20 {
            return Vec::new();
        }
        let of_view = |message: &&SignedMessage| {
            message.signed.sequence == sequence
                && matches!(message.signed.statement, Statement::ViewChange { view: other, .. } if other == view)
        };
        let left: Vec<SignedMessage> = self.seen.iter().filter(of_view).cloned().collect();
        let tell = |to: NodeId| {
            let shown = match rng.choice(&self.changes) {
                Some(change) if rng.u8(..) > 60 => Some(change.clone()),
                Some(_) | None => None,
            };
            let value = shown.as_ref().map_or(Value::Nothing, Change::value);
            let mut message = self.message(sequence, Statement::PrePrepare { view, value });
            message.change = shown;
            let mut grounds = Vec::new();
            for ground in &left {
                if rng.u8(..) > 40 {
                    grounds.push(ground.clone());
                }
            }
            message.grounds = grounds.into();
            (to, Packet::Message(message))
        };
        self.everybody().map(tell).collect()
    }
}
