//! A signal that is meant for the program, or that someone else sends, is no verdict on a text and no result of a program.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::executions;
use crate::support::{Finished, Folder, consensus};

/// A check that passes once the user has made a file.
const WAITS: &str = "while test ! -e go; do sleep 0.05; done";

/// Returns the command of a run whose check waits.
fn checked(folder: &Folder) -> Command {
    let mut command = consensus(folder);
    command.args(["run", "--mock", "--answer", "4"]);
    command.args(["--prompt", "2+2?", "--check", WAITS]);
    command
}

/// Starts the program in a group of its own, as a shell does for a terminal, and waits until it has a child with this word.
fn started(command: &mut Command, word: &str) -> (Child, Pid) {
    let mut child = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut found = None;
    while found.is_none() {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended");
        std::thread::yield_now();
        found = child_with(child.id(), word);
    }
    (child, found.unwrap())
}

/// Returns the child of a process that has this word among its words.
fn child_with(parent: u32, word: &str) -> Option<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let ids: Vec<i32> = lists
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    let has = |id: &&i32| {
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|found| found == word.as_bytes())
    };
    ids.iter().find(has).map(|id| Pid::from_raw(*id))
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap())
}

fn ends(folder: &Folder) -> Vec<Value> {
    executions(folder).iter().map(|executed| executed["result"]["end"].clone()).collect()
}

#[test]
fn an_interrupt_at_the_terminal_reaches_no_check() {
    let folder = Folder::new();
    let (mut child, _) = started(&mut checked(&folder), "guard");
    killpg(pid(&child), Signal::SIGINT).unwrap();
    folder.write("go", "");
    child.wait().unwrap();
    let _ = Finished::of(consensus(&folder).args(["resume", "--last", "--check", WAITS]));
    assert_eq!(folder.result()["outcome"], "agreed");
    assert_eq!(ends(&folder), [json!({"exit": 0})]);
}

#[test]
fn an_interrupt_at_the_terminal_reaches_no_program() {
    let folder = Folder::new();
    let program = "def solution():\n    total = 0\n    for i in range(200000):\n        total += i\n    return 48 + 0 * total";
    let reply = format!("```python\n{program}\n```");
    let rules = [
        json!({"agent": "Solver", "policy": "honest", "answer": "48"}),
        json!({"agent": "Programmer", "reply": reply}),
    ];
    folder.write("script.jsonl", &rules.map(|rule| rule.to_string() + "\n").concat());
    let mut command = consensus(&folder);
    command.args([
        "run",
        "--roleset",
        "solver_programmer",
        "--talk",
        "always",
        "--mock-script",
        "script.jsonl",
        "--max-rounds",
        "1",
    ]);
    let (mut child, _) = started(command.args(["--prompt", "4 crates of 12?"]), "interpret");
    killpg(pid(&child), Signal::SIGINT).unwrap();
    child.wait().unwrap();
    let _ = Finished::of(consensus(&folder).args(["resume", "--last"]));
    assert_eq!(folder.result()["how"], "independent");
    assert_eq!(ends(&folder), [json!({"exit": 0})]);
}

#[test]
fn a_guard_that_someone_kills_leaves_no_verdict() {
    let folder = Folder::new();
    let (mut child, guard) = started(&mut checked(&folder), "guard");
    kill(guard, Signal::SIGKILL).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(6));
    assert_eq!(ends(&folder), Vec::<Value>::new());
    folder.write("go", "");
    Finished::of(consensus(&folder).args(["resume", "--last", "--check", WAITS])).exits(0);
    assert_eq!(ends(&folder), [json!({"exit": 0})]);
}
