//! The user's command can grade the texts of a batch: it runs once for each text, in the sandbox, and its word is on record.

use serde_json::{Value, json};

use crate::batch::{MOCK, batch, figures, lines};
use crate::support::{Finished, Folder, consensus};

/// A grader that passes texts that the task's own file allows, and counts its runs in the folder that it may write.
const GRADER: &str = r#"echo ran >>counted/runs; grep -qx "$(cat)" tests/{task}"#;

/// Writes two tasks, of which the first is answered rightly by 4, and the folders of the grader.
fn two_tasks(folder: &Folder) {
    folder.write(
        "tasks.jsonl",
        "{\"id\": \"two plus\", \"prompt\": \"2+2?\"}\n{\"id\": \"x'y\", \"prompt\": \"2+3?\"}\n",
    );
    folder.write("tests/two plus", "4\n");
    folder.write("tests/x'y", "5\n");
    folder.write("counted/runs", "");
}

fn runs_of_grader(folder: &Folder) -> usize {
    std::fs::read_to_string(folder.path().join("counted/runs")).unwrap().lines().count()
}

fn graded(command: &str) -> Vec<&str> {
    [&MOCK[..], &["--sandbox-write", "counted", "--grader-command", command]].concat()
}

/// Returns the last row of each task.
fn rows(folder: &Folder) -> Vec<Value> {
    let mut last = std::collections::BTreeMap::new();
    for row in lines(folder, "results-0.jsonl") {
        last.insert(row["task"].to_string(), row);
    }
    last.into_values().collect()
}

#[test]
fn a_command_says_which_texts_are_right_and_says_it_once() {
    let folder = Folder::new();
    two_tasks(&folder);
    let said = figures(&folder, &graded(GRADER), 0);
    assert_eq!((&said["ended"]["right"], &said["ended"]["wrong"]), (&json!(1), &json!(1)), "{said}");
    let [right, wrong] = &rows(&folder)[..] else { panic!("two rows") };
    assert_eq!((&right["right"], &right["blind_right"]), (&json!(true), &json!(true)));
    assert_eq!(right["grade"]["result"]["end"], json!({"exit": 0}), "{right}");
    assert_eq!((&wrong["right"], &wrong["grade"]["result"]["end"]), (&json!(false), &json!({"exit": 1})));
    assert_eq!(runs_of_grader(&folder), 2, "the blind vote is the same text");
    // The verdicts are on record, and are neither made again nor lost.
    let again = figures(&folder, &graded(GRADER), 0);
    assert_eq!((runs_of_grader(&folder), &again["ended"]["right"]), (2, &json!(1)), "{again}");
    Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);
    // Another command grades the same texts anew, and asks no model.
    let changed = figures(&folder, &graded("true"), 0);
    assert_eq!((&changed["ended"]["right"], &changed["rescored"]), (&json!(2), &json!(1)), "{changed}");
    Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);
    let shown = Finished::of(consensus(&folder).args(["results", "out", "--format", "csv"])).exits(0).stdout;
    assert_eq!(shown.matches(",true,true,").count(), 2, "{shown}");
}

#[test]
fn the_answer_of_a_task_reaches_the_command_as_a_file_and_no_line_can_name_a_command() {
    let folder = Folder::new();
    let odd = r#"{"id": "{answer}", "prompt": "2+2?", "answer": "$(touch x); 4"}"#;
    let plain = r#"{"id": "b", "prompt": "2+2?", "answer": "4", "grader": "exact"}"#;
    folder.write("tasks.jsonl", &format!("{odd}\n{plain}\n"));
    let command = r#"test "$(cat {answer})" = '$(touch x); 4' && test {task} = '{''answer}'"#;
    figures(&folder, &[&MOCK[..], &["--grader", "command", "--grader-command", command]].concat(), 0);
    let verdicts: Vec<Value> = rows(&folder).iter().map(|row| row["right"].clone()).collect();
    // The id of the first line looks like a word of the command, and is none.
    assert_eq!(verdicts, [json!(true), json!(true)]);
    let refused = Folder::new();
    refused.write("tasks.jsonl", &plain.replace("exact", "command"));
    let why = Finished::of(&mut batch(&refused, &MOCK)).exits(2).stderr;
    assert!(why.contains("its `grader` is a command, and --grader-command gives none"), "{why}");
    let why =
        Finished::of(&mut batch(&refused, &[&MOCK[..], &["--grader", "command"]].concat())).exits(2).stderr;
    assert!(why.contains("--grader-command"), "{why}");
}

#[test]
fn a_command_that_cannot_be_started_blames_no_text_and_the_texts_are_graded_later() {
    let folder = Folder::new();
    two_tasks(&folder);
    let why = Finished::of(&mut batch(&folder, &graded("no-such-program {file}"))).exits(2).stderr;
    assert!(why.contains("the grader's command says nothing about task") && why.contains("127"), "{why}");
    assert_eq!(lines(&folder, "results-0.jsonl").len(), 0, "no row is without its verdict");
    let calls = std::fs::read_to_string(folder.path().join("out/journal-0.jsonl")).unwrap();
    let said = figures(&folder, &graded(GRADER), 0);
    assert_eq!((&said["ended"]["right"], &said["ended"]["wrong"]), (&json!(1), &json!(1)), "{said}");
    let after = std::fs::read_to_string(folder.path().join("out/journal-0.jsonl")).unwrap();
    assert!(after.starts_with(&calls), "what was paid for is kept");
}

#[test]
fn a_grader_is_walled_in_and_its_row_can_not_be_changed_unseen() {
    let folder = Folder::new();
    two_tasks(&folder);
    figures(&folder, &graded("cat >/dev/null; touch tests/mark 2>/dev/null; test ! -e tests/mark"), 0);
    assert!(rows(&folder).iter().all(|row| row["right"] == json!(true)));
    let path = folder.path().join("out/results-0.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"right\":true", "\"right\":false", 1)).unwrap();
    let why = Finished::of(consensus(&folder).args(["verify", "out"])).exits(7).stderr;
    assert!(why.contains("`right` contradicts `grade`"), "{why}");
}

#[test]
fn a_grader_sees_originals_and_the_results_have_tokens() {
    let folder = Folder::new();
    folder.write(
        "tasks.jsonl",
        "{\"id\": 1, \"prompt\": \"Whom? ann@example.org\", \"answer\": \"ann@example.org\"}\n",
    );
    let mock = ["--mock", "--answer", "Ask [EMAIL_1].", "--redact", "--roleset", "writer_physicist"];
    let command = r#"cat; test "$(cat {file})" = "Ask $(cat {answer}).""#;
    figures(&folder, &[&mock[..], &["--grader-command", command]].concat(), 0);
    assert_eq!(rows(&folder)[0]["right"], json!(true));
    let results = std::fs::read_to_string(folder.path().join("out/results-0.jsonl")).unwrap();
    assert!(!results.contains("example.org"), "{results}");
    figures(&folder, &[&mock[..], &["--grader-command", command]].concat(), 0);
    assert_eq!(lines(&folder, "results-0.jsonl").len(), 1, "the grade on record is found again");
}
