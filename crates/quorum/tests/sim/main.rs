//! Schedules of `approval`, drawn from a seed: the program's own reviewers and orchestrators in a world without clocks,
//! threads or sockets, where everything that can go wrong does.
//!
//! ```text
//! network    late, lost, doubled, out of order; cut in one direction or both, and mended
//! machines   die between writing down and sending, with the last line torn off, and start again; their clocks are wrong
//! liars      are silent, say different things to different people, forget, run twice under one name, send again what others said
//! ```
//!
//! Then the world grows calm: nothing is lost any more and no node dies, while the liars go on. What must hold always is
//! in `checks`; what must come in the end is a decision on every change, known to every honest reviewer.
//!
//! In this crate, `cargo test --release --test sim` plays the first schedules, `CONSENSUS_SIM_SEEDS=0..1000000` as many as it says. A seed
//! gives the same schedule on every machine: `CONSENSUS_SIM_SEEDS=17..18 CONSENSUS_SIM_TRACE=1` tells what happens in one.

mod checks;
mod liars;
mod nodes;
mod world;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use world::{Story, World};

/// Stops all workers when one of them fails.
struct WorkerAlarm<'a>(&'a AtomicBool);

impl Drop for WorkerAlarm<'_> {
    fn drop(&mut self) {
        self.0.fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("CONSENSUS_SIM_SEEDS") else { return 0..300 };
    let bounds = text.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    bounds.unwrap_or_else(|| panic!("CONSENSUS_SIM_SEEDS is {text}, and should be such as 0..1000"))
}

/// Every schedule ends in decisions that all honest reviewers know.
#[test]
fn every_schedule_is_safe_and_decides() {
    let (seeds, began) = (seeds(), Instant::now());
    let is_lost = AtomicBool::new(false);
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let stories: Vec<Story> = std::thread::scope(|scope| {
        let play = |worker: u64| {
            let mut all = Story::default();
            let _alarm = WorkerAlarm(&is_lost);
            let own = seeds.clone().filter(|seed| seed % workers == worker);
            for seed in own.take_while(|_| !is_lost.load(Ordering::Relaxed)) {
                all.add(&World::new(seed).play());
            }
            all
        };
        let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(move || play(worker))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a schedule failed; its seed is above"))
            .collect()
    });
    let mut story = Story::default();
    for other in &stories {
        story.add(other);
    }
    let (count, seconds) = (seeds.end - seeds.start, began.elapsed().as_secs_f64());
    println!("{count} schedules in {seconds:.1} s: {story:?}");
    if count >= 300 {
        // A world in which nothing happens would prove nothing.
        let all = [
            story.changes,
            story.nothings,
            story.returned,
            story.crashes,
            story.torn,
            story.later_views,
            story.accusations,
            story.learned,
            story.checkpoints,
        ];
        assert!(all.iter().all(|count| *count > 0), "{story:?}");
    }
}

#[test]
fn a_seed_gives_the_same_schedule_again() {
    for seed in 0..20 {
        assert_eq!(World::new(seed).play(), World::new(seed).play(), "seed {seed}");
    }
}
