//! The world: what happens when, drawn from a seed.

mod draw;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crypto::Digest;
use fastrand::Rng;
use quorum::{Change, NodeId, Opinion, Phase, Sequence, Severity, To, Value, View};

use crate::checks::Checks;
use crate::liars::Script;
use crate::nodes::{Death, Input, Machine, Packet, Proof, Want};

/// When the world grows calm, in milliseconds.
const CALM: u64 = 5000;

/// No node is patient for longer after that.
const PATIENCE: u64 = 14_400_000;

/// What happened in schedules.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Story {
    pub(crate) events: u64,
    pub(crate) changes: u64,
    pub(crate) nothings: u64,
    /// Changes that came back.
    pub(crate) returned: u64,
    pub(crate) crashes: u64,
    pub(crate) torn: u64,
    pub(crate) later_views: u64,
    pub(crate) accusations: u64,
    /// How often a node went on because of others' proof.
    pub(crate) learned: u64,
    pub(crate) checkpoints: u64,
}

impl Story {
    pub(crate) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.changes += other.changes;
        self.nothings += other.nothings;
        self.returned += other.returned;
        self.crashes += other.crashes;
        self.torn += other.torn;
        self.later_views += other.later_views;
        self.accusations += other.accusations;
        self.learned += other.learned;
        self.checkpoints += other.checkpoints;
    }
}

/// What is timed by a machine.
#[derive(Clone, Copy, Debug)]
enum Alarm {
    Expired(Sequence, View, Phase),
    Reviewed(Sequence, Digest),
    Again,
}

#[derive(Clone, Debug)]
enum WorldEvent {
    Deliver { from: NodeId, to: NodeId, packet: Packet },
    Ring { of: NodeId, copy: usize, life: u32, alarm: Alarm },
    Start { of: NodeId, copy: usize },
    Submit(Change),
    Stir,
    Cut,
    Calm,
}

/// Who stands behind a name: one machine, two that do not know of each other, or one who lies.
enum WorldMember {
    Machines(Vec<Machine>),
    Script(Script),
}

/// How bad the network is, and how good the machines, before it is calm.
#[derive(Clone, Copy, Debug)]
struct Weather {
    delay: u64,
    lost: f64,
    doubled: f64,
    deaths: f64,
}

pub(crate) struct World {
    seed: u64,
    rng: Rng,
    now: u64,
    serial: u64,
    queue: BTreeMap<(u64, u64), WorldEvent>,
    weather: Weather,
    is_calm: bool,
    cut: BTreeSet<(NodeId, NodeId)>,
    members: BTreeMap<NodeId, WorldMember>,
    liars: BTreeSet<NodeId>,
    /// How often honest reviewers approve.
    approval: f64,
    checks: Checks,
    /// Changes that have not come yet.
    submissions: u64,
    /// Changes that honest orchestrators have, and have not announced.
    owed: BTreeSet<(NodeId, Digest)>,
    story: Story,
    is_traced: bool,
}

impl World {
    fn at(&mut self, delay: u64, event: WorldEvent) {
        self.serial += 1;
        self.queue.insert((self.now + delay, self.serial), event);
    }

    fn machine(&mut self, of: NodeId, copy: usize) -> Option<&mut Machine> {
        match self.members.get_mut(&of)? {
            WorldMember::Machines(machines) => machines.get_mut(copy),
            WorldMember::Script(_) => None,
        }
    }

    /// Plays until all is decided and known.
    ///
    /// # Panics
    ///
    /// With the seed, if something happens that must not, or does not happen that must.
    pub(crate) fn play(mut self) -> Story {
        while let Some(((now, _), event)) = self.queue.pop_first() {
            self.now = now;
            self.story.events += 1;
            if self.is_traced {
                eprintln!("{now} {event:?}");
            }
            let seed = self.seed;
            if let Err(why) = self.happen(event) {
                panic!("seed {seed}: {why}");
            }
            if self.is_calm && self.story.events.is_multiple_of(16) && self.is_over() {
                assert!(self.owed.is_empty(), "seed {seed}: a change was lost: {:?}", self.owed);
                return self.story;
            }
            assert!(self.queue.len() < 1_000_000, "seed {seed}: too much is said");
            assert!(now < CALM + PATIENCE, "seed {seed}: no decision that all know:\n{}", self.state());
        }
        panic!("seed {}: nothing happens any more", self.seed);
    }

