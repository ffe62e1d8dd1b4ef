//! Signed things: DSSE envelopes, records of decisions, and the packets of the members who decide.
//!
//! In: bytes of strangers, who have no key, and statements of members who lie and sign their lies. Out: whether they were
//! taken. The keys of the members stand in this file, and they are worth nothing anywhere else.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use consensus::approval::{DecisionRecord, VerifiedRecord};
use crypto::dsse::DsseEnvelope;
use crypto::{Digest, SecretKey, Signature};
use quorum::node_machine::{NodeAction, NodeInput, NodeMachine};
use quorum::replica::Replica;
use quorum::{
    Change, Membership, ModelAt, ModelOpinion, NodeId, Opinion, Packet, Proof, Roster, RosterEntry,
    RosterSigner, Sequence, Signed, SignedMessage, Signer as _, Statement,
};
use serde::Deserialize;
use serde_json::Value as Json;

/// So many reviewers are in the roster: one of them may lie.
const REVIEWERS: usize = 4;

/// So many of them are a quorum.
const QUORUM: usize = 3;

/// The reviewer that follows the protocol. No input signs in its name.
const HONEST: NodeId = NodeId::Reviewer(0);

/// So many statements are heard at most.
const SAID_MAX: usize = 64;

/// Reads a signed envelope.
pub(crate) fn dsse(bytes: &[u8]) -> bool {
    let Ok(envelope) = serde_json::from_slice::<DsseEnvelope>(bytes) else { return false };
    let written = serde_json::to_vec(&envelope).expect("an envelope has a JSON form");
    assert_eq!(serde_json::from_slice::<DsseEnvelope>(&written).ok().as_ref(), Some(&envelope));
    assert!(MEMBERS.open(&envelope).is_err() || envelope.signatures().is_ok());
    let (Ok(payload), Ok(signatures)) = (envelope.payload(), envelope.signatures()) else { return false };
    let again = DsseEnvelope::new(envelope.payload_type(), &payload, &signatures);
    assert_eq!(again, envelope, "base64 has one form");
    true
}

/// Reads the record of a decision, with the public keys of the saved one.
pub(crate) fn decision(bytes: &[u8]) -> bool {
    static SAVED: LazyLock<(Roster, VerifiedRecord)> = LazyLock::new(|| {
        let roster = include_str!("../scenes/roster.json");
        let roster = serde_json::from_str(roster).expect("a saved roster");
        let record = DecisionRecord::read(include_str!("../scenes/decision.json"));
        let verified = record.expect("a saved record").verify(&roster).expect("a saved record");
        (roster, verified)
    });
    let (roster, saved) = &*SAVED;
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(record) = DecisionRecord::read(text) else { return false };
    let written = serde_json::to_string(&record).expect("a record has a JSON form");
    assert_eq!(DecisionRecord::read(&written).ok().as_ref(), Some(&record));
    let Ok(verified) = record.verify(roster) else { return false };
    // These keys have signed one decision, so they prove no other.
    assert_eq!(verified.chain, saved.chain);
    assert_eq!((verified.sequence, verified.approved), (saved.sequence, saved.approved));
    assert_eq!((verified.change, &verified.tree), (saved.change, &saved.tree));
    assert!(verified.votes.iter().all(|vote| saved.votes.contains(vote)), "no vote is another's");
    true
}

static MEMBERS: LazyLock<Arc<Membership>> = LazyLock::new(|| {
    let seat = |party: NodeId| RosterEntry {
        name: format!("{party:?}"),
        key: key(party).public(),
        domain: "a model".to_owned(),
    };
    let roster = Roster {
        reviewers: (0..REVIEWERS).map(|at| seat(NodeId::Reviewer(at))).collect(),
        orchestrators: vec![seat(NodeId::Orchestrator(0))],
    };
    Arc::new(Membership::new(Digest::new(b"a repository"), roster).expect("each has a name and a key"))
});

fn key(party: NodeId) -> SecretKey {
    let seed = match party {
        NodeId::Reviewer(at) => 1 + u8::try_from(at).expect("there are few"),
        NodeId::Orchestrator(_) => 200,
    };
    SecretKey::from_seed(&[seed; 32])
}

fn seal(party: NodeId) -> RosterSigner {
    RosterSigner::new(key(party), Arc::clone(&MEMBERS)).expect("the roster has it").1
}

/// Reads a packet as it comes from another member.
pub(crate) fn packet(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(Some(packet)) = MEMBERS.read(text, |_, _| true) else { return false };
    reads_again(&packet);
    // An unwanted packet is no error.
    assert!(MEMBERS.read(text, |_, _| false).is_ok());
    let mut honest = reviewer();
    hear(&mut honest, NodeId::Orchestrator(0), packet);
    true
}

