//! The world: what happens when, drawn from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use consensus::crypto::Digest;
use consensus::protocol::approval::{
    Change, Opinion, Party, Phase, Quorum, Sequence, Severity, To, Value, View, orchestrator, replica,
};
use fastrand::Rng;

use crate::checks::Checks;
use crate::liars::{Script, Way};
use crate::nodes::{Death, Machine, Mind, Name, Post, Signed};

/// Nobody is patient for longer, in milliseconds of the world after it is calm.
const PATIENCE: u64 = 3_600_000;

/// What happened in schedules.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Story {
    pub(crate) events: u64,
    pub(crate) changes: u64,
    pub(crate) nothings: u64,
    pub(crate) crashes: u64,
    pub(crate) torn: u64,
    pub(crate) later_views: u64,
    pub(crate) accusations: u64,
    /// Decisions that somebody learned of from others' proof, or skipped by a checkpoint.
    pub(crate) learned: u64,
    pub(crate) checkpoints: u64,
}

impl Story {
    pub(crate) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.changes += other.changes;
        self.nothings += other.nothings;
        self.crashes += other.crashes;
        self.torn += other.torn;
        self.later_views += other.later_views;
        self.accusations += other.accusations;
        self.learned += other.learned;
        self.checkpoints += other.checkpoints;
    }
}

/// What is timed by a machine.
#[derive(Clone, Debug)]
enum Alarm {
    Phase(Sequence, View, Phase),
    Acknowledge(Sequence, View),
    Reviewed(Sequence, Digest),
    Again,
}

#[derive(Clone, Debug)]
enum Event {
    Deliver { from: Party, to: Party, post: Post },
    Ring { of: Party, copy: usize, life: u32, alarm: Alarm },
    Start { of: Party, copy: usize },
    Submit(Change),
    Cut,
    Calm,
}

/// Who stands behind a name: one machine, two that do not know of each other, or one who lies.
enum Member<M: Mind> {
    Machines(Vec<Machine<M>>),
    Script(Script),
}

