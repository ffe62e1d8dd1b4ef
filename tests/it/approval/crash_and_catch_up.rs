//! Reviewers and an orchestrator that each run for themselves, with a log: whether they hear each other through channels or
//! over the network, and whichever of them dies on the way.

mod log_behind_the_branch;
mod strangers_and_floods;
mod votes_after_the_decision;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use consensus::approval::node::{
    Addresses, Carrier, Connections, Inbox, Node, NodeError, PhaseTimeouts, ReceivedPacket, ReviewerNode,
    listen,
};
use consensus::journal::JournalError;
use consensus::program::PROGRAM;
use crypto::{Digest, SecretKey, Signature};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quorum::local_cluster::DecisionProof;
use quorum::node_machine::NodeAction;
use quorum::{
    Change, Membership, ModelOpinion, NodeId, Opinion, Packet, Roster, RosterEntry, RosterSigner, Sequence,
    Severity, Signed, SignedMessage, Signer as _, Statement, Value,
};
use tokio::sync::{Notify, mpsc};

use crate::support::Folder;

/// How they hear each other.
#[derive(Clone, Copy, Debug)]
enum TransportKind {
    Channels,
    Network,
}

const BOTH: [TransportKind; 2] = [TransportKind::Channels, TransportKind::Network];

/// Code answers at once here; only what is lost is waited for.
const PATIENCE: PhaseTimeouts = PhaseTimeouts {
    step: Duration::from_millis(400),
    review: Duration::from_secs(5),
    again: Duration::from_millis(20),
};

/// The one who proposes.
const LEADER: NodeId = NodeId::Orchestrator(0);

enum Transport {
    Channels(NodeId, BTreeMap<(NodeId, NodeId), mpsc::Sender<ReceivedPacket>>),
    Network(Connections),
}

/// What a party sends through; it can be cut after so many packets.
struct Wire {
    line: Transport,
    left: Cell<usize>,
    cut: Notify,
}

impl Carrier for Wire {
    fn send(&self, to: NodeId, packet: &Arc<str>) {
        match self.left.get() {
            0 => return self.cut.notify_one(),
            left => self.left.set(left - 1),
        }
        match &self.line {
            // What is full loses, as a network does.
            Transport::Channels(me, doors) => drop(doors[&(to, *me)].try_send(packet.to_string().into())),
            Transport::Network(connections) => connections.send(to, packet),
        }
    }
}

/// A reviewer that thinks one thing of everything, and counts how often it is asked.
struct Fixed {
    opinion: Opinion,
    asked: Cell<usize>,
}

impl ReviewerNode for Fixed {
    async fn review(&self, _: Sequence, _: &Change) -> ModelOpinion {
        self.asked.set(self.asked.get() + 1);
        self.opinion.clone().into()
    }
}

fn key(party: NodeId) -> SecretKey {
    let seed = match party {
        NodeId::Reviewer(at) => u8::try_from(at).unwrap(),
        NodeId::Orchestrator(at) => 200 + u8::try_from(at).unwrap(),
    };
    SecretKey::from_seed(&[seed; 32])
}

fn approve() -> Opinion {
    Opinion::Approve { confidence: 9000, notes: "fine".to_owned() }
}

fn reject() -> Opinion {
    Opinion::Reject { reason: "wrong".to_owned(), severity: Severity::High }
}

fn change(number: usize) -> Change {
    Change::new(&format!("change {number}")).unwrap()
}

/// Four reviewers and an orchestrator, each with a folder.
struct NodeGroup {
    folder: Folder,
    membership: Arc<Membership>,
}

impl NodeGroup {
    fn new() -> Self {
        let seat = |party: NodeId| RosterEntry {
            name: format!("{party:?}"),
            key: key(party).public(),
            domain: "a model".to_owned(),
        };
        let reviewers = (0..4).map(|at| seat(NodeId::Reviewer(at))).collect();
        let roster = Roster { reviewers, orchestrators: vec![seat(LEADER)] };
        let membership = Membership::new(Digest::new(b"a repository"), roster).unwrap();
        Self { folder: Folder::new(), membership: Arc::new(membership) }
    }

