//! How many decisions by quorum are made in a second, beside how many the signatures alone would allow.
//!
//! Reviewers approve at once; what one sends the others get as the bytes that would travel, and read and verify it each
//! for itself. There is no network and no disk.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crypto::{Digest, SecretKey, Signature};
use quorum::node_machine::{NodeAction, NodeInput};
use quorum::proposer::Proposer;
use quorum::replica::Replica;
use quorum::{
    Change, Membership, ModelOpinion, NodeId, Opinion, Packet, Roster, RosterEntry, RosterSigner, Sequence,
    Signer, Statement, To, Value,
};

use crate::{Result, row};

/// How long each row is measured.
const MEASURED: Duration = Duration::from_millis(1500);

/// How a packet gets from one to the other.
trait Mail<K: Signer> {
    type Sealed: Clone;

    fn seal(&self, packet: Packet<K::Signature>) -> Self::Sealed;
    fn open(
        &self,
        sealed: &Self::Sealed,
        is_wanted: impl Fn(Sequence, &Statement) -> bool,
    ) -> Option<Packet<K::Signature>>;
}

/// As signed bytes, which everybody verifies.
struct Bytes(Arc<Membership>);

impl Mail<RosterSigner> for Bytes {
    type Sealed = Arc<str>;

    fn seal(&self, packet: Packet<Signature>) -> Arc<str> {
        self.0.write(&packet).into()
    }

    fn open(
        &self,
        sealed: &Arc<str>,
        is_wanted: impl Fn(Sequence, &Statement) -> bool,
    ) -> Option<Packet<Signature>> {
        self.0.read(sealed, is_wanted).ok()?
    }
}

/// As signed bytes, which one process verifies once for all who are in it.
struct Once(Arc<Membership>);

impl Mail<RosterSigner> for Once {
    type Sealed = Option<Packet<Signature>>;

    fn seal(&self, packet: Packet<Signature>) -> Option<Packet<Signature>> {
        self.0.read(&self.0.write(&packet), |_, _| true).ok()?
    }

    fn open(
        &self,
        sealed: &Self::Sealed,
        _: impl Fn(Sequence, &Statement) -> bool,
    ) -> Option<Packet<Signature>> {
        sealed.clone()
    }
}

/// Without signatures.
struct Plain;

#[derive(Clone, Copy)]
struct NoKey;

impl Signer for NoKey {
    type Signature = ();

    fn sign(&self, _: Sequence, _: &Statement) {}
}

impl Mail<NoKey> for Plain {
    type Sealed = Packet<()>;

    fn seal(&self, packet: Packet<()>) -> Packet<()> {
        packet
    }

    fn open(&self, sealed: &Packet<()>, _: impl Fn(Sequence, &Statement) -> bool) -> Option<Packet<()>> {
        Some(sealed.clone())
    }
}

struct Hall<K: Signer, M: Mail<K>> {
    mail: M,
    reviewers: Vec<Replica<K>>,
    orchestrator: Proposer<K>,
    inbox: VecDeque<(NodeId, NodeId, M::Sealed)>,
    opinion: Arc<ModelOpinion>,
    decided: Sequence,
}

impl<K: Signer, M: Mail<K>> Hall<K, M> {
    fn broadcast(&mut self, from: NodeId, to: To, packet: Packet<K::Signature>) {
        let sealed = self.mail.seal(packet);
        if let To::One(to) = to {
            return self.inbox.push_back((from, to, sealed));
        }
        let reviewers = (0..self.reviewers.len()).map(NodeId::Reviewer);
        let leader = (to == To::All).then_some(NodeId::Orchestrator(0));
        for to in reviewers.chain(leader).filter(|to| *to != from) {
            self.inbox.push_back((from, to, sealed.clone()));
        }
    }

    fn lead(&mut self, input: NodeInput<K::Signature>) {
        for wanted in self.orchestrator.step(input) {
            match wanted {
                NodeAction::Send(to, packet) => {
                    self.broadcast(NodeId::Orchestrator(0), to, packet);
                }
                NodeAction::Tell(_, value, _) => {
                    assert_ne!(value, Value::Nothing, "all approve");
                    self.decided += 1;
                }
                NodeAction::Wait(..)
                | NodeAction::Late(..)
                | NodeAction::Return(..)
                | NodeAction::Recall(..)
                | NodeAction::Review(..)
                | NodeAction::Decide(..)
                | NodeAction::Stable(..)
                | NodeAction::Accuse(_) => {}
            }
        }
    }

    fn review(&mut self, at: usize, input: NodeInput<K::Signature>) {
        for wanted in self.reviewers[at].step(input) {
            match wanted {
                NodeAction::Send(to, packet) => self.broadcast(NodeId::Reviewer(at), to, packet),
                NodeAction::Review(sequence, change) => {
                    let opinion = Arc::clone(&self.opinion);
                    self.review(at, NodeInput::Reviewed(sequence, change.digest(), opinion));
                }
                NodeAction::Wait(..)
                | NodeAction::Decide(..)
                | NodeAction::Recall(..)
                | NodeAction::Stable(..)
                | NodeAction::Tell(..)
                | NodeAction::Return(..)
                | NodeAction::Late(..)
                | NodeAction::Accuse(_) => {}
            }
        }
    }

