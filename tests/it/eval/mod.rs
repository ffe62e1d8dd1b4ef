//! An evaluation says what its results on record say, goes on after a kill, and refuses data that would change what it measures.

mod bad_input;
mod calibrated;
mod calibration_compared;
mod compared;
mod continued;
mod figured;
mod plan_compared;
mod planned_and_judged;
mod simulated;
mod simulated_risk;
mod simulated_server;

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Finished, Folder, SENSIBLE, Server, consensus, model};

/// Three ways of answering sums.
const ARMS: [&str; 8] = [
    "--arm",
    "single",
    "--arm",
    "sc@3",
    "--arm",
    "vote,modes=words,program",
    "--arm",
    "pair:writer_physicist",
];

/// So many sums, in clusters of four.
fn sums(folder: &Folder, count: usize) {
    let line = |id: usize| {
        let task = json!({"id": id, "prompt": format!("How much is {id} - {id} + 4?"), "answer": 4, "canonical": "number", "meta": {"subject": id / 4}});
        task.to_string() + "\n"
    };
    folder.write("sums.jsonl", &(0..count).map(line).collect::<String>());
}

/// A model that answers most sums rightly, by the seed of a request alone.
fn sums_model() -> Server {
    Server::start(model(SENSIBLE))
}

fn eval(folder: &Folder, server: &Server, words: &[&str]) -> Command {
    let mut command = consensus(folder);
    command.args(["eval", "sums.jsonl", "--out", "study", "--samples", "4", "--format", "json", "--quiet"]);
    command.args(["--base-url", &server.url(), "--model", "tiny-model"]).args(words);
    command
}

fn evaluated(folder: &Folder, server: &Server, words: &[&str], code: i32) -> Value {
    let words = [&ARMS[..], words].concat();
    serde_json::from_str(&Finished::of(&mut eval(folder, server, &words)).exits(code).stdout).unwrap()
}

fn file(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path().join("study").join(name)).unwrap()
}

fn arm<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let arms = summary["arms"].as_array().unwrap();
    arms.iter().find(|arm| arm["name"] == name).unwrap()
}