    fn parties(&self) -> Vec<NodeId> {
        self.membership.seats().map(|(party, _)| party).collect()
    }

    fn place(&self, party: NodeId) -> std::path::PathBuf {
        self.folder.path().join(format!("{party:?}"))
    }

    fn peer(&self, party: NodeId) -> Node {
        let (me, signer) = RosterSigner::new(key(party), Arc::clone(&self.membership)).unwrap();
        Node::open(&self.place(party), &self.membership, me, signer).unwrap()
    }

    /// Connects all parties with each other.
    async fn wires(&self, by: TransportKind) -> BTreeMap<NodeId, (Inbox, Wire)> {
        let (mut inboxes, mut senders, mut places) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for party in self.parties() {
            let inbox = match by {
                TransportKind::Channels => {
                    let (inbox, doors) = Inbox::new(self.parties(), 256);
                    senders.extend(doors.into_iter().map(|(from, door)| ((party, from), door)));
                    inbox
                }
                TransportKind::Network => {
                    let (inbox, _, address) =
                        listen("127.0.0.1:0", &key(party), &self.membership).await.unwrap();
                    places.push((format!("{party:?}"), address.to_string()));
                    inbox
                }
            };
            inboxes.insert(party, inbox);
        }
        let addresses: Addresses = places.into_iter().collect();
        let wire = |party| {
            let line = match by {
                TransportKind::Channels => Transport::Channels(party, senders.clone()),
                TransportKind::Network => Transport::Network(
                    Connections::open(&key(party), party, &self.membership, &addresses).unwrap(),
                ),
            };
            Wire { line, left: Cell::new(usize::MAX), cut: Notify::new() }
        };
        inboxes.into_iter().map(|(party, inbox)| (party, (inbox, wire(party)))).collect()
    }

