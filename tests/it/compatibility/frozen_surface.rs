//! What people and programs hold the program to, as it stands: help pages, schemas, exit codes, the keys of a result, and every word
//! that a model sees. A change of any of it is on purpose.
//!
//! `tests/fixtures/frozen` holds one file for each. With `CONSENSUS_REWRITE` in the environment the files are written anew, to be read
//! as a difference before they are kept.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Finished, Folder, consensus, listed_commands};

/// A roleset, an answer on which its agents agree, and its first agent with an answer of its own.
struct FrozenRoleset(&'static str, &'static str, &'static str, &'static str);

const CASES: [FrozenRoleset; 20] = [
    FrozenRoleset("generalist_critic", "Boil it for eight minutes.", "Generalist", "Do not boil it."),
    FrozenRoleset(
        "writer_physicist",
        "Cosmic rays are tiny fast particles from space.",
        "Writer",
        "They are light.",
    ),
    FrozenRoleset("uiux_programmer", "A button that saves the form.", "Designer", "A menu."),
    FrozenRoleset("solver_checker", "36", "Solver", "35"),
    FrozenRoleset("planner_coder", "print(4)", "Planner", "print(5)"),
    FrozenRoleset("translator_reviewer", "Guten Morgen", "Translator", "Guten Tag"),
    FrozenRoleset("mcq_reasoner_auditor", "C", "Reasoner", "B"),
    FrozenRoleset("json_author_auditor", "{\"city\": \"Canberra\"}", "Author", "{\"city\": \"Sydney\"}"),
    FrozenRoleset("council_tripartite", "36", "Pathos", "35"),
    FrozenRoleset("council_agree", "36", "Logos", "35"),
    FrozenRoleset("panel_personas", "A button.", "Analyst", "A menu."),
    FrozenRoleset("panel_agree", "36", "Analyst", "35"),
    FrozenRoleset("panel_models", "A button.", "One", "A menu."),
    FrozenRoleset("reviewers_f1", "approve", "Quality", "reject"),
    FrozenRoleset("reviewers_f2", "approve", "Quality", "reject"),
    FrozenRoleset("vote_number", "36", "Programmer", "35"),
    FrozenRoleset("vote_choice", "C", "Reasoner", "B"),
    FrozenRoleset("vote_short", "thirty-six", "Answerer", "thirty-five"),
    FrozenRoleset("self_consistency", "thirty-six", "Answerer", "thirty-five"),
    FrozenRoleset("single", "thirty-six", "Answerer", "thirty-five"),
];

#[track_caller]
fn is_as_it_was(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/frozen").join(name);
    if std::env::var_os("CONSENSUS_REWRITE").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    let then = std::fs::read_to_string(&path).unwrap();
    for (line, (then, now)) in then.lines().zip(now.lines()).enumerate() {
        assert_eq!(now, then, "{name}, line {}", line + 1);
    }
    assert_eq!(now.lines().count(), then.lines().count(), "{name}");
}

fn out(folder: &Folder, words: &[&str]) -> String {
    Finished::of(consensus(folder).args(words)).exits(0).stdout
}

/// Returns the words that lead to each help page, the program's own first.
fn commands(folder: &Folder, words: &[String], found: &mut Vec<Vec<String>>) {
    found.push(words.to_vec());
    let shown: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    for name in listed_commands(&out(folder, &shown), words.is_empty()) {
        commands(folder, &[words, &[name]].concat(), found);
    }
}

#[test]
fn help_pages_are_as_they_were() {
    let folder = Folder::new();
    let mut found = Vec::new();
    commands(&folder, &[], &mut found);
    assert!(found.len() > 20, "{found:?}");
    let mut pages = String::new();
    for words in found {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        write!(pages, "$ consensus {}\n{}\n", words.join(" "), out(&folder, &words)).unwrap();
    }
    is_as_it_was("help.txt", &pages);
}

#[test]
fn schemas_are_as_they_were() {
    let folder = Folder::new();
    for name in ["envelope", "roleset", "result", "record"] {
        is_as_it_was(&format!("{name}.schema.json"), &out(&folder, &["schema", name]));
    }
}

/// Adds the path of every key of a JSON value; an item of a list is `[]`.
fn keys(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{at}.{key}");
                found.insert(path.clone());
                keys(value, &path, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{at}[]"), found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Runs a roleset with scripted agents; they agree, or each holds to a text of its own.
fn run(folder: &Folder, roleset: &str, script: &str) {
    folder.write("script.jsonl", script);
    let words = ["run", "-q", "--seed", "7", "--roleset", roleset, "--mock-script", "script.jsonl"];
    let task = if roleset.starts_with("reviewers") {
        folder.write("change.diff", "--- a/price.py\n+++ b/price.py\n@@ -1 +1 @@\n-price = 1\n+price = 2\n");
        vec!["-f", "change.diff", "--prompt", "May it be applied?"]
    } else {
        vec!["--prompt", "What follows from 6 times 6?"]
    };
    let more: &[&str] = match roleset {
        "panel_personas" => &["--members", "analyst,optimist,pragmatist"],
        "mcq_reasoner_auditor" => &["--choices", "A,B,C"],
        "vote_number" => &["--modes", "words,program"],
        _ => &[],
    };
    let finished = Finished::of(consensus(folder).args(words).args(task).args(more));
    assert!([0, 3, 4].contains(&finished.code), "{roleset}: {}", finished.stderr);
}

fn records(folder: &Folder) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl FrozenRoleset {
    /// Returns a script in which all agree, and one in which the first agent never does.
    fn scripts(&self) -> [String; 2] {
        let Self(_, answer, first, other) = self;
        let all = format!("{}\n", json!({"policy": "honest", "answer": answer}));
        let one = json!({"agent": first, "policy": "stubborn", "answer": other});
        let rest = json!({"policy": "stubborn", "answer": answer});
        [all, format!("{one}\n{rest}\n")]
    }
}

#[test]
fn results_have_the_keys_that_they_had() {
    let mut found = String::new();
    for case in CASES {
        let mut here = BTreeSet::new();
        for script in case.scripts() {
            let folder = Folder::new();
            run(&folder, case.0, &script);
            keys(&folder.result(), "", &mut here);
        }
        writeln!(found, "# {}\n{}", case.0, here.into_iter().collect::<Vec<_>>().join("\n")).unwrap();
    }
    is_as_it_was("result_keys.txt", &found);
}

/// The digest of every question to a model is what it was, so that no word of it has changed.
#[test]
fn model_questions_are_as_they_were() {
    let mut found = String::new();
    for case in CASES {
        for (script, how) in case.scripts().into_iter().zip(["agreed", "split"]) {
            let folder = Folder::new();
            run(&folder, case.0, &script);
            writeln!(found, "# {}, {how}", case.0).unwrap();
            // The digest of a question covers its messages, the schema of its reply, and how it is sampled.
            let asked = records(&folder).into_iter().map(|record| record["event"].clone());
            let asked = asked.filter(|event| event["type"] == "asked");
            let line = |event: Value| format!("{} {}", event["call"], event["sha256"]).replace('"', "");
            let asked: BTreeSet<String> = asked.map(line).collect();
            writeln!(found, "{}", asked.into_iter().collect::<Vec<_>>().join("\n")).unwrap();
        }
    }
    is_as_it_was("questions.txt", &found);
}
