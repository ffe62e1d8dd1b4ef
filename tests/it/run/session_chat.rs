//! A chat asks one question after another in a session, and its runs end with it.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::session_memory::{MOCK, lines, says};
use crate::support::{Finished, Folder, consensus};

/// Lets a chat answer these lines, which come through a pipe.
fn chat(folder: &Folder, words: &[&str], typed: impl AsRef<[u8]>) -> Finished {
    let mut command = consensus(folder);
    command.args(["chat", "--session", "sums"]).args(words).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(typed.as_ref()).unwrap();
    Finished::with(child.wait_with_output().unwrap())
}

/// A chat asks its questions one after another, and a question that fails ends no chat.
#[test]
fn chat_asks_questions_and_remembers_them() {
    let folder = Folder::new();
    let said = chat(&folder, &MOCK, "How much is 2+2?\n\nAnd 1+3?\nexit\nnever asked\n").exits(0);
    assert_eq!(said.stdout, "4\n4\n");
    let questions: Vec<Value> = lines(&folder).iter().map(|line| line["prompt"].clone()).collect();
    assert_eq!(questions, ["How much is 2+2?", "And 1+3?"]);
    let show = |words: &[&str]| Finished::of(consensus(&folder).args(words)).exits(0).stdout;
    assert!(show(&["show", "--last", "--format", "jsonl"]).contains("Asked: How much is 2+2?"));
    assert_eq!(says(&folder), "same");
    // The first question may stand behind the command, as for a run; a question that fails ends no chat.
    let more = chat(&folder, &[&MOCK[..], &["What", "now?"]].concat(), "--help\n").exits(0);
    assert_eq!(more.stdout, "4\n4\n", "{}", more.stderr);
    let failing = ["--model", "m", "--base-url", "http://127.0.0.1:1/v1"];
    let failed = chat(&folder, &failing, "One?\nTwo?\n").exits(6);
    assert_eq!(failed.stderr.matches("\nfailed: ").count(), 2, "{}", failed.stderr);
    chat(&folder, &[&MOCK[..], &["--dry-run"]].concat(), "").exits(2);
    // A question may be long; one that cannot be read ends no chat, and no word of help is asked about.
    let long = format!("Which is it? {}\n", "word ".repeat(40_000));
    let all = [b"help\n", long.as_bytes(), b"a\xffb\n", b"And 2+2?\n"].concat();
    let all = chat(&folder, &MOCK, all).exits(2);
    assert_eq!(all.stdout, "4\n4\n", "{}", all.stderr);
    assert_eq!(all.stderr.matches("error: stdin: it is not UTF-8").count(), 1, "{}", all.stderr);

    let listed: Value = serde_json::from_str(&show(&["sessions", "--format", "json"])).unwrap();
    assert_eq!(
        (&listed[0]["session"], &listed[0]["runs"]),
        (&json!("sums"), &json!(lines(&folder).len())),
        "{listed}"
    );
    assert!(show(&["sessions", "show", "sums"]).starts_with("> How much is 2+2?\n\n4\n"));
    show(&["sessions", "delete", "sums"]);
    assert!(lines(&folder).is_empty());
    assert_eq!(says(&folder), "no_file", "the records of its runs stay");
    let gone = Finished::of(consensus(&folder).args(["sessions", "delete", "sums"])).exits(2);
    assert!(gone.stderr.contains("the session `sums` was deleted"), "{}", gone.stderr);
    // The records name it: another session of that name would contradict them.
    chat(&folder, &MOCK, "Again?\n").exits(2);
    assert_eq!(says(&folder), "no_file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_ends_with_its_chat() {
    let folder = Folder::new();
    let script = "{\"delay_ms\": 300, \"policy\": \"honest\", \"answer\": \"4\"}\n";
    folder.write("script.jsonl", script);
    let mut command = consensus(&folder);
    command.args([
        "chat",
        "--session",
        "sums",
        "-r",
        "solver_checker",
        "--mock-script",
        "script.jsonl",
        "2+2 is?",
    ]);
    let mut chat = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let runs = folder.path().join("runs");
    let journals = || {
        let folders = std::fs::read_dir(&runs).into_iter().flatten().flatten();
        let texts =
            folders.filter_map(|entry| std::fs::read_to_string(entry.path().join("journal.jsonl")).ok());
        texts.collect::<String>()
    };
    // A call is open when the chat is killed, and nothing more is asked once it is answered.
    while !journals().contains("\"asked\"") {
        assert!(chat.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    chat.kill().unwrap();
    chat.wait().unwrap();
    while !journals().contains("\"stopped\"") {
        std::thread::yield_now();
    }
    assert!(journals().contains("\"interrupted\""), "{}", journals());
}