/// How bad the network is, before it is calm.
#[derive(Clone, Copy, Debug)]
struct Network {
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
    queue: BTreeMap<(u64, u64), Event>,
    network: Network,
    is_calm: bool,
    cut: BTreeSet<(Party, Party)>,
    reviewers: Vec<Member<replica::Replica<Name>>>,
    orchestrators: Vec<Member<orchestrator::Orchestrator<Name>>>,
    liars: BTreeSet<Party>,
    /// How often honest reviewers approve.
    approval: f64,
    checks: Checks,
    story: Story,
    is_traced: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let is_long = rng.u8(..) < 4;
        let count = if is_long { 4 } else { *rng.choice(&[4, 4, 7, 10]).unwrap_or(&4) };
        let quorum = Quorum::of(count).expect("there are reviewers");
        let orchestrators = rng.usize(1..=3);
        let mut liars = BTreeSet::new();
        for _ in 0..rng.usize(..=quorum.faults()) {
            liars.insert(Party::Reviewer(rng.usize(..count)));
        }
        // One orchestrator at least is honest.
        for _ in 0..rng.usize(..orchestrators) {
            liars.insert(Party::Orchestrator(rng.usize(..orchestrators)));
        }
        if liars.iter().filter(|party| matches!(party, Party::Orchestrator(_))).count() == orchestrators {
            liars.remove(&Party::Orchestrator(rng.usize(..orchestrators)));
        }
        let network = Network {
            delay: *rng.choice(&[10, 100, 500]).unwrap_or(&10),
            lost: *rng.choice(&[0.0, 0.05, 0.3]).unwrap_or(&0.0),
            doubled: *rng.choice(&[0.0, 0.1]).unwrap_or(&0.0),
            deaths: *rng.choice(&[0.0, 0.005, 0.03]).unwrap_or(&0.0),
        };
        let mut world = Self {
            seed,
            now: 0,
            serial: 0,
            queue: BTreeMap::new(),
            network,
            is_calm: false,
            cut: BTreeSet::new(),
            reviewers: Vec::new(),
            orchestrators: Vec::new(),
            approval: *rng.choice(&[0.5, 0.9, 1.0]).unwrap_or(&1.0),
            checks: Checks::new(quorum, liars.clone()),
            liars,
            story: Story::default(),
            is_traced: std::env::var_os("CONSENSUS_SIM_TRACE").is_some(),
            rng,
        };
        for me in 0..count {
            let mind = replica::Replica::new(Name, me, quorum, orchestrators);
            let member = world.member(Party::Reviewer(me), &mind, count, orchestrators);
            world.reviewers.push(member);
        }
        for me in 0..orchestrators {
            let mind = orchestrator::Orchestrator::new(Name, me, quorum, orchestrators);
            let member = world.member(Party::Orchestrator(me), &mind, count, orchestrators);
            world.orchestrators.push(member);
        }
        let submitted = if is_long { world.rng.u64(40..100) } else { world.rng.u64(1..=3) };
        for number in 0..submitted {
            let at = world.rng.u64(..2000);
            world.at(at, Event::Submit(Change::new(&format!("change {number}"))));
        }
        for party in world.parties() {
            for copy in 0..2 {
                world.at(0, Event::Ring { of: party, copy, life: 0, alarm: Alarm::Again });
            }
        }
        for _ in 0..world.rng.usize(..4) {
            let at = world.rng.u64(..4000);
            world.at(at, Event::Cut);
        }
        world.at(5000, Event::Calm);
        world
    }

    fn member<M: Mind>(&mut self, party: Party, mind: &M, count: usize, orchestrators: usize) -> Member<M> {
        let clock = self.rng.u64(50..200);
        let machine = |forgets, clock| Machine::new(mind.clone(), forgets, clock);
        if !self.liars.contains(&party) {
            return Member::Machines(vec![machine(false, clock)]);
        }
        match self.rng.u8(..4) {
            0 => Member::Script(Script::new(Way::Silent, party, count, orchestrators)),
            1 => Member::Machines(vec![machine(true, clock)]),
            2 => Member::Machines(vec![machine(false, clock), machine(false, 300 - clock)]),
            _ => Member::Script(Script::new(Way::Liar, party, count, orchestrators)),
        }
    }

    fn parties(&self) -> Vec<Party> {
        let orchestrators = (0..self.orchestrators.len()).map(Party::Orchestrator);
        (0..self.reviewers.len()).map(Party::Reviewer).chain(orchestrators).collect()
    }

    fn at(&mut self, delay: u64, event: Event) {
        self.serial += 1;
        self.queue.insert((self.now + delay, self.serial), event);
    }

    /// Plays until all is decided and known.
    ///
    /// # Panics
    ///
    /// With the seed, if something happens that must not, or does not happen that must.
    pub(crate) fn play(mut self) -> Story {
        let until = 5000 + PATIENCE;
        while let Some(((now, _), event)) = self.queue.pop_first() {
            self.now = now;
            self.story.events += 1;
            if self.is_traced {
                eprintln!("{now} {event:?}");
            }
            let went = self.happen(event);
            if let Err(why) = went {
                panic!("seed {}: {why}", self.seed);
            }
            if self.is_calm && self.story.events.is_multiple_of(16) && self.is_over() {
                return self.story;
            }
            assert!(self.queue.len() < 1_000_000, "seed {}: too much is said", self.seed);
            assert!(now < until, "seed {}: no decision that all know:\n{}", self.seed, self.state());
        }
        panic!("seed {}: nothing happens any more", self.seed);
    }

    /// Whether every change is decided and every honest reviewer knows.
    fn is_over(&self) -> bool {
        let mut told = 0;
        for (index, member) in self.orchestrators.iter().enumerate() {
            let Member::Machines(machines) = member else { continue };
            let is_honest = !self.liars.contains(&Party::Orchestrator(index));
            for machine in machines.iter().filter(|_| is_honest) {
                if machine.mind.pending() > 0 {
                    return false;
                }
                told = told.max(machine.mind.told());
            }
        }
        self.reviewers.iter().enumerate().all(|(index, member)| match member {
            Member::Machines(machines) if !self.liars.contains(&Party::Reviewer(index)) => {
                machines.iter().all(|machine| machine.mind.known().0 >= told)
            }
            Member::Machines(_) | Member::Script(_) => true,
        }) && self.queue.values().all(|event| !matches!(event, Event::Submit(_)))
    }

    fn state(&self) -> String {
        let reviewers = self.reviewers.iter().map(|member| match member {
            Member::Machines(machines) => format!("{:#?}", machines[0].mind),
            Member::Script(_) => "a liar".to_owned(),
        });
        let orchestrators = self.orchestrators.iter().map(|member| match member {
            Member::Machines(machines) => format!("{:#?}", machines[0].mind),
            Member::Script(_) => "a liar".to_owned(),
        });
        let all: Vec<String> =
            if self.is_traced { reviewers.chain(orchestrators).collect() } else { Vec::new() };
        format!("liars {:?}\n{}", self.liars, all.join("\n"))
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Deliver { from, to, post } => {
                for copy in 0..self.copies(to) {
                    // Of two machines with one name sometimes one hears, sometimes both.
                    if copy == 0 || self.rng.bool() {
                        self.hear(to, copy, from, post.clone())?;
                    }
                }
                Ok(())
            }
            Event::Ring { of, copy, life, alarm } => self.ring(of, copy, life, alarm),
            Event::Start { of, copy } => self.start(of, copy),
            Event::Submit(change) => self.submit(&change),
            Event::Cut => {
                let parties = self.parties();
                let density = self.rng.f64();
                for from in &parties {
                    for to in &parties {
                        if self.rng.f64() < density {
                            self.cut.insert((*from, *to));
                        } else {
                            self.cut.remove(&(*from, *to));
                        }
                    }
                }
                Ok(())
            }
            Event::Calm => {
                self.is_calm = true;
                self.cut.clear();
                Ok(())
            }
        }
    }

    fn copies(&self, party: Party) -> usize {
        match party {
            Party::Reviewer(index) => self.reviewers[index].copies(),
            Party::Orchestrator(index) => self.orchestrators[index].copies(),
        }
    }

    fn hear(&mut self, to: Party, copy: usize, from: Party, post: Post) -> Result<(), String> {
        // Liars do not talk to each other: they would never end.
        let is_lie = self.liars.contains(&from) && self.is_script(to);
        match to {
            _ if is_lie => Ok(()),
            Party::Reviewer(index) => {
                if let Member::Script(script) = &mut self.reviewers[index] {
                    let sent = script.hear(&post, &mut self.rng);
                    self.lie(to, sent);
                    return Ok(());
                }
                self.review_step(index, copy, replica::Input::Heard(from, post))
            }
            Party::Orchestrator(index) => {
                if let Member::Script(script) = &mut self.orchestrators[index] {
                    let sent = script.hear(&post, &mut self.rng);
                    self.lie(to, sent);
                    return Ok(());
                }
                self.lead_step(index, copy, orchestrator::Input::Heard(from, post))
            }
        }
    }

    fn is_script(&self, party: Party) -> bool {
        match party {
            Party::Reviewer(index) => matches!(self.reviewers[index], Member::Script(_)),
            Party::Orchestrator(index) => matches!(self.orchestrators[index], Member::Script(_)),
        }
    }

    fn lie(&mut self, from: Party, sent: Vec<(Party, Post)>) {
        for (to, post) in sent {
            if to != from {
                self.send(from, to, post);
            }
        }
    }

    fn submit(&mut self, change: &Change) -> Result<(), String> {
        for index in 0..self.orchestrators.len() {
            if let Member::Script(script) = &mut self.orchestrators[index] {
                let sent = script.submit(change, &mut self.rng);
                self.lie(Party::Orchestrator(index), sent);
                continue;
            }
            for copy in 0..self.orchestrators[index].copies() {
                let other = Change::new(&format!("{} differently", change.text()));
                let change = if copy == 0 || self.rng.bool() { change.clone() } else { other };
                if self.orchestrators[index].machine(copy).is_some_and(|machine| machine.is_up) {
                    self.lead_step(index, copy, orchestrator::Input::Submit(change))?;
                }
            }
        }
        Ok(())
    }

    /// Whether a machine dies at this input, and how.
    fn death(&mut self) -> Option<Death> {
        let dies = !self.is_calm && self.rng.f64() < self.network.deaths;
        dies.then(|| if self.rng.bool() { Death::Torn } else { Death::Written })
    }

    fn mourn(&mut self, of: Party, copy: usize, death: Death) {
        self.story.crashes += 1;
        self.story.torn += u64::from(death == Death::Torn);
        let delay = self.rng.u64(1..2000);
        self.at(delay, Event::Start { of, copy });
    }

    fn review_step(&mut self, index: usize, copy: usize, input: replica::Input<()>) -> Result<(), String> {
        let (death, party) = (self.death(), Party::Reviewer(index));
        let Some(machine) = self.reviewers[index].machine(copy) else { return Ok(()) };
        if !machine.is_up {
            return Ok(());
        }
        let is_proof = matches!(input, replica::Input::Heard(_, Post::Proof(_) | Post::Stable(_)));
        let before = machine.mind.known().0;
        let out = machine.step(input, death);
        self.story.learned += u64::from(is_proof && machine.mind.known().0 > before && death.is_none());
        if let Some(death) = death {
            self.mourn(party, copy, death);
        }
        self.review_out(index, copy, out, false)
    }

    fn review_out(
        &mut self,
        index: usize,
        copy: usize,
        out: Vec<replica::Output<()>>,
        is_replay: bool,
    ) -> Result<(), String> {
        let party = Party::Reviewer(index);
        let is_honest = !self.liars.contains(&party);
        for wanted in out {
            match wanted {
                replica::Output::Send(to, post) => {
                    if is_honest {
                        check(&mut self.checks, party, &post)?;
                    }
                    if !is_replay {
                        self.broadcast(party, to, &post);
                    }
                }
                replica::Output::Review(sequence, change) if !is_replay => {
                    let delay = self.rng.u64(1..100);
                    self.alarm(party, copy, delay, Alarm::Reviewed(sequence, change.digest()));
                }
                replica::Output::Wait(sequence, view, phase) if !is_replay => {
                    self.story.later_views += u64::from(view > 0);
                    let base = match phase {
                        Phase::ViewChange => return Err("a view change has no time of its own".to_owned()),
                        Phase::PrePrepare => 400,
                        Phase::Prepare => 600,
                        Phase::Commit => 300,
                    };
                    self.alarm(party, copy, base << view.min(12), Alarm::Phase(sequence, view, phase));
                }
                replica::Output::Decide(sequence, proof) => {
                    if is_honest {
                        self.checks.decides(sequence, &proof)?;
                    }
                    if let Some(machine) = self.reviewers[index].machine(copy) {
                        machine.kept.insert(sequence, proof);
                    }
                }
                replica::Output::Recall(to, after) if !is_replay => {
                    let posts = self.reviewers[index].kept(copy, after);
                    posts.into_iter().for_each(|post| self.send(party, to, post));
                }
                replica::Output::Stable(..) => self.story.checkpoints += 1,
                replica::Output::Accuse(pair) if is_honest => {
                    self.story.accusations += 1;
                    self.checks.accuses(&pair.0, &pair.1)?;
                }
                replica::Output::Review(..)
                | replica::Output::Wait(..)
                | replica::Output::Recall(..)
                | replica::Output::Accuse(_) => {}
            }
        }
        Ok(())
    }

    fn lead_step(&mut self, index: usize, copy: usize, input: orchestrator::Input<()>) -> Result<(), String> {
        // A change that is lost before it is durable is not under way.
        let death = self.death().filter(|_| !matches!(input, orchestrator::Input::Submit(_)));
        let Some(machine) = self.orchestrators[index].machine(copy) else { return Ok(()) };
        if !machine.is_up {
            return Ok(());
        }
        let out = machine.step(input, death);
        if let Some(death) = death {
            self.mourn(Party::Orchestrator(index), copy, death);
        }
        self.lead_out(index, copy, out, false)
    }

    fn lead_out(
        &mut self,
        index: usize,
        copy: usize,
        out: Vec<orchestrator::Output<()>>,
        is_replay: bool,
    ) -> Result<(), String> {
        let party = Party::Orchestrator(index);
        let is_honest = !self.liars.contains(&party);
        let mut last = None;
        for wanted in out {
            match wanted {
                orchestrator::Output::Send(to, post) => {
                    if is_honest {
                        check(&mut self.checks, party, &post)?;
                    }
                    if !is_replay {
                        self.broadcast(party, to, &post);
                    }
                }
                orchestrator::Output::Wait(sequence, view) if !is_replay => {
                    self.alarm(party, copy, 200, Alarm::Acknowledge(sequence, view));
                }
                orchestrator::Output::Decide(sequence, value, proof) if is_honest => {
                    if last.is_some_and(|last| sequence != last + 1) {
                        return Err(format!("{sequence} is told after {last:?}"));
                    }
                    last = Some(sequence);
                    let proven = self.checks.decides(sequence, &proof)?;
                    if let Some(machine) = self.orchestrators[index].machine(copy) {
                        machine.kept.insert(sequence, proof.clone());
                    }
                    let has_change = proof.change.is_some() || value == Value::Nothing;
                    if proven != value || !has_change {
                        return Err(format!("{sequence} is told as {value}, without its change or wrongly"));
                    }
                    if !is_replay {
                        let count = if value == Value::Nothing {
                            &mut self.story.nothings
                        } else {
                            &mut self.story.changes
                        };
                        *count += 1;
                    }
                }
                orchestrator::Output::Recall(to, after) if !is_replay => {
                    let posts = self.orchestrators[index].kept(copy, after);
                    posts.into_iter().for_each(|post| self.send(party, to, post));
                }
                orchestrator::Output::Wait(..)
                | orchestrator::Output::Recall(..)
                | orchestrator::Output::Decide(..)
                | orchestrator::Output::Late(..) => {}
            }
        }
        Ok(())
    }

    fn alarm(&mut self, of: Party, copy: usize, delay: u64, alarm: Alarm) {
        let (life, clock) = match of {
            Party::Reviewer(index) => self.reviewers[index].clock(copy),
            Party::Orchestrator(index) => self.orchestrators[index].clock(copy),
        };
        self.at(delay * clock / 100 + 1, Event::Ring { of, copy, life, alarm });
    }

    fn ring(&mut self, of: Party, copy: usize, life: u32, alarm: Alarm) -> Result<(), String> {
        let alive = match of {
            Party::Reviewer(index) => self.reviewers[index].machine(copy).map(|m| (m.life, m.is_up)),
            Party::Orchestrator(index) => self.orchestrators[index].machine(copy).map(|m| (m.life, m.is_up)),
        };
        if alive != Some((life, true)) {
            return Ok(());
        }
        if matches!(alarm, Alarm::Again) {
            self.alarm(of, copy, 500, Alarm::Again);
        }
        match (of, alarm) {
            (Party::Reviewer(index), alarm) => {
                let input = match alarm {
                    Alarm::Phase(sequence, view, phase) => replica::Input::Expired(sequence, view, phase),
                    Alarm::Reviewed(sequence, digest) => {
                        replica::Input::Reviewed(sequence, digest, Arc::new(self.opinion()))
                    }
                    Alarm::Again | Alarm::Acknowledge(..) => replica::Input::Again,
                };
                self.review_step(index, copy, input)
            }
            (Party::Orchestrator(index), Alarm::Acknowledge(sequence, view)) => {
                self.lead_step(index, copy, orchestrator::Input::Expired(sequence, view))
            }
            (Party::Orchestrator(index), _) => self.lead_step(index, copy, orchestrator::Input::Again),
        }
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

    fn start(&mut self, of: Party, copy: usize) -> Result<(), String> {
        match of {
            Party::Reviewer(index) => {
                let Some(machine) = self.reviewers[index].machine(copy) else { return Ok(()) };
                let (said, waits) = machine.start();
                self.review_out(index, copy, said, true)?;
                self.review_out(index, copy, waits, false)?;
            }
            Party::Orchestrator(index) => {
                let Some(machine) = self.orchestrators[index].machine(copy) else { return Ok(()) };
                let (said, waits) = machine.start();
                self.lead_out(index, copy, said, true)?;
                self.lead_out(index, copy, waits, false)?;
            }
        }
        self.alarm(of, copy, 1, Alarm::Again);
        Ok(())
    }

    fn broadcast(&mut self, from: Party, to: To, post: &Post) {
        let to: Vec<Party> = match to {
            To::One(party) => vec![party],
            To::All => self.parties(),
            To::Reviewers => (0..self.reviewers.len()).map(Party::Reviewer).collect(),
        };
        for to in to {
            if to != from {
                self.send(from, to, post.clone());
            }
        }
    }

    fn send(&mut self, from: Party, to: Party, post: Post) {
        if self.is_calm {
            let delay = self.rng.u64(1..20);
            return self.at(delay, Event::Deliver { from, to, post });
        }
        if self.cut.contains(&(from, to)) || self.rng.f64() < self.network.lost {
            return;
        }
        if self.rng.f64() < self.network.doubled {
            let delay = self.rng.u64(1..=4 * self.network.delay);
            self.at(delay, Event::Deliver { from, to, post: post.clone() });
        }
        let delay = self.rng.u64(1..=self.network.delay);
        self.at(delay, Event::Deliver { from, to, post });
    }
}