    /// Decides on one change, until nothing is on its way. Returns how long it took until it was announced.
    fn decide(&mut self, text: &str) -> Duration {
        let (began, mut took) = (Instant::now(), None);
        self.lead(NodeInput::Submit(Change::new(text).expect("it is short")));
        let before = self.decided;
        while let Some((from, to, sealed)) = self.inbox.pop_front() {
            let is_wanted = |sequence: Sequence, statement: &Statement| match to {
                NodeId::Reviewer(at) => self.reviewers[at].wants(sequence, statement),
                NodeId::Orchestrator(_) => self.orchestrator.wants(sequence, statement),
            };
            let Some(packet) = self.mail.open(&sealed, is_wanted) else { continue };
            match to {
                NodeId::Reviewer(at) => self.review(at, NodeInput::Heard(from, packet)),
                NodeId::Orchestrator(_) => self.lead(NodeInput::Heard(from, packet)),
            }
            if self.decided > before {
                took = took.or(Some(began.elapsed()));
            }
        }
        took.unwrap_or_else(|| began.elapsed())
    }
}

fn hall<K: Signer, M: Mail<K>>(mail: M, count: usize, key: impl Fn(NodeId) -> K) -> Result<Hall<K, M>> {
    let quorum = quorum::Quorum::new(count).ok_or("there are no reviewers")?;
    Ok(Hall {
        mail,
        reviewers: (0..count).map(|at| Replica::new(key(NodeId::Reviewer(at)), at, quorum, 1)).collect(),
        orchestrator: Proposer::new(key(NodeId::Orchestrator(0)), 0, quorum, 1),
        inbox: VecDeque::new(),
        opinion: Arc::new(Opinion::Approve { confidence: 9000, notes: "it is right".to_owned() }.into()),
        decided: 0,
    })
}

/// Decisions a second, and how long one takes, in ms: the median and the slowest of a hundred.
fn rate<K: Signer, M: Mail<K>>(mut hall: Hall<K, M>) -> (f64, f64, f64) {
    hall.decide("the first one");
    let (began, mut times) = (Instant::now(), Vec::new());
    while began.elapsed() < MEASURED || times.len() < 3 {
        times.push(hall.decide(&format!("change {}", times.len())).as_secs_f64() * 1e3);
    }
    let rate = times.len() as f64 / began.elapsed().as_secs_f64();
    times.sort_unstable_by(f64::total_cmp);
    (rate, times[times.len() / 2], times[times.len() * 99 / 100])
}

fn secret(party: NodeId) -> SecretKey {
    let number = match party {
        NodeId::Reviewer(at) => at + 1,
        NodeId::Orchestrator(_) => 0,
    };
    SecretKey::from_seed(Digest::new(&number.to_le_bytes()).as_bytes())
}

fn membership(count: usize) -> Result<Arc<Membership>> {
    let seat = |party: NodeId| RosterEntry {
        name: format!("{party:?}"),
        key: secret(party).public(),
        domain: "a model".to_owned(),
    };
    let roster = Roster {
        reviewers: (0..count).map(|at| seat(NodeId::Reviewer(at))).collect(),
        orchestrators: vec![seat(NodeId::Orchestrator(0))],
    };
    Ok(Arc::new(Membership::new(Digest::new(b"a repository"), roster)?))
}

/// Seconds that it takes to sign, and to verify, a message as long as a vote.
fn primitives() -> (f64, f64) {
    let (key, message) = (secret(NodeId::Reviewer(0)), [7_u8; 400]);
    let signature = key.sign(&message);
    let time = |act: &dyn Fn()| {
        let (began, mut count) = (Instant::now(), 0_u32);
        while began.elapsed() < Duration::from_millis(300) {
            act();
            count += 1;
        }
        began.elapsed().as_secs_f64() / f64::from(count)
    };
    let sign = time(&|| _ = std::hint::black_box(key.sign(&message)));
    let verify = time(&|| assert!(key.public().verifies(std::hint::black_box(&message), &signature)));
    (sign, verify)
}

/// Prints the rows. One thread, and so one core, does all of it.
pub(crate) fn measure() -> Result<()> {
    let (sign, verify) = primitives();
    row("Ed25519: signatures a second", 1.0 / sign, None);
    row("Ed25519: verifications a second", 1.0 / verify, None);
    for count in [4, 7, 31, 100] {
        let n = count as f64;
        let membership = membership(count)?;
        let seal =
            |party| RosterSigner::new(secret(party), Arc::clone(&membership)).expect("it is in the roster").1;
        // Everybody signs what it says twice, and verifies what all say.
        let bound = 1.0 / ((2.0 * n * n + n) * verify + (2.0 * n + 1.0) * sign);
        let (each, median, slowest) = rate(hall(Bytes(Arc::clone(&membership)), count, seal)?);
        row(&format!("{count} reviewers: decisions a second, beside the signatures"), each, Some(bound));
        row(&format!("{count} reviewers: ms a decision, p50"), median, None);
        row(&format!("{count} reviewers: ms a decision, p99"), slowest, None);
        let (once, ..) = rate(hall(Once(Arc::clone(&membership)), count, seal)?);
        row(&format!("{count} reviewers: each message verified once for all"), once, Some(bound));
        let (unsigned, ..) = rate(hall(Plain, count, |_| NoKey)?);
        row(&format!("{count} reviewers: unsigned"), unsigned, None);
    }
    Ok(())
}