    /// Has changes decided on; a reviewer without an opinion is away. Returns what was decided, and how often each was asked.
    async fn decide(
        &self,
        by: TransportKind,
        opinions: &[Option<Opinion>],
        changes: &[Change],
    ) -> (Vec<DecisionProof<Signature>>, Vec<usize>) {
        let mut wires = self.wires(by).await;
        let fixed: Vec<Fixed> = opinions
            .iter()
            .map(|opinion| Fixed { opinion: opinion.clone().unwrap_or_else(reject), asked: Cell::new(0) })
            .collect();
        let mut running = FuturesUnordered::new();
        for (at, reviewer) in fixed.iter().enumerate().filter(|(at, _)| opinions[*at].is_some()) {
            let (mut inbox, wire) = wires.remove(&NodeId::Reviewer(at)).unwrap();
            let mut peer = self.peer(NodeId::Reviewer(at));
            running.push(async move {
                let accuse = |want: &NodeAction<Signature>| {
                    assert!(!matches!(want, NodeAction::Accuse(_)), "{want:?}");
                    ControlFlow::Continue(())
                };
                peer.run(&mut inbox, &wire, reviewer, PATIENCE, accuse).await
            });
        }
        let (mut inbox, wire) = wires.remove(&LEADER).unwrap();
        let mut leader = self.peer(LEADER);
        let mut decisions = Vec::new();
        for change in changes {
            let ended = Cell::new(None);
            leader.submit(change.clone()).unwrap();
            let tell = |want: &NodeAction<Signature>| {
                if let NodeAction::Tell(sequence, value, _) = want
                    && *value == change.value()
                {
                    ended.set(Some(*sequence));
                }
                if let NodeAction::Return(sequence, ..) = want {
                    ended.set(Some(*sequence));
                }
                if ended.get().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            tokio::select! {
                ended = leader.run(&mut inbox, &wire, &(), PATIENCE, tell) => ended.unwrap(),
                ended = running.next() => panic!("a reviewer has ended: {ended:?}"),
            }
            decisions.push(leader.proof_of(ended.get().unwrap(), change.value()).unwrap());
        }
        drop(running);
        (decisions, fixed.iter().map(|reviewer| reviewer.asked.get()).collect())
    }
    /// Runs a reviewer with two others until it knows these decisions, which come after the last checkpoint.
    async fn catch_up(&self, by: TransportKind, late: NodeId, last: std::ops::RangeInclusive<Sequence>) {
        let mut wires = self.wires(by).await;
        let reviewer = Fixed { opinion: approve(), asked: Cell::new(0) };
        let mut others = FuturesUnordered::new();
        for party in [NodeId::Reviewer(0), NodeId::Reviewer(1)] {
            let ((mut inbox, wire), mut peer) = (wires.remove(&party).unwrap(), self.peer(party));
            let reviewer = &reviewer;
            let go_on = |_: &NodeAction<Signature>| ControlFlow::Continue(());
            others.push(async move { peer.run(&mut inbox, &wire, reviewer, PATIENCE, go_on).await });
        }
        let ((mut inbox, wire), mut peer) = (wires.remove(&late).unwrap(), self.peer(late));
        let mut missing: BTreeSet<Sequence> = last.collect();
        let tell = |want: &NodeAction<Signature>| {
            if let NodeAction::Decide(sequence, _) = want {
                missing.remove(sequence);
            }
            if missing.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        tokio::select! {
            ended = peer.run(&mut inbox, &wire, &reviewer, PATIENCE, tell) => ended.unwrap(),
            ended = others.next() => panic!("a reviewer has ended: {ended:?}"),
        }
        assert_eq!(reviewer.asked.get(), 0, "nobody reviews what is decided");
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_mins(1), work).await };
    runtime.block_on(limited).expect("nobody waits for ever")
}

#[test]
fn a_quorum_decides_wherever_its_members_are() {
    for by in BOTH {
        let cases = [
            ([Some(approve()), Some(approve()), Some(approve()), Some(approve())], true),
            ([Some(approve()), Some(reject()), Some(approve()), Some(approve())], true),
            // One may be away.
            ([Some(approve()), None, Some(approve()), Some(approve())], true),
            ([Some(approve()), Some(reject()), Some(reject()), Some(approve())], false),
            ([None, Some(reject()), Some(reject()), Some(approve())], false),
        ];
        for (opinions, is_approved) in cases {
            let house = NodeGroup::new();
            let (decisions, asked) = block_on(house.decide(by, &opinions, &[change(1)]));
            let decision = &decisions[0];
            let expected = if is_approved { change(1).value() } else { Value::Nothing };
            assert_eq!(decision.value, expected, "{by:?}: {opinions:?}");
            assert!(asked.iter().all(|asked| *asked <= 1), "{by:?}: nobody is asked twice: {asked:?}");
            assert_eq!(decision.proof.check(house.membership.quorum()).unwrap().value, expected);
            let envelope = house.membership.envelope(&decision.proof.commits).unwrap();
            assert!(house.membership.open(&envelope).is_ok(), "whoever has the public keys can check it");
        }
    }
}

#[test]
fn an_absent_reviewer_learns_the_decision() {
    for by in BOTH {
        let house = NodeGroup::new();
        let away = [Some(approve()), Some(approve()), Some(approve()), None];
        let changes: Vec<Change> = (1..=20).map(change).collect();
        let (decisions, _) = block_on(house.decide(by, &away, &changes));
        assert!(decisions.iter().zip(&changes).all(|(decision, change)| decision.value == change.value()));
        block_on(house.catch_up(by, NodeId::Reviewer(3), 17..=20));
        assert_eq!(house.peer(NodeId::Reviewer(3)).known(), 20, "{by:?}");
        // It is needed now, since another one is away.
        let other = [None, Some(approve()), Some(approve()), Some(approve())];
        let (decisions, _) = block_on(house.decide(by, &other, &[change(21)]));
        assert_eq!((decisions[0].sequence, decisions[0].value), (21, change(21).value()), "{by:?}");
    }
}

/// More has been decided meanwhile than any party keeps.
#[test]
fn absent_reviewer_continues_from_checkpoint() {
    let house = NodeGroup::new();
    let away = [Some(approve()), Some(approve()), Some(approve()), None];
    let changes: Vec<Change> = (1..=83).map(change).collect();
    block_on(house.decide(TransportKind::Channels, &away, &changes));
    // More has been decided than anybody keeps.
    block_on(house.catch_up(TransportKind::Channels, NodeId::Reviewer(3), 81..=83));
    assert_eq!(house.peer(NodeId::Reviewer(3)).known(), 83);
}

/// A proof of others shows that the key has signed, and its node ends with an error.
#[test]
fn key_with_lost_log_is_stopped() {
    for by in BOTH {
        let house = NodeGroup::new();
        // Its commit was needed, and is in everybody's proof.
        let three = [Some(approve()), Some(approve()), None, Some(approve())];
        block_on(house.decide(by, &three, &[change(1)]));
        std::fs::remove_dir_all(house.place(NodeId::Reviewer(3))).unwrap();
        let ended = block_on(async {
            let mut wires = house.wires(by).await;
            let reviewer = Fixed { opinion: approve(), asked: Cell::new(0) };
            let ((mut inbox, wire), mut other) =
                (wires.remove(&NodeId::Reviewer(0)).unwrap(), house.peer(NodeId::Reviewer(0)));
            let ((mut mine, own), mut lost) =
                (wires.remove(&NodeId::Reviewer(3)).unwrap(), house.peer(NodeId::Reviewer(3)));
            let go_on = |_: &NodeAction<Signature>| ControlFlow::Continue(());
            tokio::select! {
                ended = other.run(&mut inbox, &wire, &reviewer, PATIENCE, go_on) => panic!("{ended:?}"),
                ended = lost.run(&mut mine, &own, &reviewer, PATIENCE, go_on) => ended,
            }
        });
        let Err(NodeError::Forgotten { sequence: 1, .. }) = ended else { panic!("{ended:?}") };
    }
}

/// An orchestrator without its log hears its earlier wish and makes a proposal.
#[test]
fn echoed_want_harms_no_orchestrator() {
    let house = NodeGroup::new();
    let (_, seal) = RosterSigner::new(key(LEADER), Arc::clone(&house.membership)).unwrap();
    let statement = Statement::Want { value: change(1).value() };
    let signature = seal.sign(1, &statement);
    let want = SignedMessage {
        change: Some(change(1)),
        ..SignedMessage::alone(Signed { by: 0, sequence: 1, statement, signature })
    };
    let mut wires = block_on(house.wires(TransportKind::Channels));
    let (mut inbox, wire) = wires.remove(&LEADER).unwrap();
    let Transport::Channels(_, doors) = &wire.line else { unreachable!() };
    // Its log was lost since; a wish binds no one, while a proposal does.
    let door = &doors[&(LEADER, NodeId::Reviewer(0))];
    door.try_send(house.membership.write(&Packet::Message(want)).into()).unwrap();
    let mut leader = house.peer(LEADER);
    block_on(leader.run(&mut inbox, &wire, &(), PATIENCE, |want| {
        let is_proposal = matches!(want, NodeAction::Send(_, Packet::Message(message))
            if matches!(message.signed.statement, Statement::PrePrepare { .. }));
        if is_proposal { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }))
    .unwrap();
}

/// Runs four reviewers, of whom one stops for good after so many packets and comes back. Returns how often it was asked, and
/// whether it has stopped.
async fn with_a_death(house: &NodeGroup, by: TransportKind, after: usize) -> (usize, bool) {
    let mut wires = house.wires(by).await;
    // Two of the others disagree with each other, so that the one that dies is needed.
    let opinions = [approve(), approve(), reject(), approve()];
    let fixed: Vec<Fixed> =
        opinions.into_iter().map(|opinion| Fixed { opinion, asked: Cell::new(0) }).collect();
    let has_died = Cell::new(false);
    let accusations = RefCell::new(Vec::new());
    let mut running = FuturesUnordered::new();
    for (at, reviewer) in fixed.iter().enumerate() {
        let party = NodeId::Reviewer(at);
        let (mut inbox, wire) = wires.remove(&party).unwrap();
        let (has_died, accusations) = (&has_died, &accusations);
        let accuse = move |want: &NodeAction<Signature>| {
            if let NodeAction::Accuse(pair) = want {
                accusations.borrow_mut().push(format!("{pair:?}"));
            }
            ControlFlow::Continue(())
        };
        running.push(async move {
            if at == 0 {
                wire.left.set(after);
                let mut peer = house.peer(party);
                tokio::select! {
                    ended = peer.run(&mut inbox, &wire, reviewer, PATIENCE, accuse) => return ended,
                    () = wire.cut.notified() => {}
                }
                drop(peer);
                has_died.set(true);
                wire.left.set(usize::MAX);
            }
            house.peer(party).run(&mut inbox, &wire, reviewer, PATIENCE, accuse).await
        });
    }
    let (mut inbox, wire) = wires.remove(&LEADER).unwrap();
    let mut leader = house.peer(LEADER);
    leader.submit(change(1)).unwrap();
    let tell = |want: &NodeAction<Signature>| {
        assert!(!matches!(want, NodeAction::Accuse(_)), "{want:?}");
        let NodeAction::Tell(_, value, _) = want else { return ControlFlow::Continue(()) };
        assert_eq!(*value, change(1).value());
        ControlFlow::Break(())
    };
    tokio::select! {
        ended = leader.run(&mut inbox, &wire, &(), PATIENCE, tell) => ended.unwrap(),
        ended = running.next() => panic!("a reviewer has ended: {ended:?}"),
    }
    drop(running);
    assert_eq!(accusations.into_inner(), Vec::<String>::new());
    (fixed[0].asked.get(), has_died.get())
}

/// A reviewer that dies after some packets and returns is accused of nothing and is asked twice at most.
#[test]
fn reviewer_death_causes_no_contradiction() {
    for (by, step) in [(TransportKind::Channels, 1), (TransportKind::Network, 5)] {
        for after in (0..40).step_by(step) {
            let house = NodeGroup::new();
            let (asked, has_died) = block_on(with_a_death(&house, by, after));
            // A review that has not ended when its process does is made again; here it ends at once.
            assert!(asked == 1 || asked == 2 && has_died, "{by:?}, after {after} packets: {asked}");
        }
    }
}

/// A torn last line is only cut off, and a log in use or of another repository is refused too.
#[test]
fn changed_log_is_refused() {
    let house = NodeGroup::new();
    let all = vec![Some(approve()); 4];
    block_on(house.decide(TransportKind::Channels, &all, &[change(1)]));
    let party = NodeId::Reviewer(0);
    let log = house.place(party).join("journal.jsonl");
    let whole = std::fs::read(&log).unwrap();
    let open = || {
        let (me, signer) = RosterSigner::new(key(party), Arc::clone(&house.membership)).unwrap();
        Node::open(&house.place(party), &house.membership, me, signer)
    };
    assert_eq!(open().unwrap().known(), 1);
    std::fs::write(&log, &whole[..whole.len() - 10]).unwrap();
    open().unwrap();
    let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches('\n').count();
    assert_eq!(lines(&std::fs::read(&log).unwrap()), lines(&whole) - 1, "the torn line is cut off");
    let mut bent = whole.clone();
    let at = whole.len() / 2;
    bent[at] ^= 1;
    std::fs::write(&log, &bent).unwrap();
    assert!(matches!(open(), Err(NodeError::Journal(_))), "a flipped bit");
    let other = String::from_utf8(whole.clone()).unwrap().replace(PROGRAM, "consensus 0.0.7+abc");
    std::fs::write(&log, other).unwrap();
    assert!(matches!(open(), Err(NodeError::Journal(JournalError::OtherBuild { .. }))));
    std::fs::write(&log, &whole).unwrap();
    let held = open().unwrap();
    assert!(matches!(open(), Err(NodeError::Journal(_))), "it is in use");
    drop(held);
    // The same bytes belong to one repository.
    let other = Membership::new(Digest::new(b"another"), house.membership.roster().clone()).unwrap();
    let (me, signer) = RosterSigner::new(key(party), Arc::new(other.clone())).unwrap();
    let opened = Node::open(&house.place(party), &Arc::new(other), me, signer);
    assert!(matches!(opened, Err(NodeError::Log { .. })));
}
