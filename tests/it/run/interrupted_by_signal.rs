//! Ctrl-C and SIGTERM: a command hears them whatever it does, and never ends as if none had come.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use consensus::engine::{Engine, RunBuilder, RunEvent, RunObserver, StopRequest};
use consensus::journal::RunSpec;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::Outcome;
use serde_json::Value;
use tokio::sync::watch;

use crate::support::{Act, Finished, Folder, Request, SENSIBLE, Server, TALK, consensus, model};

/// How long a process may take to come to the state that a test waits for.
const SOON: Duration = Duration::from_mins(1);

/// Makes a FIFO in a folder.
fn fifo(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

fn run(folder: &Folder, words: &[&str]) -> Command {
    let mut command = consensus(folder);
    command.args(["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--seed", "1"]).args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Opens a FIFO for writing, which succeeds only once a reader has opened it.
fn once_it_is_read(fifo: &Path) -> File {
    File::options().write(true).open(fifo).unwrap()
}

/// Opens a FIFO for writing without waiting for its reader.
fn without_waiting() -> OpenOptions {
    let mut options = File::options();
    options.write(true).custom_flags(nix::libc::O_NONBLOCK);
    options
}

/// Waits until a FIFO has no reader any more.
fn until_it_was_read(fifo: &Path) {
    let began = Instant::now();
    while without_waiting().open(fifo).is_ok() {
        assert!(began.elapsed() < SOON, "it is never read to its end");
        std::thread::yield_now();
    }
}

/// Waits for the kernel to say that the process has a handler for a signal.
#[cfg(target_os = "linux")]
fn until_it_listens(child: &Child) {
    let (status, began) = (format!("/proc/{}/status", child.id()), Instant::now());
    // The bit of SIGTERM, which is number 15.
    let term = 1_u64 << 14;
    while began.elapsed() < SOON {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & term != 0 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("it never listens");
}

#[track_caller]
fn is_interrupted_before_it_began(child: Child) {
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("nothing was asked"), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn signal_interrupts_reading_a_pipe() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = Folder::new();
        let path = fifo(&folder, "pipe");
        let child = run(&folder, &["-f", "pipe"]).spawn().unwrap();
        // It reads, and will not come to an end of the file.
        let writer = once_it_is_read(&path);
        send(&child, signal);
        is_interrupted_before_it_began(child);
        drop(writer);
        assert!(!folder.path().join("runs").exists(), "nothing is left of it");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn signal_interrupts_pipe_without_writer() {
    for words in [&["-f", "pipe"][..], &["--roleset", "./pipe"], &["--prompt-file", "pipe", "-o", "copy"]] {
        let folder = Folder::new();
        fifo(&folder, "pipe");
        let mut command = consensus(&folder);
        command.args(["run", "--mock", "--answer", "4"]).args(words);
        if !words.contains(&"--prompt-file") {
            command.args(["--prompt", "2+2?"]);
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until_it_listens(&child);
        send(&child, Signal::SIGTERM);
        is_interrupted_before_it_began(child);
    }
}

#[test]
fn deadline_ends_wait_for_a_pipe() {
    let folder = Folder::new();
    fifo(&folder, "pipe");
    let late =
        Finished::of(&mut run(&folder, &["-f", "pipe", "--deadline", "100ms", "--format", "json"])).exits(5);
    assert!(late.stderr.contains("the deadline passed before the run began"), "{}", late.stderr);
    let error: Value = serde_json::from_str(&late.stdout).unwrap();
    assert_eq!(error["error"]["exit"], 5);
}

/// A signal during the redaction of a long document ends the run with exit 130.
#[test]
fn signal_interrupts_long_redaction() {
    let folder = Folder::new();
    let path = fifo(&folder, "pipe");
    let child = run(&folder, &["--redact", "-f", "pipe"]).spawn().unwrap();
    let mut writer = once_it_is_read(&path);
    // Each line has an address of its own, and takes its time.
    let lines: Vec<String> = (0..300_000).map(|n| format!("Write to ann{n}@example.org.\n")).collect();
    writer.write_all(lines.concat().as_bytes()).unwrap();
    drop(writer);
    until_it_was_read(&path);
    // From here on it is redacted.
    send(&child, Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn signal_interrupts_batch_awaiting_tasks() {
    let folder = Folder::new();
    let path = fifo(&folder, "tasks");
    let mut batch = consensus(&folder);
    batch.args(["batch", "tasks", "--output", "out", "--mock", "--answer", "4"]);
    let child = batch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let writer = once_it_is_read(&path);
    send(&child, Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    drop(writer);
}

#[test]
fn pipes_are_documents_like_any_other() {
    for (words, stdin) in [("<(printf four)", ""), ("/dev/stdin", "four"), ("-", "four")] {
        let folder = Folder::new();
        let line = format!("exec \"$0\" run --mock --answer 4 --prompt '2+2?' -f {words}");
        let plain = consensus(&folder);
        let program = plain.get_program().to_owned();
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).arg(program).current_dir(folder.path()).stdin(Stdio::piped());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
        let opened: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
        assert_eq!(opened["event"]["setup"]["task"]["documents"][0]["text"], "four", "{opened}");
    }
}

/// Starts a run of which one call is in the air. The call is not answered before the barrier is passed again.
fn working(folder: &Folder) -> (Server, Child, Arc<Barrier>) {
    let gate = Arc::new(Barrier::new(2));
    let (held, is_first) = (Arc::clone(&gate), AtomicBool::new(true));
    let server = Server::start(move |request: &Request| {
        if request.path.ends_with("/chat/completions") && is_first.swap(false, Ordering::SeqCst) {
            held.wait();
            held.wait();
        }
        model(SENSIBLE)(request)
    });
    let mut command = consensus(folder);
    command.args([
        "run",
        "--model",
        "tiny-model",
        "--seed",
        "1",
        "--prompt",
        "2+2?",
        "--base-url",
        &server.url(),
    ]);
    command.args(TALK);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    gate.wait();
    (server, child, gate)
}

/// A run that a second signal ends with a call still open can be resumed.
#[test]
fn second_signal_ends_run_at_once() {
    let folder = Folder::new();
    let (server, mut child, gate) = working(&folder);
    let mut story = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    send(&child, Signal::SIGTERM);
    assert!(story.any(|line| line.contains("press Ctrl-C again to stop now")));
    send(&child, Signal::SIGTERM);
    assert!(story.any(|line| line.contains("stopping now")));
    // The call is still in the air.
    assert_eq!(child.wait().unwrap().code(), Some(130));
    gate.wait();
    Finished::of(consensus(&folder).args(["resume", "--last"])).exits(0);
    assert_eq!(folder.result()["outcome"], "agreed");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    drop(server);
}

/// Two signals end a run that waits for the reader of its story.
#[test]
#[cfg(target_os = "linux")]
fn two_signals_end_run_blocked_on_stderr() {
    let folder = Folder::new();
    let path = fifo(&folder, "story");
    // Both ends are open, so that neither waits, and it is full: the first line of the story finds no room.
    let mut full = without_waiting().read(true).open(&path).unwrap();
    for block in [4096, 1] {
        while let Ok(1..) = full.write(&vec![b'x'; block]) {}
    }
    let story = File::options().write(true).open(&path).unwrap();
    let mut child = run(&folder, &[]).stderr(story).spawn().unwrap();
    until_it_listens(&child);
    send(&child, Signal::SIGINT);
    send(&child, Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn interrupted_run_keeps_paid_replies() {
    let folder = Folder::new();
    let (server, mut child, gate) = working(&folder);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    send(&child, Signal::SIGTERM);
    let mut line = String::new();
    while !line.contains("finishing calls in flight") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it never said so");
    }
    gate.wait();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    let replied = |folder: &Folder| {
        std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap().matches("\"replied\"").count()
    };
    let before = replied(&folder);
    assert!(before >= 1, "the reply in the air was kept");
    Finished::of(consensus(&folder).args(["resume", "--last"])).exits(0);
    assert_eq!(folder.result()["outcome"], "agreed");
    assert!(replied(&folder) > before);
    drop(server);
}

#[test]
fn no_roleset_is_read_without_end() {
    let folder = Folder::new();
    let refused = Finished::of(&mut run(&folder, &["--roleset", "/dev/zero"])).exits(2);
    assert!(refused.stderr.contains("longer than 1048576 bytes"), "{}", refused.stderr);
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("consensus.toml")).unwrap();
    let refused = Finished::of(&mut run(&folder, &[])).exits(2);
    assert!(refused.stderr.contains("it is not a regular file"), "{}", refused.stderr);
}

/// Asks the run to stop as a reply is taken, and counts how often the run says that it stops.
struct StopAsker {
    sender: watch::Sender<StopRequest>,
    stops: Cell<usize>,
}

impl RunObserver for StopAsker {
    fn on_event(&self, event: RunEvent<'_>) {
        match event {
            RunEvent::Answered { .. } => {
                self.sender.send_replace(StopRequest::Finish);
            }
            RunEvent::Stopping { at_once } => {
                assert!(!at_once);
                self.stops.set(self.stops.get() + 1);
            }
            RunEvent::Writing
            | RunEvent::Written(_)
            | RunEvent::Calling { .. }
            | RunEvent::Streaming { .. }
            | RunEvent::Again { .. }
            | RunEvent::Failed { .. }
            | RunEvent::Remarked { .. }
            | RunEvent::Lost { .. }
            | RunEvent::Executing { .. }
            | RunEvent::Executed { .. }
            | RunEvent::Cancelled { .. } => {}
        }
    }
}

/// A run that is asked to stop while it takes a reply reports once that it stops.
#[test]
fn stop_request_is_reported_once() {
    let count = AtomicUsize::new(0);
    // Of two calls that are made at once, one is still open when the other is answered.
    let server = Server::start(move |request: &Request| {
        let is_slow = count.fetch_add(1, Ordering::SeqCst) % 2 == 1;
        let pause = Act::Pause(Duration::from_millis(if is_slow { 200 } else { 0 }));
        std::iter::once(pause).chain(model(SENSIBLE)(request)).collect()
    });
    let folder = Folder::new();
    let words =
        ["run", "--model", "tiny-model", "--seed", "1", "--prompt", "2+2?", "--base-url", &server.url()];
    Finished::of(consensus(&folder).args(words).args(TALK)).exits(0);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let mut opened = first["event"].clone();
    opened.as_object_mut().unwrap().shift_remove("type");
    let spec: RunSpec = serde_json::from_value(opened).unwrap();
    let prepared = RunBuilder::new(spec.setup).unwrap().build(spec.endpoints, spec.limits);
    let (sender, stop) = watch::channel(StopRequest::None);
    let asker = StopAsker { sender, stops: Cell::new(0) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let mut engine = Engine::start(&folder.path().join("again"), "again", prepared, &asker).unwrap();
        engine.run(stop).await.unwrap()
    });
    assert_eq!((outcome, asker.stops.get()), (Outcome::Interrupted, 1));
}
