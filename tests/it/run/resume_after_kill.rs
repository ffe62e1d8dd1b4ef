//! SIGKILL before and after every journal write and every HTTP call: the run resumes to the same
//! result, and no reply that was durable is asked for again.
//!
//! The process that is killed is this test binary, run again to drive one run with an observer that
//! kills it at the n-th moment. The process that resumes is the real program.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use consensus::engine::{Engine, RunBuilder, RunEvent, RunObserver, StopRequest};
use consensus::journal::RunSpec;
use serde_json::Value;

use crate::support::{
    Act, Finished, Folder, READER, Request, SENSIBLE, Server, TALK, consensus, http, mask, model,
};

const RUN: &str = "kill-sweep";
const DIR: &str = "CONSENSUS_IT_KILL_DIR";
const AT: &str = "CONSENSUS_IT_KILL_AT";

/// Counts moments and kills this process at one of them.
struct Killer {
    left: Cell<usize>,
}

impl RunObserver for Killer {
    fn on_event(&self, event: RunEvent<'_>) {
        match event {
            RunEvent::Writing
            | RunEvent::Written(_)
            | RunEvent::Calling { .. }
            | RunEvent::Answered { .. } => {}
            RunEvent::Streaming { .. }
            | RunEvent::Again { .. }
            | RunEvent::Failed { .. }
            | RunEvent::Remarked { .. }
            | RunEvent::Lost { .. }
            | RunEvent::Cancelled { .. }
            | RunEvent::Executing { .. }
            | RunEvent::Executed { .. }
            | RunEvent::Stopping { .. } => return,
        }
        if self.left.get() == 0 {
            let own = std::process::id().to_string();
            let _ = Command::new("kill").args(["-KILL", &own]).status();
            loop {
                std::thread::park();
            }
        }
        self.left.set(self.left.get() - 1);
    }
}

/// The process that is killed; does nothing when the tests are run as usual.
#[test]
fn child() {
    let (Some(dir), Ok(at)) = (std::env::var_os(DIR), std::env::var(AT)) else { return };
    let dir = PathBuf::from(dir);
    let spec: RunSpec = serde_json::from_slice(&std::fs::read(dir.join("opened.json")).unwrap()).unwrap();
    let prepared = RunBuilder::new(spec.setup).unwrap().build(spec.endpoints, spec.limits);
    let killer = Killer { left: Cell::new(at.parse().unwrap()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (_keep, stop) = tokio::sync::watch::channel(StopRequest::None);
        let mut engine = Engine::start(&dir.join("runs").join(RUN), RUN, prepared, &killer).unwrap();
        engine.run(stop).await.unwrap();
    });
}

/// Returns how many calls were replied to, by call id, failing if any was twice.
fn replied(dir: &Path) -> usize {
    let journal = std::fs::read_to_string(dir.join("journal.jsonl")).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls: Vec<String> = records
        .filter(|r| r["event"]["type"] == "replied")
        .map(|r| r["event"]["call"].as_str().unwrap().to_owned())
        .collect();
    let mut distinct = calls.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), calls.len(), "a call was replied to twice: {calls:?}");
    calls.len()
}

/// The kill comes at each journal write and each model call in turn.
#[test]
fn killed_run_resumes_to_same_result() {
    for (roleset, at_once) in [
        (["writer_physicist"].as_slice(), 2),
        (&["council_tripartite"], 2),
        (&["panel_personas", "--members", "analyst,optimist,pragmatist"], 3),
        (&["vote_number", "--stop", "none", "--samples-max", "9"], 1),
    ] {
        kill_at_every_moment(SENSIBLE, roleset, at_once);
    }
}

/// The resumed run continues in the middle of the pieces and comes to the same result.
#[test]
fn run_killed_while_reading_pieces_resumes() {
    let seats = ["panel_personas", "--members", "analyst,pragmatist", "--thinking", "none"];
    let pieces = ["-f", "book.txt", "--map-reduce", "--piece-tokens", "200", "--pieces-at-once", "2"];
    // Two pieces at once, each read by two.
    kill_at_every_moment(READER, &[&seats[..], &pieces].concat(), 4);
}