/// Checks that a packet is read as it is written.
fn reads_again(packet: &Packet<Signature>) {
    let written = MEMBERS.write(packet);
    let again = MEMBERS.read(&written, |_, _| true);
    let again = again.expect("a written packet is read").expect("all of it is wanted");
    assert_eq!(MEMBERS.write(&again), written, "a packet reads the same again");
    let is_proven = packet.is_proven(MEMBERS.quorum());
    assert_eq!(again.is_proven(MEMBERS.quorum()), is_proven);
    match packet {
        Packet::Message(message) => {
            let said = serde_json::to_string(&message.signed.statement).expect("it has a JSON form");
            let change = message.change.iter().map(Change::digest);
            let mut named = change.chain(message.opinion.iter().map(|opinion| opinion.digest()));
            assert!(named.all(|digest| said.contains(&digest.to_string())), "a text is none of `{said}`");
        }
        Packet::Proof(Proof { commits: signed, .. }) | Packet::Stable(signed) => {
            let authors: BTreeSet<NodeId> = signed.iter().map(Signed::author).collect();
            assert!(!is_proven || authors.len() >= QUORUM, "{authors:?} prove nothing");
        }
        Packet::Have(_) => {}
    }
}

fn reviewer() -> NodeMachine<RosterSigner> {
    NodeMachine::Reviewer(Replica::new(seal(HONEST), 0, MEMBERS.quorum(), 1))
}

/// Lets an honest reviewer hear a packet and act on it. Returns the places that it decides.
fn hear(honest: &mut NodeMachine<RosterSigner>, from: NodeId, packet: Packet<Signature>) -> Vec<Sequence> {
    let mut decided = Vec::new();
    if !packet.is_proven(MEMBERS.quorum()) {
        return decided;
    }
    let mut actions = honest.step(NodeInput::Heard(from, packet));
    while let Some(action) = actions.pop() {
        match action {
            NodeAction::Review(sequence, change) => {
                let yes = Opinion::Approve { confidence: 9000, notes: "fine".to_owned() };
                let reviewed = NodeInput::Reviewed(sequence, change.digest(), Arc::new(yes.into()));
                actions.extend(honest.step(reviewed));
            }
            NodeAction::Send(_, packet) => reads_again(&packet),
            NodeAction::Decide(sequence, proof) => {
                assert!(proof.check(MEMBERS.quorum()).is_some_and(|proven| proven.sequence == sequence));
                decided.push(sequence);
            }
            NodeAction::Wait(..)
            | NodeAction::Tell(..)
            | NodeAction::Return(..)
            | NodeAction::Late(..)
            | NodeAction::Recall(..)
            | NodeAction::Stable(..) => {}
            NodeAction::Accuse(pair) => {
                let (one, other) = &*pair;
                let is_fraud = one.author() == other.author() && one.statement != other.statement;
                assert!(is_fraud && one.author() != HONEST, "only a liar is accused");
            }
        }
    }
    decided
}

/// A statement of a member, and the texts beside it.
#[derive(Deserialize)]
struct MemberStatement {
    /// The reviewer's place; beyond the last one, the orchestrator.
    by: usize,
    sequence: Sequence,
    statement: Statement,
    change: Option<String>,
    opinion: Option<Opinion>,
    model: Option<ModelAt>,
    #[serde(default)]
    grounds: Vec<Json>,
}

impl MemberStatement {
    fn party(&self) -> NodeId {
        if self.by < REVIEWERS { NodeId::Reviewer(self.by) } else { NodeId::Orchestrator(0) }
    }

    /// Signs the statement with its author's own key, be it true or not.
    fn signed(self, depth: u8) -> Option<SignedMessage<Signature>> {
        let party = self.party();
        let (NodeId::Reviewer(by) | NodeId::Orchestrator(by)) = party;
        let Self { sequence, statement, change, opinion, model, grounds, .. } = self;
        let signature = seal(party).sign(sequence, &statement);
        let signed = Signed { by, sequence, statement, signature };
        // A liar writes in no other's name.
        if signed.author() != party || party == HONEST {
            return None;
        }
        let mut messages = Vec::new();
        if depth > 0 {
            for json in grounds {
                if let Ok(ground) = MemberStatement::deserialize(json) {
                    messages.extend(ground.signed(depth - 1));
                }
            }
        }
        Some(SignedMessage {
            signed,
            change: change.and_then(|text| Change::new(&text).ok()),
            opinion: opinion.map(|opinion| Arc::new(ModelOpinion { opinion, model })),
            grounds: messages.into(),
        })
    }
}

/// Lets an honest reviewer hear statements of members, one a line.
pub(crate) fn statements(bytes: &[u8]) -> bool {
    let (mut honest, mut is_taken) = (reviewer(), false);
    let (mut liars, mut decided) = (BTreeSet::new(), BTreeSet::new());
    for line in bytes.split(|byte| *byte == b'\n').take(SAID_MAX) {
        let Ok(said) = serde_json::from_slice::<MemberStatement>(line) else { continue };
        let from = said.party();
        let Some(message) = said.signed(2) else { continue };
        let grounds = message.grounds.iter().map(|ground| ground.signed.author());
        liars.extend(grounds.chain([message.signed.author()]));
        let text = MEMBERS.write(&Packet::Message(message));
        let Ok(Some(packet)) = MEMBERS.read(&text, |_, _| true) else { continue };
        is_taken = true;
        reads_again(&packet);
        decided.extend(hear(&mut honest, from, packet));
    }
    let voters = liars.iter().filter(|party| matches!(party, NodeId::Reviewer(1..)));
    assert!(decided.is_empty() || voters.count() + 1 >= QUORUM, "only a quorum decides");
    is_taken
}
