//! The suite of tasks that agreement is measured with can be agreed on, and its answers are answers.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Finished, Folder, consensus};

/// Every task with the name of its roleset, which is the name of its file.
fn tasks() -> Vec<(String, Value)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/experiments/tasks");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let roleset = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            all.push((roleset.clone(), serde_json::from_str(line).unwrap()));
        }
    }
    all
}

fn answers(task: &Value) -> Vec<&str> {
    match &task["answer"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().map(|answer| answer.as_str().unwrap()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![],
    }
}

#[test]
fn there_are_forty_tasks_over_seven_rolesets() {
    let all = tasks();
    let rolesets: BTreeSet<&String> = all.iter().map(|(roleset, _)| roleset).collect();
    let ids: BTreeSet<&str> = all.iter().map(|(_, task)| task["id"].as_str().unwrap()).collect();
    assert!(all.len() >= 40 && ids.len() == all.len(), "{} tasks, {} ids", all.len(), ids.len());
    assert_eq!(rolesets.len(), 7, "{rolesets:?}");
}

#[test]
fn every_task_answer_reaches_agreement() {
    for (roleset, task) in tasks() {
        let rules = task["constraints"].as_array().cloned().unwrap_or_default();
        let is_prose = task["answer"].is_null();
        let given =
            if is_prose { vec!["First, this. Second, that. Third, the rest."] } else { answers(&task) };
        for answer in given {
            let folder = Folder::new();
            let mut run = consensus(&folder);
            run.args(["run", "--mock", "--answer", answer, "--roleset", &roleset, "--prompt"]);
            run.arg(task["prompt"].as_str().unwrap());
            run.args(rules.iter().flat_map(|rule| ["--constraint", rule.as_str().unwrap()]));
            assert_eq!(Finished::of(&mut run).exits(0).stdout.trim(), answer, "{task}");
        }
        assert!(!answers(&task).contains(&task["wrong"].as_str().unwrap_or_default()), "{task}");
    }
}
