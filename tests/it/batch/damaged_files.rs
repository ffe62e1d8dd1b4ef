//! Files of a batch that are damaged: a pipe in their place, a line without an end, and a run that begins twice.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crypto::Digest;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::batch::{MOCK, batch, figures, lines, tasks};
use crate::support::{Finished, Folder, consensus};

/// How long a command may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The most bytes of a line, with its line break.
const LINE_BYTES_MAX: usize = 64 << 20;

/// A finished batch of this many tasks.
fn done(count: usize) -> Folder {
    let folder = Folder::new();
    tasks(&folder, count);
    figures(&folder, &MOCK, 0);
    folder
}

/// Returns the end of a command, which waits for nothing.
fn at_once(command: &mut Command) -> Finished {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the command waits: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Finished::with(child.wait_with_output().unwrap())
}

#[test]
fn pipe_in_place_of_file_is_refused() {
    for name in ["journal-0.jsonl", "results-0.jsonl"] {
        let folder = done(2);
        let path = folder.path().join("out").join(name);
        std::fs::remove_file(&path).unwrap();
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        for command in ["verify", "results", "runs"] {
            let refused = at_once(consensus(&folder).args([command, "out"])).exits(7);
            assert!(refused.stderr.contains("a record is a regular file"), "{command}: {}", refused.stderr);
        }
        assert_ne!(at_once(&mut batch(&folder, &MOCK)).code, 0, "{name}");
    }
    // A manifest that is a pipe is that of no batch.
    let folder = done(2);
    let path = folder.path().join("out/batch.json");
    std::fs::remove_file(&path).unwrap();
    mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    assert_ne!(at_once(consensus(&folder).args(["verify", "out"])).code, 0);
    assert_ne!(at_once(&mut batch(&folder, &MOCK)).code, 0);
}

/// A crash can leave blocks of zeros at the end of a file.
#[test]
fn long_torn_tail_is_cut_off() {
    let folder = done(2);
    for name in ["journal-0.jsonl", "results-0.jsonl"] {
        let path = folder.path().join("out").join(name);
        let whole = path.metadata().unwrap().len();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(whole + LINE_BYTES_MAX as u64 + 1).unwrap();
        Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);
        Finished::of(consensus(&folder).args(["results", "out"])).exits(0);
        assert_eq!(figures(&folder, &MOCK, 0)["calls"], 0, "{name}");
        assert_eq!(path.metadata().unwrap().len(), whole, "{name}");
    }
}

#[test]
fn endless_line_is_damage() {
    for name in ["journal-0.jsonl", "results-0.jsonl"] {
        let folder = done(1);
        let path = folder.path().join("out").join(name);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&vec![b'a'; LINE_BYTES_MAX]).unwrap();
        file.write_all(b"\n").unwrap();
        for command in ["verify", "results"] {
            let refused = Finished::of(consensus(&folder).args([command, "out"])).exits(7);
            assert!(refused.stderr.contains("the limit for a line"), "{command}: {}", refused.stderr);
        }
        Finished::of(&mut batch(&folder, &MOCK)).exits(7);
    }
    let folder = done(1);
    let path = folder.path().join("out/batch.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + &" ".repeat(2 << 20)).unwrap();
    Finished::of(consensus(&folder).args(["verify", "out"])).exits(7);
}

#[test]
fn unfinished_files_of_killed_batch_are_removed() {
    let folder = done(2);
    let left = [".batch.json", ".progress-0.json"]
        .map(|name| format!("out/{name}.6f1c2a9e-5f0b-4a7e-9d3c-0b1e2f3a4c5d.new"));
    for name in &left {
        folder.write(name, "{");
    }
    folder.write("out/.notes.new", "mine");
    figures(&folder, &MOCK, 0);
    assert!(left.iter().all(|name| !folder.path().join(name).exists()));
    assert!(folder.path().join("out/.notes.new").exists(), "it is no file of the program");
}

/// The journal that comes out has a whole chain, and each of its runs begins and ends once more.
fn doubled(records: &[Value]) -> (String, Digest) {
    let (mut head, mut of_run, mut text) = (Digest::ZERO, Digest::ZERO, String::new());
    for (seq, record) in records.iter().chain(records).enumerate() {
        let mut record = record.clone();
        if record["event"]["type"] == "opened" {
            of_run = Digest::ZERO;
        }
        record["seq"] = json!(seq);
        record["prev"] = json!(head);
        record["run_prev"] = json!(of_run);
        let line = record.to_string();
        head = Digest::new(line.as_bytes());
        of_run = head;
        text.extend([&line, "\n"]);
    }
    (text, head)
}

#[test]
fn run_that_begins_twice_is_damage() {
    let folder = done(1);
    let (journal, head) = doubled(&lines(&folder, "journal-0.jsonl"));
    folder.write("out/journal-0.jsonl", &journal);
    let row = lines(&folder, "results-0.jsonl").remove(0);
    let mut second = row.clone();
    second["journal_head"] = json!(head);
    folder.write("out/results-0.jsonl", &format!("{row}\n{second}\n"));
    let why = Finished::of(consensus(&folder).args(["verify", "out"])).exits(7).stderr;
    assert!(why.contains("its run has begun on an earlier line"), "{why}");
    Finished::of(&mut batch(&folder, &MOCK)).exits(7);
}
