//! What all sweeps share: their sizes, their seed, the play of drawn cases on a few threads, and drawn places in JSON values.
//!
//! In: a number of cases, and a function that tries one of them and names what came of it. Out: how often each end came,
//! and one line for people. A case draws from its own seed alone, so that it is the same on every machine and in
//! every order. A case that fails stops the sweep and names its number and the seed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use fastrand::Rng;
use serde_json::Value;

/// How many cases a sweep tries.
pub(crate) struct Size {
    /// In an ordinary run of the tests.
    pub(crate) bounded: usize,
    /// With `CONSENSUS_ATTACKS=full`.
    pub(crate) full: usize,
}

pub(crate) const REPLIES: Size = Size { bounded: 120, full: 728 };
pub(crate) const TAMPERED_RUNS: Size = Size { bounded: 300, full: 1346 };
pub(crate) const TAMPERED_BATCHES: Size = Size { bounded: 120, full: 416 };

/// How often each fault is tried. The full size is with every protocol, on one call and on all.
pub(crate) const SERVERS: Size = Size { bounded: 1, full: 8 };

pub(crate) const KILLED_RUNS: Size = Size { bounded: 96, full: 324 };
pub(crate) const KILLED_BATCHES: Size = Size { bounded: 24, full: 60 };
pub(crate) const KILLED_APPROVALS: Size = Size { bounded: 24, full: 60 };
pub(crate) const KILLED_PEERS: Size = Size { bounded: 10, full: 70 };
pub(crate) const KILLED_SERVERS: Size = Size { bounded: 8, full: 30 };

impl Size {
    /// Returns how many cases are wanted of those that there are.
    pub(crate) fn of(&self, all: usize) -> usize {
        let wanted = std::env::var("CONSENSUS_ATTACKS").unwrap_or_default();
        assert!(["", "full"].contains(&wanted.as_str()), "CONSENSUS_ATTACKS is {wanted}, and can be `full`");
        all.min(if wanted == "full" { self.full } else { self.bounded })
    }
}

/// Returns the seed that all cases are drawn from.
pub(crate) fn seed() -> u64 {
    let text = std::env::var("CONSENSUS_ATTACKS_SEED").unwrap_or_else(|_| "1".to_owned());
    text.parse().unwrap_or_else(|_| panic!("CONSENSUS_ATTACKS_SEED is {text}, and should be a number"))
}

/// What became of the cases, and how often.
pub(crate) type Ends = BTreeMap<&'static str, usize>;

/// Names the case that fails, and stops the others.
struct CaseAlarm<'a> {
    is_lost: &'a AtomicBool,
    case: String,
}

impl Drop for CaseAlarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.is_lost.store(true, Ordering::SeqCst);
            eprintln!("it was {}", self.case);
        }
    }
}

/// Tries each case once, so many at a time, and prints one line.
pub(crate) fn sweep(
    name: &str,
    count: usize,
    at_once: usize,
    case: impl Fn(usize, &mut Rng) -> &'static str + Sync,
) -> Ends {
    let (seed, began) = (seed(), Instant::now());
    let (next, is_lost, ends) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Ends::new()));
    let work = || {
        while !is_lost.load(Ordering::SeqCst) {
            let index = next.fetch_add(1, Ordering::SeqCst);
            if index >= count {
                return;
            }
            let label = format!("case {index} of {name} with CONSENSUS_ATTACKS_SEED={seed}");
            let _alarm = CaseAlarm { is_lost: &is_lost, case: label };
            let end = case(index, &mut Rng::with_seed(seed.wrapping_mul(1 << 32).wrapping_add(index as u64)));
            *ends.lock().unwrap().entry(end).or_default() += 1;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(work);
        }
    });
    let ends = ends.into_inner().unwrap();
    let counts: Vec<String> = ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
    println!(
        "{name}: {count} cases, {:.1} s, seed {seed}: {}",
        began.elapsed().as_secs_f64(),
        counts.join(", ")
    );
    ends
}

/// Returns one of these.
pub(crate) fn one_of<'a, T>(draw: &mut Rng, all: &'a [T]) -> &'a T {
    &all[draw.usize(..all.len())]
}

/// Returns the places of all values below this one, as JSON pointers.
pub(crate) fn places(value: &Value) -> Vec<String> {
    let below = |name: &str, value: &Value| {
        let place = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let deeper = places(value).into_iter().map(|deeper| format!("{place}{deeper}")).collect::<Vec<_>>();
        std::iter::once(place.clone()).chain(deeper).collect::<Vec<_>>()
    };
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(name, value)| below(name, value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(at, value)| below(&at.to_string(), value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Returns one of all places.
pub(crate) fn place_in(value: &Value, draw: &mut Rng) -> Option<String> {
    let found = places(value);
    (!found.is_empty()).then(|| one_of(draw, &found).clone())
}
