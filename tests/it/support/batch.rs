//! Batches of sums, and what stands in their files.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

use super::process::{Finished, Folder, consensus};

/// So many tasks with right answers to sums.
pub fn tasks(folder: &Folder, count: usize) {
    let line =
        |id| json!({"id": id, "prompt": format!("How much is {id} + 1?"), "answer": 4}).to_string() + "\n";
    folder.write("tasks.jsonl", &(1..=count).map(line).collect::<String>());
}

pub fn batch(folder: &Folder, words: &[&str]) -> Command {
    let mut command = consensus(folder);
    command.args(["batch", "tasks.jsonl", "--output", "out", "--format", "json", "--quiet"]).args(words);
    command
}

pub const MOCK: [&str; 5] = ["--mock", "--answer", "4", "--roleset", "solver_checker"];

pub fn figures(folder: &Folder, words: &[&str], code: i32) -> Value {
    let said = Finished::of(&mut batch(folder, words)).exits(code).stdout;
    serde_json::from_str::<Value>(&said).unwrap()["figures"].take()
}

pub fn lines(folder: &Folder, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("out").join(name)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn run_of(row: &Value) -> String {
    row["run"].as_str().unwrap().to_owned()
}

/// How often each call of each run was replied to; once, or it is an error.
pub fn replies(folder: &Folder, journal: &str) -> BTreeMap<String, usize> {
    let mut calls = BTreeSet::new();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for record in lines(folder, journal) {
        if record["event"]["type"] == "replied" {
            let call = (run_of(&record), record["event"]["call"].as_str().unwrap().to_owned());
            *count.entry(call.0.clone()).or_default() += 1;
            assert!(calls.insert(call), "replied to twice: {record}");
        }
    }
    count
}
