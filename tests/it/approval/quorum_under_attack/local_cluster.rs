//! Reviewers and orchestrators with keys, who hear each other's packets as the bytes that would travel.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crypto::{Digest, SecretKey, Signature};
use quorum::node_machine::{NodeAction, NodeInput, ReturnReason};
use quorum::proposer::Proposer;
use quorum::replica::Replica;
use quorum::{
    Change, Membership, NodeId, Opinion, Packet, Phase, Refused, Roster, RosterEntry, RosterSigner, Sequence,
    Signed, SignedMessage, Signer, Statement, To, Value, View,
};

pub type Pair = (Signed<Signature>, Signed<Signature>);

/// Those who are honest, and what they have said.
pub struct TestCluster {
    pub membership: Arc<Membership>,
    pub reviewers: Vec<Replica<RosterSigner>>,
    pub orchestrators: Vec<Proposer<RosterSigner>>,
    /// What each reviewer thinks of everything.
    pub opinions: Vec<Opinion>,
    /// A party that is away hears nothing and says nothing.
    pub away: BTreeSet<NodeId>,
    /// Those who do not follow the protocol: they say what the test says.
    pub liars: BTreeSet<NodeId>,
    pub decided: BTreeMap<(usize, Sequence), Value>,
    /// What the orchestrators have announced as decided.
    pub announced: Vec<(Sequence, Value)>,
    pub returned: Vec<(String, ReturnReason)>,
    pub accused: Vec<Pair>,
    pub reviews: usize,
    pub refused: Vec<Refused>,
    /// All that was sent, by whom and to whom.
    pub sent: Vec<(NodeId, NodeId, Arc<str>)>,
    inbox: VecDeque<(NodeId, NodeId, Arc<str>)>,
    waits: Vec<(usize, Sequence, View, Phase)>,
    /// What each reviewer was given.
    pub inputs: BTreeMap<usize, Vec<NodeInput<Signature>>>,
}

/// The key of a party, the same in every cluster.
pub fn key(party: NodeId) -> SecretKey {
    let seed = match party {
        NodeId::Reviewer(at) => u8::try_from(at).unwrap(),
        NodeId::Orchestrator(at) => 200 + u8::try_from(at).unwrap(),
    };
    SecretKey::from_seed(&[seed; 32])
}

pub fn seat(party: NodeId) -> RosterEntry {
    RosterEntry { name: format!("{party:?}"), key: key(party).public(), domain: "a model".to_owned() }
}

/// A roster of so many reviewers and orchestrators.
pub fn roster(reviewers: usize, orchestrators: usize) -> Roster {
    Roster {
        reviewers: (0..reviewers).map(|at| seat(NodeId::Reviewer(at))).collect(),
        orchestrators: (0..orchestrators).map(|at| seat(NodeId::Orchestrator(at))).collect(),
    }
}

pub fn approve() -> Opinion {
    Opinion::Approve { confidence: 9000, notes: "looks right".to_owned() }
}

impl TestCluster {
    pub fn new(reviewers: usize, orchestrators: usize) -> Self {
        let membership =
            Membership::new(Digest::new(b"a repository"), roster(reviewers, orchestrators)).unwrap();
        let (membership, quorum) = (Arc::new(membership), registry_quorum(reviewers));
        let seal = |party| RosterSigner::new(key(party), Arc::clone(&membership)).unwrap().1;
        Self {
            reviewers: (0..reviewers)
                .map(|at| Replica::new(seal(NodeId::Reviewer(at)), at, quorum, orchestrators))
                .collect(),
            orchestrators: (0..orchestrators)
                .map(|at| Proposer::new(seal(NodeId::Orchestrator(at)), at, quorum, orchestrators))
                .collect(),
            opinions: vec![approve(); reviewers],
            away: BTreeSet::new(),
            liars: BTreeSet::new(),
            decided: BTreeMap::new(),
            announced: Vec::new(),
            returned: Vec::new(),
            accused: Vec::new(),
            reviews: 0,
            refused: Vec::new(),
            sent: Vec::new(),
            inbox: VecDeque::new(),
            waits: Vec::new(),
            inputs: BTreeMap::new(),
            membership,
        }
    }

    fn parties(&self) -> Vec<NodeId> {
        let reviewers = (0..self.reviewers.len()).map(NodeId::Reviewer);
        reviewers.chain((0..self.orchestrators.len()).map(NodeId::Orchestrator)).collect()
    }

    /// A statement in a party's name.
    pub fn says(&self, party: NodeId, sequence: Sequence, statement: Statement) -> SignedMessage<Signature> {
        let (_, seal) = RosterSigner::new(key(party), Arc::clone(&self.membership)).unwrap();
        let (NodeId::Reviewer(by) | NodeId::Orchestrator(by)) = party;
        let signature = seal.sign(sequence, &statement);
        SignedMessage::alone(Signed { by, sequence, statement, signature })
    }

    /// Puts bytes on their way.
    pub fn packet(&mut self, from: NodeId, to: NodeId, text: &str) {
        self.inbox.push_back((from, to, text.into()));
    }

    pub fn send(&mut self, from: NodeId, to: NodeId, message: SignedMessage<Signature>) {
        let text = self.membership.write(&Packet::Message(message));
        self.packet(from, to, &text);
    }

    /// To all reviewers.
    pub fn tell(&mut self, from: NodeId, message: &SignedMessage<Signature>) {
        for at in 0..self.reviewers.len() {
            self.send(from, NodeId::Reviewer(at), message.clone());
        }
    }

    pub fn submit(&mut self, text: &str) {
        let out = self.orchestrators[0].step(NodeInput::Submit(Change::new(text).unwrap()));
        self.lead_out(0, out);
    }

