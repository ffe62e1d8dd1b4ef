//! A server that fails in every known way, against every protocol, on one call or on all of them.
//!
//! In: a table of faults. Out: each run ends in time with exit code 0, 3 or 6, agrees on nothing that no honest reply
//! holds, writes no escape to the terminal, and leaves a record that verifies. A fault that holds a connection open does
//! so for a minute, so that a run that ends in time has ended by itself.

mod answers;
mod broken;
mod faults;
mod misshapen;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::honest::{QUESTION, honest, write_change};
use crate::support::{Finished, Folder, Server, consensus, model};
use crate::sweep::{SERVERS, seed, sweep};
use faults::{Fault, faults};

/// A call ends after two seconds, and is made again once. Nothing else takes longer than it must.
const CONFIG: &str = "retries = 1\n[timeouts]\nconnect_ms = 2000\nfirst_byte_ms = 1000\nidle_ms = 1000\ntotal_ms = 2000\nready_ms = 1000\n";

/// Two attempts, the wait between them, and the calls that do not fail, on a busy machine.
const RUN_MAX: Duration = Duration::from_secs(25);

/// The rosters of runs that are tried, and what each is asked.
const PROTOCOLS: [&[&str]; 5] = [
    &["--roleset", "solver_checker", "--talk", "always", "--prompt", QUESTION],
    &["--roleset", "council_tripartite", "--prompt", QUESTION],
    &["--roleset", "panel_personas", "--members", "analyst,optimist,pragmatist", "--prompt", QUESTION],
    &["--roleset", "reviewers_f1", "--file", "change.diff", "--prompt", "May it be applied?"],
    &["--roleset", "vote_number", "--prompt", QUESTION],
];

/// Where a fault happens.
#[derive(Clone, Copy, Debug)]
enum FaultPlace {
    /// Only in the chat of this number.
    One(usize),
    All,
}

/// Returns the protocols and places of a fault in the order in which they are tried.
fn combinations(fault: usize) -> Vec<(&'static [&'static str], FaultPlace)> {
    let mut draw = Rng::with_seed(seed() ^ (fault as u64) << 32);
    let mut all: Vec<_> = PROTOCOLS
        .iter()
        .flat_map(|words| [(*words, FaultPlace::One(draw.usize(..4))), (*words, FaultPlace::All)])
        .collect();
    draw.shuffle(&mut all);
    all
}

/// Each run ends with a documented exit code and leaves a record that verifies.
#[test]
fn run_ends_in_time_despite_faults() {
    let faults: Vec<Arc<Fault>> = faults().into_iter().map(Arc::new).collect();
    assert!(faults.len() >= 100, "{} faults", faults.len());
    let rounds = SERVERS.of(combinations(0).len());
    let ends = sweep("servers", rounds * faults.len(), 6, |index, _| {
        let fault = &faults[index % faults.len()];
        let (words, place) = combinations(index % faults.len())[index / faults.len()];
        let label = format!("{} on {place:?} of {words:?}", fault.name);
        ended(fault, words, place, &label)
    });
    assert!(["agreed", "no agreement", "failed"].iter().all(|end| ends.contains_key(end)), "{ends:?}");
}

fn ended(fault: &Arc<Fault>, words: &[&str], place: FaultPlace, label: &str) -> &'static str {
    let (chats, own) = (AtomicUsize::new(0), Arc::clone(fault));
    let server = Server::start(move |request| {
        let is_chat = request.path.ends_with("/chat/completions");
        let number = if is_chat { chats.fetch_add(1, Ordering::SeqCst) } else { usize::MAX };
        let is_hit = match place {
            FaultPlace::One(hit) => number == hit,
            FaultPlace::All => is_chat,
        };
        if is_hit { own.answer(&honest(&request.json())) } else { model(honest)(request) }
    });
    let folder = Folder::new();
    write_change(&folder);
    folder.write("consensus.toml", CONFIG);
    let began = Instant::now();
    let run = ["run", "--model", "tiny-model", "--seed", "1", "--base-url", &server.url()].map(str::to_owned);
    let finished = Finished::of(consensus(&folder).args(run).args(words));
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(began.elapsed() < RUN_MAX, "{label}: it took {:?}: {said}", began.elapsed());
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{label}: raw on a terminal: {said:?}");
    let result = folder.result();
    let end = match finished.code {
        0 => {
            let text = result["text"].as_str().unwrap_or_default();
            let is_honest = ["4", "four", "approve"].iter().any(|word| text.starts_with(word));
            // A sample of a vote is free text, which has no form that damage to its beginning would break.
            let is_free = words.contains(&"vote_number");
            let has_replies = fault.holds_the_reply || matches!(place, FaultPlace::One(_)) || is_free;
            assert!(is_honest && has_replies, "{label}: it agrees on {text:?}: {said}");
            "agreed"
        }
        3 => "no agreement",
        6 => "failed",
        other => panic!("{label}: exit code {other}: {said}"),
    };
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    end
}
