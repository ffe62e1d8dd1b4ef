//! What a seed says about a world: who is there, who lies, how bad the weather is, and what will happen.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use quorum::proposer::Proposer;
use quorum::replica::Replica;
use quorum::{Change, NodeId, Quorum};

use super::{Alarm, CALM, Story, Weather, World, WorldEvent, WorldMember};
use crate::checks::Checks;
use crate::liars::{LiarKind, Script};
use crate::nodes::{Machine, Mind, Name};

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let is_long = rng.u8(..) < 4;
        let reviewers = if is_long { 4 } else { pick(&mut rng, [4, 4, 7, 10]) };
        let quorum = Quorum::new(reviewers).expect("there are reviewers");
        let orchestrators = rng.usize(1..=3);
        let lying = rng.usize(..=quorum.faults());
        let mut liars: BTreeSet<NodeId> =
            (0..lying).map(|_| NodeId::Reviewer(rng.usize(..reviewers))).collect();
        // One orchestrator at least is honest.
        let honest = rng.usize(..orchestrators);
        liars.extend((0..orchestrators).filter(|at| *at != honest && rng.bool()).map(NodeId::Orchestrator));
        let mut world = Self {
            seed,
            now: 0,
            serial: 0,
            queue: BTreeMap::new(),
            weather: Weather {
                delay: pick(&mut rng, [10, 100, 500]),
                lost: pick(&mut rng, [0.0, 0.05, 0.3]),
                doubled: pick(&mut rng, [0.0, 0.1]),
                deaths: pick(&mut rng, [0.0, 0.005, 0.03]),
            },
            is_calm: false,
            cut: BTreeSet::new(),
            members: BTreeMap::new(),
            approval: pick(&mut rng, [0.5, 0.9, 1.0]),
            checks: Checks::new(quorum, liars.clone()),
            liars,
            submissions: 0,
            owed: BTreeSet::new(),
            story: Story::default(),
            is_traced: std::env::var_os("CONSENSUS_SIM_TRACE").is_some(),
            rng,
        };
        let minds = (0..reviewers)
            .map(|me| (NodeId::Reviewer(me), Mind::Reviewer(Replica::new(Name, me, quorum, orchestrators))));
        let leaders = (0..orchestrators).map(|me| {
            let mind = Proposer::new(Name, me, quorum, orchestrators);
            (NodeId::Orchestrator(me), Mind::Orchestrator(mind))
        });
        for (party, mind) in minds.chain(leaders) {
            let member = world.member(party, &mind, reviewers, orchestrators);
            world.members.insert(party, member);
            for copy in 0..2 {
                world.at(0, WorldEvent::Ring { of: party, copy, life: 0, alarm: Alarm::Again });
            }
        }
        let submitted = if is_long { world.rng.u64(40..100) } else { world.rng.u64(1..=3) };
        for number in 0..submitted {
            // Some come late.
            let at = if world.rng.u8(..) < 30 { CALM + world.rng.u64(..5000) } else { world.rng.u64(..2000) };
            let change = Change::new(&format!("change {number}")).expect("it is short");
            world.at(at, WorldEvent::Submit(change));
            world.submissions += 1;
        }
        for _ in 0..world.rng.usize(..4) {
            let at = world.rng.u64(..4000);
            world.at(at, WorldEvent::Cut);
        }
        for _ in 0..world.rng.usize(..6) {
            let at = world.rng.u64(..2 * CALM);
            world.at(at, WorldEvent::Stir);
        }
        world.at(CALM, WorldEvent::Calm);
        world
    }

    fn member(&mut self, party: NodeId, mind: &Mind, reviewers: usize, orchestrators: usize) -> WorldMember {
        let clock = self.rng.u64(50..200);
        let machine = |forgets, clock| Machine::new(mind.clone(), forgets, clock);
        if !self.liars.contains(&party) {
            return WorldMember::Machines(vec![machine(false, clock)]);
        }
        match self.rng.u8(..4) {
            0 => WorldMember::Script(Script::new(LiarKind::Silent, party, reviewers, orchestrators)),
            1 => WorldMember::Machines(vec![machine(true, clock)]),
            2 => WorldMember::Machines(vec![machine(false, clock), machine(false, 300 - clock)]),
            _ => WorldMember::Script(Script::new(LiarKind::Liar, party, reviewers, orchestrators)),
        }
    }
}

fn pick<T: Copy, const N: usize>(rng: &mut Rng, of: [T; N]) -> T {
    of[rng.usize(..N)]
}