    /// Delivers until nothing is on its way.
    pub fn run(&mut self) {
        while let Some((from, to, text)) = self.inbox.pop_front() {
            if self.away.contains(&from) || self.away.contains(&to) || self.liars.contains(&to) {
                continue;
            }
            let read = self.membership.read(&text, |sequence, statement| match to {
                NodeId::Reviewer(at) => self.reviewers[at].wants(sequence, statement),
                NodeId::Orchestrator(at) => self.orchestrators[at].wants(sequence, statement),
            });
            match read {
                Ok(None) => {}
                Ok(Some(Packet::Have(known))) => self.answer(from, to, known),
                Ok(Some(packet)) => match to {
                    NodeId::Reviewer(at) => self.review(at, NodeInput::Heard(from, packet)),
                    NodeId::Orchestrator(at) => {
                        let out = self.orchestrators[at].step(NodeInput::Heard(from, packet));
                        self.lead_out(at, out);
                    }
                },
                Err(refused) => self.refused.push(refused),
            }
        }
    }

    /// Gives a reviewer something.
    pub fn review(&mut self, at: usize, input: NodeInput<Signature>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.inputs.entry(at).or_default().push(input.clone());
            for wanted in self.reviewers[at].step(input) {
                match wanted {
                    NodeAction::Send(to, packet) => self.broadcast(NodeId::Reviewer(at), to, &packet),
                    NodeAction::Review(sequence, change) => {
                        self.reviews += 1;
                        let opinion = Arc::new(self.opinions[at].clone().into());
                        inputs.push_back(NodeInput::Reviewed(sequence, change.digest(), opinion));
                    }
                    NodeAction::Wait(sequence, view, phase) => {
                        self.waits.push((at, sequence, view, phase));
                    }
                    NodeAction::Decide(sequence, proof) => {
                        let proven = proof.check(self.membership.quorum()).unwrap();
                        let before = self.decided.insert((at, sequence), proven.value);
                        assert!(before.is_none(), "a decision is final");
                    }
                    NodeAction::Accuse(pair) => self.accused.push(*pair),
                    NodeAction::Stable(..) | NodeAction::Recall(..) => {}
                    NodeAction::Tell(..) | NodeAction::Return(..) | NodeAction::Late(..) => {
                        panic!("a reviewer does no such thing: {wanted:?}")
                    }
                }
            }
        }
    }

    fn lead_out(&mut self, at: usize, out: Vec<NodeAction<Signature>>) {
        for wanted in out {
            match wanted {
                NodeAction::Send(to, packet) => {
                    self.broadcast(NodeId::Orchestrator(at), to, &packet);
                }
                NodeAction::Tell(sequence, value, _) => self.announced.push((sequence, value)),
                NodeAction::Return(_, change, why) => {
                    self.returned.push((change.text().to_owned(), why));
                }
                NodeAction::Wait(..) | NodeAction::Late(..) | NodeAction::Recall(..) => {}
                NodeAction::Review(..)
                | NodeAction::Decide(..)
                | NodeAction::Stable(..)
                | NodeAction::Accuse(_) => panic!("an orchestrator does no such thing: {wanted:?}"),
            }
        }
    }

    fn answer(&mut self, from: NodeId, to: NodeId, known: Sequence) {
        match to {
            NodeId::Reviewer(at) => {
                for wanted in self.reviewers[at].answer(from, known) {
                    if let NodeAction::Send(to_whom, packet) = wanted {
                        self.broadcast(to, to_whom, &packet);
                    }
                }
            }
            NodeId::Orchestrator(at) => {
                let out = self.orchestrators[at].answer(from, known);
                self.lead_out(at, out);
            }
        }
    }

    fn broadcast(&mut self, from: NodeId, to: To, packet: &Packet<Signature>) {
        let text: Arc<str> = self.membership.write(packet).into();
        let to = match to {
            To::One(party) => vec![party],
            To::All => self.parties(),
            To::Reviewers => (0..self.reviewers.len()).map(NodeId::Reviewer).collect(),
        };
        for to in to.into_iter().filter(|to| *to != from) {
            self.sent.push((from, to, Arc::clone(&text)));
            self.inbox.push_back((from, to, Arc::clone(&text)));
        }
    }

    /// The time for all phases that have begun is over.
    pub fn expire(&mut self) {
        for (at, sequence, view, phase) in std::mem::take(&mut self.waits) {
            self.review(at, NodeInput::Expired(sequence, view, phase));
        }
        self.run();
    }

    /// All say again what has led to nothing yet.
    pub fn again(&mut self) {
        for at in 0..self.reviewers.len() {
            if !self.liars.contains(&NodeId::Reviewer(at)) {
                self.review(at, NodeInput::Again);
            }
        }
        for at in 0..self.orchestrators.len() {
            let out = self.orchestrators[at].step(NodeInput::Again);
            self.lead_out(at, out);
        }
        self.run();
    }

    /// What all reviewers who are there have decided about a place; `None` if they have not, or not all.
    pub fn outcome(&self, sequence: Sequence) -> Option<Value> {
        let is_here = |party: NodeId| !self.away.contains(&party) && !self.liars.contains(&party);
        let here = (0..self.reviewers.len()).filter(|at| is_here(NodeId::Reviewer(*at)));
        let values: Vec<Option<Value>> = here.map(|at| self.decided.get(&(at, sequence)).copied()).collect();
        assert!(
            values.iter().flatten().collect::<BTreeSet<_>>().len() <= 1,
            "two outcomes of one decision: {values:?}"
        );
        values.into_iter().collect::<Option<Vec<_>>>()?.first().copied()
    }
}

fn registry_quorum(reviewers: usize) -> quorum::Quorum {
    quorum::Quorum::new(reviewers).unwrap()
}