    fn honest(&self) -> impl Iterator<Item = (NodeId, &Machine)> {
        let honest = self.members.iter().filter(|(party, _)| !self.liars.contains(party));
        honest.flat_map(|(party, member)| match member {
            WorldMember::Machines(machines) => machines.iter().map(|machine| (*party, machine)).collect(),
            WorldMember::Script(_) => Vec::new(),
        })
    }

    /// Whether every change is decided and every honest reviewer knows.
    fn is_over(&self) -> bool {
        let is_orchestrator = |party: NodeId| matches!(party, NodeId::Orchestrator(_));
        let known = self
            .honest()
            .filter(|(party, _)| is_orchestrator(*party))
            .map(|(_, machine)| machine.mind.known());
        let known = known.max().unwrap_or(0);
        self.honest().all(|(_, machine)| machine.mind.pending() == 0 && machine.mind.known() >= known)
            && self.submissions == 0
    }

    fn state(&self) -> String {
        let known: Vec<String> = self
            .honest()
            .map(|(party, machine)| {
                let all = if self.is_traced { format!(" {:?}", machine.mind) } else { String::new() };
                format!("{party:?} knows {}{all}", machine.mind.known())
            })
            .collect();
        format!("{}\nliars: {:?}", known.join("\n"), self.liars)
    }

    fn happen(&mut self, event: WorldEvent) -> Result<(), String> {
        match event {
            WorldEvent::Deliver { from, to, packet } => self.deliver(from, to, &packet),
            WorldEvent::Ring { of, copy, life, alarm } => self.ring(of, copy, life, alarm),
            WorldEvent::Start { of, copy } => self.start(of, copy),
            WorldEvent::Submit(change) => {
                self.submissions -= 1;
                self.submit(&change)
            }
            WorldEvent::Stir => {
                let scripts = self.members.iter_mut().filter_map(|(party, member)| match member {
                    WorldMember::Script(script) => Some((*party, script.stir(&mut self.rng))),
                    WorldMember::Machines(_) => None,
                });
                let stirred: Vec<_> = scripts.collect();
                for (party, sent) in stirred {
                    self.lie(party, sent);
                }
                Ok(())
            }
            WorldEvent::Cut => {
                let parties: Vec<NodeId> = self.members.keys().copied().collect();
                let density = self.rng.f64();
                self.cut.clear();
                for from in &parties {
                    for to in &parties {
                        if self.rng.f64() < density {
                            self.cut.insert((*from, *to));
                        }
                    }
                }
                Ok(())
            }
            WorldEvent::Calm => {
                self.is_calm = true;
                self.cut.clear();
                Ok(())
            }
        }
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, packet: &Packet) -> Result<(), String> {
        let is_lie = self.liars.contains(&from);
        let copies = match self.members.get_mut(&to) {
            // Liars do not talk to each other: they would never end.
            Some(WorldMember::Script(_)) if is_lie => return Ok(()),
            Some(WorldMember::Script(script)) => {
                let sent = script.hear(packet, &mut self.rng);
                self.lie(to, sent);
                return Ok(());
            }
            Some(WorldMember::Machines(machines)) => machines.len(),
            None => return Ok(()),
        };
        if let Packet::Have(known) = packet {
            let machine = self.machine(to, 0).filter(|machine| machine.is_up);
            let wants = machine.map(|machine| machine.mind.answer(from, *known)).unwrap_or_default();
            return self.want(to, 0, wants, false);
        }
        for copy in 0..copies {
            // Of two machines with one name sometimes one hears, sometimes both.
            if copy == 0 || self.rng.bool() {
                self.step(to, copy, Input::Heard(from, packet.clone()))?;
            }
        }
        Ok(())
    }

