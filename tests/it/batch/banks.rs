//! A bank is drawn once; afterwards any stop, order and mode is played over its samples, without a model and without running a program.

use serde_json::Value;

use crate::batch::{figures, lines};
use crate::support::{Finished, Folder, consensus};

/// The samples of each voter: words are right at first and then waver; programs are right.
const SCRIPT: &str = r#"{"agent": "Solver", "draft": 0, "reply": "It is so.\nAnswer: 4"}
{"agent": "Solver", "draft": 1, "reply": "Answer: 5"}
{"agent": "Solver", "draft": 2, "step": "sample", "reply": "I do not know."}
{"agent": "Solver", "draft": 2, "step": "envelope", "reply": "{\"response\": \"5\"}"}
{"agent": "Solver", "policy": "honest", "answer": "4"}
{"agent": "Programmer", "policy": "honest", "answer": "4"}
"#;

const DRAWN: [&str; 4] = ["--roleset", "vote_number", "--mock-script", "script.jsonl"];

fn two_tasks() -> Folder {
    let folder = Folder::new();
    folder.write("script.jsonl", SCRIPT);
    folder.write(
        "tasks.jsonl",
        "{\"id\": \"a\", \"prompt\": \"2+2?\", \"answer\": 4}\n{\"id\": \"b\", \"prompt\": \"1+3?\", \"answer\": 5}\n",
    );
    folder
}

fn draw(folder: &Folder, words: &str, programs: &str) {
    let words = ["--bank", "bank", "--words", words, "--programs", programs];
    Finished::of(consensus(folder).args(["batch", "tasks.jsonl", "--quiet"]).args(DRAWN).args(words))
        .exits(0);
}

fn remove_out(folder: &Folder) {
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
}

fn replayed<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--roleset", "vote_number", "--from-bank", "bank"], more].concat()
}

/// Returns the parts of all rows that depend on the samples, in the order of the tasks.
fn essence(mut rows: Vec<Value>) -> Vec<Value> {
    rows.sort_by_key(|row| row["task"].to_string());
    rows.iter().map(essence_of).collect()
}

fn essence_of(row: &Value) -> Value {
    let fields = ["task", "outcome", "how", "text", "right", "vote", "usage", "dissent"];
    fields
        .iter()
        .map(|field| (field.to_string(), row[field].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Every stop that is played from a bank ends as with the model itself.
#[test]
fn bank_replay_matches_live_runs() {
    let folder = two_tasks();
    draw(&folder, "9", "8");
    for (name, flags) in [
        ("fast", &["--modes", "words,program"][..]),
        ("sure", &["--modes", "words,program", "--stop", "sure"]),
        ("words", &["--stop", "sure", "--samples-max", "9"]),
        ("majority", &["--stop", "none", "--samples-max", "3"]),
        ("leader", &["--modes", "words,program", "--on-disagreement", "leader", "--samples-max", "6"]),
    ] {
        let arm = ["--arm", name];
        figures(&folder, &[&DRAWN[..], flags, &arm].concat(), 0);
        let live = lines(&folder, "results-0.jsonl");
        Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);
        remove_out(&folder);
        figures(&folder, &replayed(&[flags, &arm].concat()), 0);
        let from_bank = lines(&folder, "results-0.jsonl");
        Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);
        remove_out(&folder);
        assert_eq!(live.len(), 2, "{name}");
        assert_eq!(essence(live), essence(from_bank), "{name}");
    }
}

#[test]
fn samples_ahead_change_no_outcome() {
    let folder = two_tasks();
    draw(&folder, "8", "8");
    let outcomes = |ahead: &str| {
        figures(&folder, &replayed(&["--modes", "words,program", "--stop", "sure", "--ahead", ahead]), 0);
        let mut rows = lines(&folder, "results-0.jsonl");
        remove_out(&folder);
        rows.sort_by_key(|row| row["task"].to_string());
        let vote =
            |row: &Value| [row["vote"]["class"].clone(), row["vote"]["lead"].clone(), row["text"].clone()];
        rows.iter().map(vote).collect::<Vec<_>>()
    };
    assert_eq!(outcomes("1"), outcomes("12"));
}

#[test]
fn bank_program_is_not_run_again() {
    let folder = two_tasks();
    draw(&folder, "1", "1");
    figures(&folder, &replayed(&["--modes", "words,program", "--samples-max", "2"]), 0);
    let executed = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter(|r| r["event"]["type"] == "executed").map(|r| r["event"].clone()).collect::<Vec<_>>()
    };
    let (drawn, again) = (executed("bank/journal-0.jsonl"), executed("out/journal-0.jsonl"));
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|event| drawn.contains(event)), "{drawn:?} {again:?}");
}

