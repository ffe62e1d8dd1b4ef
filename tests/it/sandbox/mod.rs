//! Commands of strangers run behind a wall, and a check of the user decides like a rule of the task.

#[cfg(target_os = "linux")]
mod behind_the_wall;
mod checks_are_run_once;
mod checks_decide;
#[cfg(target_os = "linux")]
mod ended_from_outside;
mod programs_answer;

use std::path::Path;

use serde_json::Value;

use crate::support::{Finished, Folder, TALK, consensus};

/// Returns the records of executions in the only run of this folder. A killed process may have left a part of a line.
fn executions(folder: &Folder) -> Vec<Value> {
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    let whole = journal.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let events = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take());
    events.filter(|event| event["type"] == "executed").collect()
}

/// Lets scripted agents agree on 4 if this command passes it.
fn checked(folder: &Folder, check: &str, words: &[&str]) -> Finished {
    let fixed =
        ["run", "--mock", "--answer", "4", "--thinking", "none", "--set", "params.max_repairs=0", "-q"];
    Finished::of(
        consensus(folder).args(fixed).args(TALK).args(["--prompt", "2+2?", "--check", check]).args(words),
    )
}

/// Returns the processes that have this path among their words.
fn processes_with(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let words = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let words = words.map(|words| String::from_utf8_lossy(&words).replace('\0', " "));
    words.filter(|words| words.contains(path.to_str().unwrap())).collect()
}