    fn submit(&mut self, change: &Change) -> Result<(), String> {
        let parties: Vec<NodeId> = self.members.keys().copied().collect();
        let leaders: Vec<NodeId> =
            parties.into_iter().filter(|party| matches!(party, NodeId::Orchestrator(_))).collect();
        // A user tells one orchestrator, or several.
        let first = leaders[self.rng.usize(..leaders.len())];
        for party in leaders {
            if party != first && self.rng.bool() {
                continue;
            }
            let copies = match self.members.get_mut(&party) {
                Some(WorldMember::Script(script)) => {
                    let sent = script.submit(change, &mut self.rng);
                    self.lie(party, sent);
                    0
                }
                Some(WorldMember::Machines(machines)) => machines.len(),
                None => 0,
            };
            for copy in 0..copies {
                let other = Change::new(&format!("{} differently", change.text())).expect("it is short");
                let change = if copy == 0 || self.rng.bool() { change.clone() } else { other };
                let is_up = self.machine(party, copy).is_some_and(|machine| machine.is_up);
                if is_up && !self.liars.contains(&party) {
                    self.owed.insert((party, change.digest()));
                }
                self.step(party, copy, Input::Submit(change))?;
            }
        }
        Ok(())
    }

    fn lie(&mut self, from: NodeId, sent: Vec<(NodeId, Packet)>) {
        for (to, packet) in sent.into_iter().filter(|(to, _)| *to != from) {
            self.send(from, to, packet);
        }
    }

    fn step(&mut self, of: NodeId, copy: usize, input: Input) -> Result<(), String> {
        // A change that is lost before it is durable is not under way.
        let dies = !self.is_calm && self.rng.f64() < self.weather.deaths;
        let dies = dies && !matches!(input, Input::Submit(_));
        let death = dies.then(|| if self.rng.bool() { Death::Torn } else { Death::Written });
        let Some(machine) = self.machine(of, copy).filter(|machine| machine.is_up) else { return Ok(()) };
        let is_proof = matches!(input, Input::Heard(_, Packet::Proof(_) | Packet::Stable(_)));
        let before = machine.mind.known();
        let wants = machine.step(input, death);
        let has_learned = is_proof && death.is_none() && machine.mind.known() > before;
        self.story.learned += u64::from(has_learned);
        if let Some(death) = death {
            self.story.crashes += 1;
            self.story.torn += u64::from(death == Death::Torn);
            let delay = self.rng.u64(1..2000);
            self.at(delay, WorldEvent::Start { of, copy });
        }
        self.want(of, copy, wants, false)
    }

    fn start(&mut self, of: NodeId, copy: usize) -> Result<(), String> {
        let Some(machine) = self.machine(of, copy) else { return Ok(()) };
        let (said, waits) = machine.start();
        self.want(of, copy, said, true)?;
        self.want(of, copy, waits, false)?;
        self.alarm(of, copy, 1, Alarm::Again);
        Ok(())
    }

    /// Does what a machine wants, or only checks it, where it has been done in a former life.
    fn want(&mut self, of: NodeId, copy: usize, wants: Vec<Want>, is_replay: bool) -> Result<(), String> {
        let is_honest = !self.liars.contains(&of);
        for want in wants {
            match want {
                Want::Send(to, packet) => {
                    if is_honest {
                        self.checks.sends(of, &packet)?;
                    }
                    if !is_replay {
                        self.broadcast(of, to, &packet);
                    }
                }
                Want::Decide(sequence, proof) => {
                    if is_honest {
                        self.checks.decides(sequence, &proof)?;
                    }
                    if let Some(machine) = self.machine(of, copy) {
                        machine.kept.insert(sequence, proof);
                    }
                }
                Want::Tell(sequence, value, proof) => {
                    self.tell(of, copy, sequence, value, proof, is_replay)?;
                }
                Want::Accuse(pair) if is_honest => {
                    self.story.accusations += 1;
                    self.checks.accuses(&pair.0, &pair.1)?;
                }
                Want::Stable(..) => self.story.checkpoints += 1,
                Want::Review(sequence, change) if !is_replay => {
                    let delay = self.rng.u64(1..100);
                    self.alarm(of, copy, delay, Alarm::Reviewed(sequence, change.digest()));
                }
                Want::Wait(sequence, view, phase) if !is_replay => {
                    self.story.later_views += u64::from(view > 0);
                    let base = match phase {
                        Phase::ViewChange => return Err("a view change has no time".to_owned()),
                        Phase::PrePrepare => 400,
                        Phase::Prepare => 600,
                        Phase::Commit => 300,
                    };
                    self.alarm(of, copy, base << view.min(10), Alarm::Expired(sequence, view, phase));
                }
                Want::Return(_, change, why) if is_honest => {
                    self.story.returned += u64::from(!is_replay);
                    self.owed.remove(&(of, change.digest()));
                    self.checks.returns(&change, &why)?;
                }
                Want::Recall(to, after) if !is_replay => {
                    let packets = self.machine(of, copy).map(|machine| machine.recall(after));
                    for packet in packets.unwrap_or_default() {
                        self.send(of, to, packet);
                    }
                }
                Want::Accuse(_)
                | Want::Review(..)
                | Want::Wait(..)
                | Want::Late(..)
                | Want::Recall(..)
                | Want::Return(..) => {}
            }
        }
        Ok(())
    }

