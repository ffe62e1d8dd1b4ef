//! Results of one way of answering, chosen among several, and as a log for another tool.

use serde_json::{Value, json};

use crate::support::{Finished, Folder, MOCK, batch, consensus, tasks};

/// A batch of two arms over three tasks with two seeds.
fn two_arms() -> Folder {
    let folder = Folder::new();
    tasks(&folder, 3);
    for arm in ["one", "two"] {
        let words = [&MOCK[..], &["--arm", arm, "--seeds", "2"]].concat();
        Finished::of(&mut batch(&folder, &words)).exits(0);
    }
    folder
}

fn results(folder: &Folder, words: &[&str], code: i32) -> Finished {
    Finished::of(consensus(folder).args(["results", "out"]).args(words)).exits(code)
}

#[test]
fn only_chooses_runs_by_any_of_their_values() {
    let folder = two_arms();
    let rows = |words: &[&str]| {
        let words = [words, &["--format", "jsonl"]].concat();
        results(&folder, &words, 0).stdout.lines().count()
    };
    assert_eq!(rows(&[]), 12);
    assert_eq!(rows(&["--only", "arm=two"]), 6);
    assert_eq!(rows(&["--only", "arm=two", "--only", "seed=1"]), 3);
    assert_eq!(rows(&["--only", "outcome=agreed"]), 12);
    let why = results(&folder, &["--only", "arm=three"], 2).stderr;
    assert!(why.contains("no run fits --only; there are runs with arm=one, arm=two"), "{why}");
    let groups = results(&folder, &["--only", "arm=one", "--format", "json"], 0).stdout;
    let groups: Value = serde_json::from_str(&groups).unwrap();
    assert_eq!((groups.as_array().unwrap().len(), &groups[0]["of"]["arm"]), (1, &json!("one")));
    let why = results(&folder, &["--only", "arm"], 2).stderr;
    assert!(why.contains("write WHAT=VALUE, such as arm=sc@5"), "{why}");
    let why = results(&folder, &["--only", "arm=one", "--format", "calls"], 2).stderr;
    assert!(why.contains("--only chooses runs, and not calls"), "{why}");
}

/// Where a batch has several ways of answering, one must be chosen for the log.
#[test]
fn inspect_log_holds_one_arm() {
    let folder = two_arms();
    let why = results(&folder, &["--format", "inspect"], 2).stderr;
    assert!(why.contains("choose one: --only arm=one; --only arm=two"), "{why}");
    let log_of = |words: &[&str]| -> Value {
        let words = [&["--only", "arm=two", "--format", "inspect"], words].concat();
        serde_json::from_str(&results(&folder, &words, 0).stdout).unwrap()
    };
    let log = log_of(&["--tasks", "tasks.jsonl", "--with-transcripts"]);
    assert_eq!(
        (&log["version"], &log["status"], &log["eval"]["task"]),
        (&json!(2), &json!("success"), &json!("two"))
    );
    let samples = log["samples"].as_array().unwrap();
    assert_eq!((samples.len(), &log["eval"]["config"]["epochs"]), (6, &json!(2)));
    let epochs: Vec<&Value> = samples.iter().map(|sample| &sample["epoch"]).collect();
    assert!(epochs.contains(&&json!(1)) && epochs.contains(&&json!(2)), "{epochs:?}");
    let sample = &samples[0];
    assert!(sample["input"].as_str().unwrap().contains('?') && sample["target"] == "4", "{sample}");
    assert_eq!(
        (&sample["scores"]["right"]["value"], &sample["output"]["completion"]),
        (&json!("C"), &json!("4"))
    );
    assert!(sample["metadata"]["transcript"].as_str().unwrap().contains("## Outcome: agreed"), "{sample}");
    let why = results(&folder, &["--format", "csv", "--tasks", "tasks.jsonl"], 2).stderr;
    assert!(why.contains("--tasks is for a log only"), "{why}");
    let mut both = consensus(&folder);
    let why = Finished::of(both.args(["results", "out", "out", "--format", "inspect"])).exits(2).stderr;
    assert!(why.contains("a log is of one batch"), "{why}");
    folder.write("other.jsonl", "{\"id\": 99, \"prompt\": \"2+2?\", \"answer\": 4}\n");
    let other = ["--only", "arm=two", "--format", "inspect", "--tasks", "other.jsonl"];
    let why = results(&folder, &other, 0).stderr;
    assert!(why.contains("none of these tasks is in the log"), "{why}");
    let without = log_of(&[]);
    assert_eq!(without["samples"][0]["target"], "", "without the tasks no answer is known");
}
