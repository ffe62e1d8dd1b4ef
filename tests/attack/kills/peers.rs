//! Reviewers in processes of their own: the orchestrator or one of them is killed in the midst of a decision, and starts again.
//!
//! In: four reviewers, and a moment of an undisturbed decision. Out: the change has landed once, its record verifies, no reviewer is
//! accused, and no reviewer has asked for a reply again that was durable.

use std::process::Stdio;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::{LOOK, PATIENCE, Started, asked, records};
use crate::support::{Finished, House, NAMES, Serving, consensus};
use crate::sweep::{KILLED_PEERS, sweep};

/// The words by which each reviewer is started: its model takes a moment, and so does what it fetches.
const WORDS: [&str; 6] = ["--mock-script", "slow.jsonl", "--fetch", "./repo", "--verify", "test -f sum.py"];

const PROPOSE: [&str; 4] = ["--change", "fix", "-o", "proof.json"];

/// A decision under way.
struct PeerCase {
    house: House,
    base: String,
    serving: Vec<Serving>,
}

impl PeerCase {
    fn new() -> Self {
        let house = House::new();
        let slow = "{\"delay_ms\": 20, \"policy\": \"honest\", \"answer\": \"approve\"}\n";
        house.project.folder.write("slow.jsonl", slow);
        let serving = NAMES.iter().map(|name| house.serve(name, &WORDS)).collect();
        let base = house.project.main();
        Self { house, base, serving }
    }

    fn propose(&self) -> Started {
        Started::by(self.house.propose(&PROPOSE).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Asserts that the change has landed once, and that everything about it verifies.
    fn has_landed(&self, label: &str) {
        let project = &self.house.project;
        let tree = |name: &str| project.git(&["rev-parse", &format!("{name}^{{tree}}")]);
        assert_eq!(project.git(&["rev-list", "--count", &format!("{}..main", self.base)]), "1", "{label}");
        assert_eq!(tree("main"), tree("fix"), "{label}");
        let verify = ["verify", "proof.json", "--keys", "of/Quality"];
        Finished::of(consensus(&project.folder).args(verify)).exits(0);
        for name in NAMES {
            let of = self.house.path(&format!("of/{name}"));
            let decisions = std::fs::read_dir(of.join("decisions")).into_iter().flatten();
            for decision in decisions.map(|entry| entry.unwrap().path()) {
                let entries = std::fs::read_dir(&decision).unwrap().map(|entry| entry.unwrap().file_name());
                let accused = entries.filter(|file| file.to_string_lossy().starts_with("accusation"));
                assert_eq!(accused.count(), 0, "{label}: {name} has written an accusation");
            }
            for run in std::fs::read_dir(of.join("runs")).into_iter().flatten() {
                asked(&records(&run.unwrap().path().join("journal.jsonl")));
            }
        }
    }
}

/// Waits for a process, and returns its exit code.
fn ended(child: &mut Started, until: Duration) -> Option<i32> {
    let began = Instant::now();
    loop {
        match child.code() {
            Some(code) => return Some(code),
            None if began.elapsed() >= until => return None,
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Kills one party at this moment of its decision, and has it start again.
fn disturbed(is_orchestrator: bool, at: Duration, draw: &mut Rng) -> &'static str {
    let mut decision = PeerCase::new();
    let mut proposer = decision.propose();
    let has_ended = ended(&mut proposer, at).is_some();
    let end = if is_orchestrator {
        proposer.kill();
        // Where the change has landed by then, the command says so.
        decision.house.said(&PROPOSE, 0);
        "landed without the orchestrator"
    } else {
        let seat = draw.usize(..NAMES.len());
        decision.serving.remove(seat).kill();
        decision.serving.insert(seat, decision.house.serve(NAMES[seat], &WORDS));
        let code = ended(&mut proposer, PATIENCE);
        assert_eq!(code, Some(0), "killed {} at {at:?}", NAMES[seat]);
        "landed without a reviewer"
    };
    decision.has_landed(&format!("{end}, at {at:?}"));
    if has_ended { "had landed" } else { end }
}

#[test]
fn decision_lands_once_despite_killed_peer() {
    let decision = PeerCase::new();
    let began = Instant::now();
    assert_eq!(ended(&mut decision.propose(), PATIENCE), Some(0));
    let life = began.elapsed();
    decision.has_landed("undisturbed");
    drop(decision);
    let ends = sweep("kills, peers", KILLED_PEERS.of(usize::MAX), 1, |index, draw| {
        disturbed(index % 2 == 0, life.mul_f64(draw.f64()), draw)
    });
    assert!(ends.keys().any(|end| end.starts_with("landed without")), "{ends:?}");
}
