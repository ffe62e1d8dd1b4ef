//! Bytes of strangers are taken or refused: there is no panic, no hang, and no result that a rule forbids.
//!
//! ```text
//!  seeds/<target>/ ──► each seed as it is ──► target ──► taken or refused, as the seed's name says
//!        └──► mutations, by a fixed seed ──────┘  └──► a panic or a hang: the input is kept as a file
//! ```
//!
//! Here the targets run on every toolchain, for 2 seconds each. `CONSENSUS_FUZZ_SECONDS=600` makes that ten minutes, and
//! `CONSENSUS_FUZZ_TARGETS="ballot review"` chooses among them. With a nightly toolchain, `cargo-fuzz` gives the same targets
//! to libFuzzer. `run.sh` is the command for long runs in both ways.
//!
//! The name of a seed begins with `good` if its target takes it, and with `bad` if not. An input that did harm once
//! becomes a seed, so that it is played again for ever. Nothing is written inside the tree.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod mutations;
mod targets;
mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mutations::Mutator;
use targets::{TARGETS, Target};
use watch::{Watch, keep};

/// The figures of one target.
struct TargetTally {
    name: &'static str,
    seconds: f64,
    executions: u64,
    taken: u64,
    /// The input with which it panicked.
    crash: Option<PathBuf>,
}

/// Returns the seeds of a target with their names, in the order of these.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let read = |path: PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    let mut seeds: Vec<(String, Vec<u8>)> = entries.map(|entry| read(entry.unwrap().path())).collect();
    seeds.sort();
    seeds
}

/// Returns how long each target is tried.
fn duration() -> Duration {
    let Ok(text) = std::env::var("CONSENSUS_FUZZ_SECONDS") else { return Duration::from_secs(2) };
    let seconds =
        text.parse().unwrap_or_else(|_| panic!("CONSENSUS_FUZZ_SECONDS is {text}, and is a number"));
    Duration::from_secs(seconds)
}

/// Returns the targets that are tried.
fn chosen() -> Vec<(&'static str, Target)> {
    let Ok(names) = std::env::var("CONSENSUS_FUZZ_TARGETS") else { return TARGETS.to_vec() };
    let known = |name: &str| TARGETS.into_iter().find(|(known, _)| *known == name);
    let find = |name| known(name).unwrap_or_else(|| panic!("there is no target `{name}`"));
    names.split_whitespace().map(find).collect()
}

/// Gives a target its seeds and mutations of them, until its time is over or it panics.
fn play(name: &'static str, target: Target, watch: &Watch) -> TargetTally {
    let (began, duration) = (Instant::now(), duration());
    let mut mutator = Mutator::new(seeds(name).into_iter().map(|(_, bytes)| bytes).collect());
    let mut tally = TargetTally { name, seconds: 0.0, executions: 0, taken: 0, crash: None };
    while tally.executions < 100 || began.elapsed() < duration {
        let input = mutator.next();
        watch.begin(name, &input);
        let done = catch_unwind(AssertUnwindSafe(|| target(&input)));
        watch.end();
        tally.executions += 1;
        match done {
            Ok(false) => {}
            Ok(true) => {
                tally.taken += 1;
                mutator.learn(input);
            }
            Err(_) => {
                tally.crash = Some(keep(name, &input));
                break;
            }
        }
    }
    tally.seconds = began.elapsed().as_secs_f64();
    tally
}

/// Bytes of strangers are taken or refused, and none takes longer than its limit.
#[test]
fn mutated_input_causes_no_crash() {
    let (chosen, next) = (chosen(), AtomicUsize::new(0));
    let tallies = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(chosen.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let watch = Watch::start();
                while let Some((name, target)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tally = play(name, *target, &watch);
                    tallies.lock().unwrap().push(tally);
                }
            });
        }
    });
    println!("{:14} {:>8} {:>12} {:>10} {:>8}", "target", "seconds", "executions", "taken", "crashes");
    let tallies = tallies.into_inner().unwrap();
    for TargetTally { name, seconds, executions, taken, crash } in &tallies {
        println!("{name:14} {seconds:>8.1} {executions:>12} {taken:>10} {:>8}", u8::from(crash.is_some()));
    }
    let crashes: Vec<&PathBuf> = tallies.iter().filter_map(|tally| tally.crash.as_ref()).collect();
    assert!(
        crashes.is_empty(),
        "these inputs do harm; mend the reader, and put them beside the seeds: {crashes:#?}"
    );
    assert_eq!(tallies.len(), chosen.len());
}

/// A seed whose name begins with `good` is taken, and one with `bad` is refused.
#[test]
fn each_seed_matches_its_name() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        for (seed, bytes) in &seeds {
            let is_good = seed.starts_with("good");
            assert!(is_good || seed.starts_with("bad"), "{name}/{seed}: its name says nothing");
            assert_eq!(target(bytes), is_good, "{name}/{seed}");
        }
        let good = seeds.iter().filter(|(seed, _)| seed.starts_with("good")).count();
        assert!(good > 0 && good < seeds.len(), "{name}: some of its seeds are taken, and some are not");
    }
}

#[test]
fn the_same_mutations_come_again() {
    let first = |count| {
        let mut mutator = Mutator::new(vec![b"one".to_vec(), b"{\"two\":2}".to_vec()]);
        std::iter::repeat_with(|| mutator.next()).take(count).collect::<Vec<_>>()
    };
    let inputs = first(1000);
    assert_eq!(inputs, first(1000));
    assert_eq!(inputs[..2], [b"one".to_vec(), b"{\"two\":2}".to_vec()], "the seeds come first");
    let different: std::collections::BTreeSet<&Vec<u8>> = inputs.iter().collect();
    assert!(different.len() > 500, "{} of a thousand differ", different.len());
}