/// Checks what an honest one sends in its own name.
fn check(checks: &mut Checks, party: Party, post: &Post) -> Result<(), String> {
    let own = |signed: &Signed| match party {
        Party::Reviewer(index) | Party::Orchestrator(index) => signed.by == index,
    };
    match post {
        Post::Letter(letter) if own(&letter.signed) => checks.says(&letter.signed),
        Post::Letter(letter) => Err(format!("{party:?} sends what is not its own: {letter:?}")),
        Post::Proof(_) | Post::Stable(_) | Post::Have(_) => Ok(()),
    }
}

impl<M: Mind> Member<M> {
    fn copies(&self) -> usize {
        match self {
            Self::Machines(machines) => machines.len(),
            Self::Script(_) => 1,
        }
    }

    fn machine(&mut self, copy: usize) -> Option<&mut Machine<M>> {
        match self {
            Self::Machines(machines) => machines.get_mut(copy),
            Self::Script(_) => None,
        }
    }

    /// Decisions after one that a machine has kept.
    fn kept(&mut self, copy: usize, after: Sequence) -> Vec<Post> {
        let machine = self.machine(copy);
        let kept = machine.into_iter().flat_map(|machine| machine.kept.range(after.saturating_add(1)..));
        kept.take(replica::PROOFS_AT_ONCE).map(|(_, proof)| Post::Proof(proof.clone())).collect()
    }

    fn clock(&self, copy: usize) -> (u32, u64) {
        match self {
            Self::Machines(machines) => machines.get(copy).map_or((0, 100), |m| (m.life, m.clock)),
            Self::Script(_) => (0, 100),
        }
    }
}
