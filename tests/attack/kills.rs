//! SIGKILL at any moment: the process that continues the work comes to the end that an undisturbed run has.
//!
//! In: a process, and a moment that is drawn from the life of an undisturbed one. Out: the same result, no reply asked for
//! again that was durable, no request that no record knows of, records that verify, and an empty temp folder. The
//! moments here are drawn; `resume_after_kill` and `crash_while_landing` try every one of a kind.

mod approvals;
mod batches;
mod peers;
mod runs;
mod servers;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::Value;

use crate::support::{Act, Folder, Server, model};

/// How long a model takes for a reply, so that kills fall between requests too.
const REPLY: Duration = Duration::from_millis(4);

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often a condition is looked at that another process brings about.
const LOOK: Duration = Duration::from_micros(200);

/// A model server that counts its chats.
struct CountingServer {
    server: Server,
    chats: Arc<AtomicUsize>,
}

impl CountingServer {
    fn new(say: fn(&Value) -> String) -> Self {
        let chats: Arc<AtomicUsize> = Arc::default();
        let seen = Arc::clone(&chats);
        let server = Server::start(move |request| {
            if request.path.ends_with("/chat/completions") {
                seen.fetch_add(1, Ordering::SeqCst);
            }
            std::iter::once(Act::Pause(REPLY)).chain(model(say)(request)).collect()
        });
        Self { server, chats }
    }

    fn chats(&self) -> usize {
        self.chats.load(Ordering::SeqCst)
    }

    /// Returns a text without what differs between two servers.
    fn mask(&self, text: &str) -> String {
        text.replace(&self.server.url(), "the server")
    }
}

/// A process that is gone when it is dropped.
struct Started(Child);

impl Started {
    fn by(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    fn kill(&mut self) {
        // One that has ended by itself cannot be killed.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }

    /// Returns the exit code of a process that has ended.
    fn code(&mut self) -> Option<i32> {
        self.0.try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A moment in the life of a process: after so many chats, and then after this time.
#[derive(Clone, Copy, Debug)]
struct Moment {
    chats: usize,
    then: Duration,
}

/// When an undisturbed process made its chats, and when it ended.
#[derive(Debug)]
struct ProcessLife {
    chats: Vec<Duration>,
    whole: Duration,
}

impl ProcessLife {
    /// Watches a process until it ends.
    fn of(child: &mut Started, server: &CountingServer) -> Self {
        let (began, before) = (Instant::now(), server.chats());
        let mut chats = Vec::new();
        while child.code().is_none() {
            let new = server.chats() - before - chats.len();
            chats.extend(std::iter::repeat_n(began.elapsed(), new));
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(LOOK);
        }
        Self { chats, whole: began.elapsed() }
    }

    /// Draws a moment, each as likely as any other.
    fn moment(&self, draw: &mut Rng) -> Moment {
        let at = self.whole.mul_f64(draw.f64());
        let chats = self.chats.iter().filter(|chat| **chat <= at).count();
        let last = chats.checked_sub(1).map_or(Duration::ZERO, |last| self.chats[last]);
        Moment { chats, then: at.saturating_sub(last) }
    }
}

/// Kills a process at a moment; returns false if it has ended before.
fn killed(child: &mut Started, server: &CountingServer, moment: Moment) -> bool {
    let (began, before) = (Instant::now(), server.chats());
    let mut reached = None;
    while child.code().is_none() {
        if server.chats() >= before + moment.chats {
            let since: Instant = *reached.get_or_insert_with(Instant::now);
            if since.elapsed() >= moment.then {
                child.kill();
                return true;
            }
        }
        assert!(began.elapsed() < PATIENCE, "it neither ends nor asks");
        std::thread::sleep(LOOK);
    }
    false
}

/// Returns the whole records of a journal, without a line that a kill has torn.
fn records(journal: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(journal).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asserts that no call was replied to twice or asked for again after its reply. Returns how many were asked.
fn asked(records: &[Value]) -> usize {
    let (mut replied, mut asked) = (BTreeSet::new(), 0);
    for record in records {
        let call = || format!("{} {}", record["run"], record["event"]["call"]);
        match record["event"]["type"].as_str() {
            Some("replied") => assert!(replied.insert(call()), "it was replied to twice: {record}"),
            Some("asked") => {
                asked += 1;
                assert!(!replied.contains(&call()), "it was asked for after its reply: {record}");
            }
            Some(_) | None => {}
        }
    }
    asked
}

/// Returns the temp folder that is given to processes here.
fn temp(folder: &Folder) -> std::path::PathBuf {
    let temp = folder.path().join("temp");
    std::fs::create_dir_all(&temp).unwrap();
    temp
}

/// Waits until nothing is left in the temp folder: the process that guards a command outlives a killed one for a moment.
fn is_emptied(folder: &Folder) {
    let (temp, began) = (temp(folder), Instant::now());
    while let Some(left) = std::fs::read_dir(&temp).unwrap().next() {
        assert!(began.elapsed() < PATIENCE, "it is left in the temp folder: {left:?}");
        std::thread::sleep(LOOK);
    }
}
