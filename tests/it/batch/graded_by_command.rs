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
        "{\"id\": \"a/two\", \"prompt\": \"2+2?\"}\n{\"id\": \"x.y\", \"prompt\": \"2+3?\"}\n",
    );
    folder.write("tests/a/two", "4\n");
    folder.write("tests/x.y", "5\n");
    folder.write("counted/runs", "");
}

fn runs_of_grader(folder: &Folder) -> usize {
    std::fs::read_to_string(folder.path().join("counted/runs")).unwrap().lines().count()
}

fn graded(command: &str) -> Vec<&str> {
    [&MOCK[..], &["--sandbox-write", "counted", "--grader-command", command]].concat()
}

fn graded_at_once(command: &str) -> Vec<&str> {
    [&MOCK[..], &["--grader-command", command, "--regrade"]].concat()
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
fn command_grades_each_text_once() {
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

/// The file of the answer can only be read, and no graded text finds it.
#[test]
fn task_answer_reaches_grader_as_file() {
    let folder = Folder::new();
    folder.write("tasks.jsonl", "{\"id\": 1, \"prompt\": \"2+2?\", \"answer\": \"$(touch x); 4\"}\n");
    let find = r#"test "$(cat {answer})" = '$(touch x); 4' && test "$(ls "$TMPDIR" | tr -d '\n')" = text"#;
    figures(&folder, &graded_at_once(find), 0);
    assert_eq!(rows(&folder)[0]["right"], json!(true));
    let change = "! { echo 5 >{answer}; } 2>/dev/null";
    figures(&folder, &graded_at_once(change), 0);
    assert_eq!(rows(&folder)[0]["right"], json!(true), "it can only be read");
}

#[test]
fn task_line_cannot_become_command() {
    let folder = Folder::new();
    let ids = ["x$(touch y)", "../data/evil", "-c", "a//b", "/etc/x", "a b", "..", ".hidden/x"];
    let line = |id: &str| json!({"id": id, "prompt": "2+2?"}).to_string() + "\n";
    folder.write("tasks.jsonl", &ids.map(line).concat());
    let quoted = r#"echo "tests/{task}.py"; true"#;
    for words in [["--grader-command", quoted], ["--check", quoted]] {
        let why = Finished::of(&mut batch(&folder, &[&MOCK[..], &words].concat())).exits(2).stderr;
        assert!(why.contains("cannot be put into a command for {task}"), "{why}");
        assert_eq!(lines(&folder, "refused-0.jsonl").len(), ids.len());
    }
    let named = Folder::new();
    named.write("tasks.jsonl", "{\"id\": \"a\", \"prompt\": \"2+2?\", \"grader\": \"command\"}\n");
    for (words, why) in [
        (&[][..], "its `grader` is a command, and --grader-command gives none"),
        (&["--grader", "command"], "--grader-command"),
        (&["--grader-command", " "], "it names no command"),
        (&["--grader-command", "diff - {answer}"], "it has no `answer`"),
    ] {
        let said = Finished::of(&mut batch(&named, &[&MOCK[..], words].concat())).exits(2).stderr;
        assert!(said.contains(why), "{said}");
    }
}

/// A text that ends with exit code 127 stops no other text.
#[test]
fn text_ending_like_missing_program_is_wrong() {
    let folder = Folder::new();
    two_tasks(&folder);
    let script = "{\"policy\": \"honest\", \"answer\": \"echo hi\\nno-such-program\"}\n";
    folder.write("script.jsonl", script);
    let words =
        ["--mock-script", "script.jsonl", "--roleset", "planner_coder", "--grader-command", "sh {file}"];
    let said = figures(&folder, &words, 0);
    assert_eq!(said["ended"]["wrong"], json!(2), "{said}");
    assert_eq!(rows(&folder)[0]["grade"]["result"]["end"], json!({"exit": 127}));
    let why = Finished::of(&mut batch(&folder, &words)).exits(0).stderr;
    assert!(!why.contains("cannot be started"), "{why}");
}

#[test]
fn verdicts_stay_until_the_user_asks_for_others() {
    let folder = Folder::new();
    two_tasks(&folder);
    figures(&folder, &graded(GRADER), 0);
    // A command that forgets the grader takes nothing back.
    let forgotten = figures(&folder, &MOCK, 0);
    assert_eq!((&forgotten["ended"]["right"], &forgotten["rescored"]), (&json!(1), &json!(0)), "{forgotten}");
    folder.write("tests/x.y", "4\n");
    assert_eq!(figures(&folder, &graded(GRADER), 0)["ended"]["right"], json!(1), "the command is the same");
    let again = figures(&folder, &[&graded(GRADER)[..], &["--regrade"]].concat(), 0);
    assert_eq!((&again["ended"]["right"], runs_of_grader(&folder)), (&json!(2), 4), "{again}");
    // Another grader decides anew, and leaves no grade behind that would contradict it.
    folder.write(
        "tasks.jsonl",
        "{\"id\": \"a/two\", \"prompt\": \"2+2?\", \"answer\": 5}\n{\"id\": \"x.y\", \"prompt\": \"2+3?\", \"answer\": 4}\n",
    );
    let other = figures(&folder, &[&MOCK[..], &["--grader", "number"]].concat(), 0);
    assert_eq!((&other["ended"]["right"], &other["rescored"]), (&json!(1), &json!(1)), "{other}");
    assert!(rows(&folder).iter().all(|row| row.get("grade").is_none()));
    Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);
    let warned = Folder::new();
    two_tasks(&warned);
    let said = Finished::of(&mut batch(&warned, &graded("python3 tets/{task}.py"))).exits(0).stderr;
    assert!(
        said.contains("passed none of 2 texts; of the last one it said: it ended with exit code 2"),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_at_the_terminal_is_no_verdict() {
    use std::os::unix::process::CommandExt as _;
    use std::process::Stdio;

    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

    let folder = Folder::new();
    two_tasks(&folder);
    let slow =
        "touch counted/begun; while test ! -e go; do sleep 0.05; done; grep -qx \"$(cat)\" tests/{task}";
    let mut command = batch(&folder, &graded(slow));
    let child = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !folder.path().join("counted/begun").exists() {
        std::thread::yield_now();
    }
    killpg(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    folder.write("go", "");
    child.wait_with_output().unwrap();
    let said = figures(&folder, &graded(slow), 0);
    assert_eq!((&said["ended"]["right"], &said["ended"]["wrong"]), (&json!(1), &json!(1)), "{said}");
}

/// The texts are graded later, and the calls that were paid for are kept.
#[test]
fn unstartable_command_blames_no_text() {
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

/// A row that contradicts its grade does not verify.
#[test]
fn grader_runs_in_sandbox() {
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

/// The results have tokens in place of the originals that the grader sees.
#[test]
fn grader_sees_originals_behind_tokens() {
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
