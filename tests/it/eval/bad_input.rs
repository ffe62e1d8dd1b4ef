//! Data and arms that cannot be used are named before anything is asked, and nothing is made.

use serde_json::Value;

use super::{ARMS, arm, eval, evaluated, file, sums, sums_model};
use crate::support::{Finished, Folder, consensus};

fn refused(folder: &Folder, data: &str, words: &[&str]) -> String {
    let mock = ["--mock", "--answer", "4", "--out", "study"];
    let stderr = Finished::of(consensus(folder).args(["eval", data]).args(words).args(mock)).exits(2).stderr;
    assert!(!folder.path().join("study").exists(), "{stderr}");
    stderr
}

/// The error names the file and the line of a row, and why it cannot be used.
#[test]
fn bad_row_is_named_by_line() {
    let good = r#"{"id": 1, "prompt": "2+2?", "answer": 4, "canonical": "number"}"#;
    for (row, why) in [
        (r#"{"id": 2, "prompt": "2+2?", "canonical": "number"}"#, "it has no `answer`"),
        (
            r#"{"id": 1, "prompt": "3+3?", "answer": 6, "canonical": "number"}"#,
            "an earlier line already has a task `1`",
        ),
        (
            r#"{"id": 2, "prompt": "2+2?", "answer": "four", "canonical": "number"}"#,
            "can never be the answer",
        ),
        (
            r#"{"id": 2, "prompt": "Which?", "answer": "C", "canonical": {"kind": "choice", "choices": ["A", "B"]}}"#,
            "can never be the answer",
        ),
        (
            r#"{"id": 2, "prompt": "Which?", "answer": "four", "canonical": "text"}"#,
            "those before are of kind number; evaluate each kind by itself",
        ),
        (
            r#"{"id": 2, "prompt": "2+2?", "answer": 4, "canonical": "number", "roleset": "vote_number"}"#,
            "it names a roleset",
        ),
        (
            r#"{"id": 2, "prompt": "2+2?", "answer": "caf\ud800"}"#,
            "its `answer` has half of a surrogate pair",
        ),
        ("{\"id\": 2, ", "it is not valid JSON"),
    ] {
        let folder = Folder::new();
        folder.write("data.jsonl", &format!("{good}\n{row}\n"));
        let stderr = refused(&folder, "data.jsonl", &["--arm", "vote"]);
        assert!(stderr.contains("line 2 of `data.jsonl`") && stderr.contains(why), "{row}: {stderr}");
    }
}

/// Evaluates single samples that all give this answer, and returns the kind of answers and the number of right ones.
fn counted(data: &str, answer: &str, words: &[&str]) -> (String, u64) {
    let folder = Folder::new();
    folder.write("data.jsonl", data);
    let mut eval = consensus(&folder);
    eval.args(["eval", "data.jsonl", "--arm", "single", "--samples", "2", "--out", "study"]).args(words);
    Finished::of(eval.args(["--mock", "--answer", answer])).exits(0);
    let read = |name| serde_json::from_str::<Value>(&file(&folder, name)).unwrap();
    let right = arm(&read("summary.json"), "single")["right"]["count"].as_u64().unwrap();
    (read("plan.json")["kind"].as_str().unwrap().to_owned(), right)
}

/// A JSON number is compared as text where the user names that kind or a grader that reads texts.
#[test]
fn json_number_answer_is_compared_as_number() {
    let row =
        |id: usize, answer: &str| format!("{{\"id\": {id}, \"prompt\": \"2+2?\", \"answer\": {answer}}}\n");
    let data = row(1, "4.0") + &row(2, "4");
    assert_eq!(counted(&data, "4", &[]), ("number".to_owned(), 2));
    assert_eq!(counted(&data, "4", &["--canonical", "text"]), ("text".to_owned(), 1));
    // A grader that reads texts reads them as they are.
    let words = ["--grader", "contains"];
    assert_eq!(counted(&data, "There are 4 seats.", &words), ("text".to_owned(), 1));
    let folder = Folder::new();
    folder.write("data.jsonl", &(row(1, "4") + &row(2, "\"four\"")));
    let stderr = refused(&folder, "data.jsonl", &["--arm", "vote"]);
    assert!(
        stderr.contains("line 2 of `data.jsonl`") && stderr.contains("name one with --canonical"),
        "{stderr}"
    );
}

#[test]
fn choices_that_are_not_listed_are_asked_for() {
    let folder = Folder::new();
    folder.write("data.jsonl", "{\"id\": 1, \"prompt\": \"Which?\\nA) one\\nB) two\", \"answer\": \"B\"}\n");
    let stderr = refused(&folder, "data.jsonl", &["--arm", "vote", "--canonical", "choice"]);
    assert!(stderr.contains("line 1 of `data.jsonl`") && stderr.contains("needs `choices`"), "{stderr}");
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let folder = Folder::new();
    folder.write("empty.jsonl", "");
    std::fs::write(
        folder.path().join("latin.jsonl"),
        b"{\"id\": 1, \"prompt\": \"caf\xe9?\", \"answer\": 4}\n",
    )
    .unwrap();
    folder.write("semicolons.csv", "id;prompt;answer\n1;2+2?;4\n");
    for (data, why) in [
        ("nowhere.jsonl", "nowhere.jsonl"),
        ("empty.jsonl", "has no task"),
        ("latin.jsonl", "line 1 of `latin.jsonl`"),
        (
            "semicolons.csv",
            "`semicolons.csv`: its first line has one column with ';' in its name; columns are separated by commas",
        ),
    ] {
        let stderr = refused(&folder, data, &["--arm", "vote", "--canonical", "number"]);
        assert!(stderr.contains(why), "{data}: {stderr}");
    }
}

/// A bad row of a public set or of a table in CSV is named by its file and line.
#[test]
fn public_set_row_is_named_by_line() {
    let gsm8k = r#"{"question": "2+2?", "answer": "Two and two.\n#### 4"}"#;
    let mmlu = r#"{"question": "Which?", "choices": ["one", "two"], "answer": 1}"#;
    let svamp = r#"{"ID": "chal-1", "Body": "Ann has 2 pens.", "Question": "How many?", "Answer": 2.0}"#;
    for (name, rows, line, why) in [
        ("gsm8k.jsonl", vec![gsm8k, &gsm8k.replace('4', "four")], 2, "can never be the answer"),
        (
            "mmlu.jsonl",
            vec![mmlu, &mmlu.replace(": 1}", ": 2}")],
            2,
            "its `answer` is 2, and beside 2 choices it is the place of the right one, from 0 to 1",
        ),
        (
            "letter.jsonl",
            vec![mmlu, &mmlu.replace(": 1}", ": \"B\"}")],
            2,
            "its `answer` is \"B\", and beside",
        ),
        (
            "svamp.jsonl",
            vec![svamp, &svamp.replace("chal-1", "chal-2").replace("2.0", "\"some\"")],
            2,
            "can never be the answer",
        ),
        (
            "inspect.jsonl",
            vec![r#"{"input": "Which?", "target": "C", "choices": ["one", "two"]}"#],
            1,
            "no letter of its 2 choices",
        ),
        ("table.csv", vec!["id,prompt,answer", "1,2+2?,4", "2,3+3?,six"], 3, "can never be the answer"),
        ("short.csv", vec!["id,prompt,answer", "1,2+2?"], 2, "it has 2 columns, and the first line has 3"),
    ] {
        let folder = Folder::new();
        folder.write(name, &(rows.join("\n") + "\n"));
        let kind: &[&str] = if name.ends_with("csv") { &["--canonical", "number"] } else { &[] };
        let stderr = refused(&folder, name, &[&["--arm", "single"], kind].concat());
        assert!(
            stderr.contains(&format!("line {line} of `{name}`")) && stderr.contains(why),
            "{name}: {stderr}"
        );
    }
}

#[test]
fn bad_data_leaves_existing_evaluation_alone() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 6);
    evaluated(&folder, &server, &[], 0);
    let names =
        ["plan.json", "tasks.jsonl", "summary.json", "items.jsonl", "report.html", "arms/results-0.jsonl"];
    let kept = || names.map(|name| file(&folder, name));
    let before = kept();
    let rows = std::fs::read_to_string(folder.path().join("sums.jsonl")).unwrap();
    for (rows, why) in [
        (rows.clone() + &rows, "an earlier line already has a task"),
        (rows.replace("\"answer\":4", "\"answer\":5"), "another plan"),
        (String::new(), "has no task"),
    ] {
        folder.write("sums.jsonl", &rows);
        let stderr = Finished::of(&mut eval(&folder, &server, &ARMS)).exits(2).stderr;
        assert!(stderr.contains(why), "{why}: {stderr}");
        assert_eq!(kept(), before, "{why}");
    }
}