    fn tell(
        &mut self,
        of: NodeId,
        copy: usize,
        sequence: Sequence,
        value: Value,
        proof: Proof,
        is_replay: bool,
    ) -> Result<(), String> {
        let is_honest = !self.liars.contains(&of);
        if is_honest {
            self.checks.tells(sequence, value, &proof)?;
        }
        if is_honest && !is_replay {
            self.story.changes += u64::from(value != Value::Nothing);
            self.story.nothings += u64::from(value == Value::Nothing);
        }
        if let Value::Change(digest) = value {
            self.owed.remove(&(of, digest));
        }
        let Some(machine) = self.machine(of, copy) else { return Ok(()) };
        let last = machine.kept.insert(sequence, proof).is_some();
        let is_next = sequence == 1 || machine.kept.contains_key(&(sequence - 1));
        if is_honest && (!is_next || last && !is_replay) {
            return Err(format!("{sequence} is told out of order, or twice"));
        }
        Ok(())
    }

    fn alarm(&mut self, of: NodeId, copy: usize, delay: u64, alarm: Alarm) {
        let Some(machine) = self.machine(of, copy) else { return };
        let (life, clock) = (machine.life, machine.clock);
        self.at(delay * clock / 100 + 1, WorldEvent::Ring { of, copy, life, alarm });
    }

    fn ring(&mut self, of: NodeId, copy: usize, life: u32, alarm: Alarm) -> Result<(), String> {
        let machine = self.machine(of, copy);
        if !machine.is_some_and(|machine| machine.is_up && machine.life == life) {
            return Ok(());
        }
        let input = match alarm {
            Alarm::Expired(sequence, view, phase) => Input::Expired(sequence, view, phase),
            Alarm::Reviewed(sequence, digest) => {
                Input::Reviewed(sequence, digest, Arc::new(self.opinion().into()))
            }
            Alarm::Again => {
                let pause = if self.is_calm { 4000 } else { 500 };
                self.alarm(of, copy, pause, Alarm::Again);
                Input::Again
            }
        };
        self.step(of, copy, input)
    }

    /// Asked again, a model may say something else.
    fn opinion(&mut self) -> Opinion {
        if self.rng.f64() < self.approval {
            return Opinion::Approve { confidence: self.rng.u16(..=10_000), notes: String::new() };
        }
        if self.rng.bool() {
            return Opinion::Abstain { reason: String::new() };
        }
        Opinion::Reject { reason: String::new(), severity: Severity::High }
    }

    fn broadcast(&mut self, from: NodeId, to: To, packet: &Packet) {
        let is_reviewer = |party: &NodeId| matches!(party, NodeId::Reviewer(_));
        let all = self.members.keys().copied();
        let to: Vec<NodeId> = match to {
            To::One(party) => vec![party],
            To::All => all.collect(),
            To::Reviewers => all.filter(is_reviewer).collect(),
        };
        for to in to.into_iter().filter(|to| *to != from) {
            self.send(from, to, packet.clone());
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, packet: Packet) {
        if self.is_calm {
            let delay = self.rng.u64(1..20);
            return self.at(delay, WorldEvent::Deliver { from, to, packet });
        }
        if self.cut.contains(&(from, to)) || self.rng.f64() < self.weather.lost {
            return;
        }
        if self.rng.f64() < self.weather.doubled {
            let delay = self.rng.u64(1..=4 * self.weather.delay);
            self.at(delay, WorldEvent::Deliver { from, to, packet: packet.clone() });
        }
        let delay = self.rng.u64(1..=self.weather.delay);
        self.at(delay, WorldEvent::Deliver { from, to, packet });
    }
}