#[test]
fn undrawn_sample_is_no_answer() {
    let folder = two_tasks();
    draw(&folder, "2", "0");
    let many = ["--stop", "none", "--samples-max", "3"];
    let words = ["batch", "tasks.jsonl", "--output", "out"];
    let said = Finished::of(consensus(&folder).args(words).args(replayed(&many))).exits(2).stderr;
    assert!(
        said.contains(
            "the bank `bank` has 2 samples in words of each task by `mock`, and this vote may need 3"
        ),
        "{said}"
    );
    assert!(said.contains("give --samples-max 2 at most"), "{said}");
    let other = ["--stop", "none", "--samples-max", "2", "--model", "other"];
    let said = Finished::of(consensus(&folder).args(words).args(replayed(&other))).exits(2).stderr;
    assert!(said.contains("the bank `bank` has no samples by `other`; it has some by `mock`"), "{said}");
    let changed = ["--stop", "none", "--samples-max", "2", "--temperature", "0.1"];
    let said = Finished::of(consensus(&folder).args(words).args(replayed(&changed))).exits(2).stderr;
    assert!(said.contains("give the roleset, packs and temperature that it was drawn with"), "{said}");
    // With another seed, other samples would have been drawn.
    remove_out(&folder);
    let two = ["--stop", "none", "--samples-max", "2"];
    figures(&folder, &replayed(&[&two[..], &["--first-seed", "2"]].concat()), 2);
    let refused = lines(&folder, "refused-0.jsonl");
    assert_eq!(refused.len(), 2, "{refused:?}");
    // A task that the bank lacks is refused, however few of its samples a vote would have needed.
    let tasks = std::fs::read_to_string(folder.path().join("tasks.jsonl")).unwrap();
    folder.write("tasks.jsonl", &format!("{tasks}{}\n", r#"{"id": "c", "prompt": "0+4?", "answer": 4}"#));
    remove_out(&folder);
    let done = figures(&folder, &replayed(&two), 2);
    assert_eq!((&done["ended"]["no_agreement"], &done["refused"]), (&2.into(), &1.into()), "{done}");
    let why = lines(&folder, "refused-0.jsonl")[0]["why"].as_str().unwrap().to_owned();
    assert!(
        why.contains("has 0 samples of it in words by `mock` with this seed, and its vote may need 2"),
        "{why}"
    );
}

#[test]
fn bank_without_votes_or_samples_is_refused() {
    let folder = two_tasks();
    let refused = |words: &[&str]| {
        Finished::of(consensus(&folder).args(["batch", "tasks.jsonl", "--bank", "bank"]).args(words))
            .exits(2)
            .stderr
    };
    let mock = ["--mock", "--answer", "4"];
    let pair = refused(&[&mock[..], &["--roleset", "solver_checker", "--words", "2"]].concat());
    assert!(pair.contains("--bank goes with rolesets of `vote` only"), "{pair}");
    let short = refused(&[&mock[..], &["--roleset", "vote_short", "--programs", "2"]].concat());
    assert!(short.contains("--programs: the roleset has no voter of that kind"), "{short}");
    assert!(refused(&mock).contains("<--words"), "a bank without samples");
    let none = Finished::of(consensus(&folder).args([
        "batch",
        "tasks.jsonl",
        "-o",
        "out",
        "--from-bank",
        "nowhere",
    ]));
    assert!(none.exits(2).stderr.contains("nowhere"));
    // A bank whose first run was cut off has nothing to give.
    draw(&folder, "2", "0");
    let journal = std::fs::read_to_string(folder.path().join("bank/journal-0.jsonl")).unwrap();
    folder.write("begun/journal-0.jsonl", journal.split_inclusive('\n').next().unwrap());
    let begun = ["batch", "tasks.jsonl", "-o", "out", "--from-bank", "begun", "--roleset", "vote_number"];
    let begun = Finished::of(consensus(&folder).args(begun)).exits(2).stderr;
    assert!(begun.contains("no run of the bank `begun` has ended; continue the bank"), "{begun}");
}