#[test]
fn an_arm_that_cannot_be_is_named() {
    let folder = Folder::new();
    sums(&folder, 2);
    for (arms, why) in [
        (&["--arm", "vote,thinking=none"][..], "`vote,thinking=none`: --thinking goes with rolesets of"),
        (&["--arm", "vote,choices=A,B"], "an arm has no `choices`"),
        (&["--arm", "vote", "--grader", "command"], "runs no command: choose another --grader"),
        (&["--arm", "vote,thinkng=none"], "unexpected argument '--thinkng'"),
        (&["--arm", "vote,stop=never"], "invalid value 'never'"),
        (&["--arm", "sc@17"], "K from 2 to 16"),
        (&["--arm", "council:solver_checker"], "is of the protocol `pair`, and not `council`"),
        (&["--arm", "no_such_roleset"], "no_such_roleset"),
        (&["--arm", "reviewers_f1"], "reviews have no right answer"),
        (&["--arm", "vote", "--arm", "vote"], "is named twice"),
        (&["--arm", "vote", "--primary", "pair"], "`pair`, which is no arm"),
        (&["--arm", "vote,model=a,b"], "it names several models"),
        (&["--arm", "vote", "--effect", "2"], "a share between 0 and 1"),
    ] {
        let stderr = refused(&folder, "sums.jsonl", arms);
        assert!(stderr.contains(why), "{arms:?}: {stderr}");
    }
}