/// Kills a run of this roleset, which has at most so many calls in the air at once.
fn kill_at_every_moment(say: fn(&Value) -> String, roleset: &[&str], at_once: usize) {
    let server = Server::start(model(say));
    let whole = Folder::new();
    let paragraph = "The harbour lies in the north, and there is ice in winter. ".repeat(8);
    let facts =
        ["was lit for the first time in 1877", "was kept by Ottilie Brandt", "burned rape oil until 1902"];
    let book: Vec<String> =
        facts.iter().map(|fact| format!("{paragraph}\n\nFACT The lighthouse {fact}.\n")).collect();
    whole.write("book.txt", &book.join("\n"));
    let run = ["run", "--model", "tiny-model", "--seed", "1", "--prompt", "How much is 2+2?", "--roleset"];
    Finished::of(consensus(&whole).args(run).args(roleset).args(["--base-url", &server.url()])).exits(0);
    let expected = mask(&std::fs::read_to_string(whole.run().join("result.json")).unwrap());
    let calls = server.chats().len();
    assert!(calls >= 8, "the run is long enough to be worth killing: {calls} calls");
    let journal = std::fs::read_to_string(whole.run().join("journal.jsonl")).unwrap();
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let opened = {
        let mut opened = first["event"].clone();
        opened.as_object_mut().unwrap().shift_remove("type");
        opened.to_string()
    };
    // Two moments for each record and two for each call.
    let moments = 2 * journal.lines().count() + 2 * calls;
    let mut at = 0;
    loop {
        let folder = Folder::new();
        folder.write("opened.json", &opened);
        let before = server.chats().len();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "run::resume_after_kill::child", "--nocapture"])
            .env(DIR, folder.path())
            .env(AT, at.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        if status.success() {
            break;
        }
        let dir = folder.path().join("runs").join(RUN);
        let written = std::fs::metadata(dir.join("journal.jsonl")).map_or(0, |m| m.len());
        if written == 0 {
            // Nothing was recorded, so nothing was asked.
            assert_eq!(server.chats().len(), before, "killed at {at}");
        } else {
            Finished::of(consensus(&folder).args(["resume", RUN])).exits(0);
            let result = mask(&std::fs::read_to_string(dir.join("result.json")).unwrap());
            assert_eq!(result, expected, "killed at {at}");
            let verified =
                Finished::of(consensus(&folder).args(["verify", RUN, "--format", "json"])).exits(0);
            let verified: Value = serde_json::from_str(&verified.stdout).unwrap();
            let lost = usize::try_from(verified["lost_calls"].as_u64().unwrap()).unwrap();
            assert_eq!(replied(&dir), calls, "killed at {at}");
            let asked = server.chats().len() - before;
            assert!(
                asked <= calls + lost && lost <= at_once,
                "killed at {at}: {asked} requests, {lost} lost"
            );
        }
        at += 1;
        assert!(at <= moments, "more moments than records and calls account for");
    }
    assert!(at >= moments - 4, "{at} of {moments} moments were tried");
}

/// The run ends as interrupted, and the reply in flight is on record.
#[test]
fn first_ctrl_c_finishes_calls_in_flight() {
    let server = Server::start(model(SENSIBLE));
    let folder = Folder::new();
    // Each reply takes a moment, so that the signal finds a call in the air.
    let gate = std::sync::Arc::new(std::sync::Barrier::new(2));
    let (reached, waiting) = (gate.clone(), std::sync::atomic::AtomicBool::new(true));
    let slow = Server::start(move |request| {
        if waiting.swap(false, std::sync::atomic::Ordering::SeqCst) {
            reached.wait();
            reached.wait();
        }
        model(SENSIBLE)(request)
    });
    let args = ["run", "--model", "tiny-model", "--seed", "1", "--prompt", "2+2?", "--base-url"];
    let child = consensus(&folder)
        .args(args)
        .arg(slow.url())
        .args(TALK)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    gate.wait();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    // The program says on stderr that it has understood; only then is the reply let go.
    let mut child = child;
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("finishing calls in flight") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut stderr, &mut line).unwrap() > 0, "it never said so");
    }
    gate.wait();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert_eq!(folder.result()["outcome"], "interrupted");
    assert!(replied(&folder.run()) >= 1, "the reply in the air was kept");
    drop(slow);
    drop(server);
}

#[test]
fn first_ctrl_c_repeats_no_failed_call() {
    let busy = Server::start(|_: &Request| {
        vec![Act::Send(http("429 Too Many Requests", "retry-after: 100\r\n", b"{}"))]
    });
    let folder = Folder::new();
    let mut child = consensus(&folder)
        .args(["run", "--model", "tiny-model", "--prompt", "2+2?", "--base-url"])
        .arg(busy.url())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut story = std::io::BufRead::lines(stderr).map(Result::unwrap);
    // Both agents wait for their next attempt; the program reports that once.
    assert!(story.by_ref().any(|line| line.contains("; trying again")));
    while busy.chats().len() < 2 {
        std::thread::yield_now();
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(story.any(|line| line.contains("interrupted")));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(busy.chats().len(), 2);
}
