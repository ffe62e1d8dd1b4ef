//! A batch can be read: each run of it, the settings that it was made by, and sets that were made for other programs.

use serde_json::{Value, json};

use crate::batch::{MOCK, batch, figures, lines, tasks};
use crate::support::{Finished, Folder, consensus};

fn said(folder: &Folder, words: &[&str], code: i32) -> Finished {
    Finished::of(consensus(folder).args(words)).exits(code)
}

fn json_of(folder: &Folder, words: &[&str]) -> Value {
    serde_json::from_str(&said(folder, &[words, &["--format", "json"]].concat(), 0).stdout).unwrap()
}

#[test]
fn each_run_of_a_batch_can_be_shown() {
    let folder = Folder::new();
    tasks(&folder, 3);
    figures(&folder, &[&MOCK[..], &["--seeds", "2"]].concat(), 0);
    let shown = said(&folder, &["show", "--full", "out", "2", "--seed", "2"], 0).stdout;
    assert!(shown.contains("How much is 2 + 1?") && shown.contains("seed 2"), "{shown}");
    let result = json_of(&folder, &["show", "out", "2", "--seed", "1"]);
    let row = lines(&folder, "results-0.jsonl").into_iter().find(|row| row["run"] == result["run"]).unwrap();
    assert_eq!((&row["task"], &row["seed"]), (&json!("2"), &json!(1)));
    assert_eq!(row["journal_head"], result["journal_head"]);
    // Several fit: they are offered, by what tells them apart.
    let why = said(&folder, &["show", "out", "2"], 2).stderr;
    assert!(why.contains("2 runs match") && why.contains("consensus show out 2 --seed 1"), "{why}");
    let why = said(&folder, &["show", "out", "2", "--roleset", "solver_checker"], 2).stderr;
    assert!(
        why.contains("consensus show out 2 --roleset solver_checker --seed 1"),
        "what was said is kept: {why}"
    );
    let hint = said(&folder, &["show", "out", "2", "--seed", "1"], 0).stderr;
    assert!(
        hint.contains("`consensus show --full out ") && hint.contains("`consensus verify out`"),
        "{hint}"
    );
    // All of its runs were made by one roleset.
    assert!(said(&folder, &["roleset", "show", "--from", "out/2"], 0).stdout.contains("# Checker"));
    // A run is found by the beginning or the end of its id too, and its story is printed again.
    let run = result["run"].as_str().unwrap();
    for name in [run, &run[..10], &run[run.len() - 10..]] {
        assert_eq!(json_of(&folder, &["show", "out", name])["run"], run);
    }
    assert_eq!(said(&folder, &["show", "--replay", "out", run], 0).stdout, "4\n");
    assert_eq!(json_of(&folder, &["show", "--runs-dir", "out", run])["run"], run);
    let why = said(&folder, &["show", "out", "nine"], 2).stderr;
    assert!(why.contains("no such run of `nine`") && why.contains("consensus runs out"), "{why}");
    assert!(said(&folder, &["show", "out"], 2).stderr.contains("consensus show out TASK"));
    let rows = json_of(&folder, &["runs", "out"]);
    let is_named =
        rows.as_array().unwrap().iter().all(|row| row["task"].is_string() && row["right"].is_boolean());
    assert!(rows.as_array().unwrap().len() == 6 && is_named, "{rows}");
    assert_eq!(said(&folder, &["runs", "--runs-dir", "out", "-n", "2"], 0).stdout.lines().count(), 2);
}

/// A list is written as it is read, and comes out as one document.
#[test]
fn runs_of_batch_are_listed_whole() {
    let folder = Folder::new();
    tasks(&folder, 3);
    figures(&folder, &[&MOCK[..], &["--seeds", "2"]].concat(), 0);
    let whole = said(&folder, &["runs", "out", "--format", "json"], 0).stdout;
    let rows: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole, serde_json::to_string_pretty(&rows).unwrap() + "\n");
    let rows = rows.as_array().unwrap();
    let results: Vec<Value> =
        lines(&folder, "results-0.jsonl").iter().map(|row| row["run"].clone()).collect();
    assert_eq!(rows.iter().map(|row| row["run"].clone()).collect::<Vec<_>>(), results);
    let lines = said(&folder, &["runs", "out", "--format", "jsonl"], 0).stdout;
    let read: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, *rows);
    let text = said(&folder, &["runs", "out"], 0).stdout;
    assert!(text.lines().zip(&results).all(|(line, run)| line.starts_with(run.as_str().unwrap())), "{text}");
    assert_eq!(text.lines().count(), 6);
    for count in [0_usize, 2, 6, 9] {
        let last = json_of(&folder, &["runs", "out", "-n", &count.to_string()]);
        assert_eq!(*last.as_array().unwrap(), rows[6_usize.saturating_sub(count)..], "{count}");
    }
    let nothing = said(&folder, &["runs", "out", "-n", "0"], 0);
    assert!(nothing.stdout.is_empty() && nothing.stderr.contains("there is no run in `out`"));
}

#[test]
fn interrupted_run_can_be_shown() {
    let folder = Folder::new();
    tasks(&folder, 1);
    folder.write("slow.jsonl", "{\"delay_ms\": 60000, \"policy\": \"honest\", \"answer\": \"4\"}\n");
    let slow = ["--mock-script", "slow.jsonl", "--roleset", "solver_checker", "--deadline", "300ms"];
    figures(&folder, &slow, 5);
    let shown = said(&folder, &["show", "--full", "out", "1"], 0).stdout;
    assert!(shown.contains("Outcome: interrupted"), "{shown}");
}

#[test]
fn foreign_task_set_runs_with_two_flags() {
    let folder = Folder::new();
    let line = |level: u32, right: u32| {
        let answer = format!("He has 2+2 = <<2+2=4>>4 of them.\n#### {right}");
        json!({"question": "How many?", "answer": answer, "level": level}).to_string() + "\n"
    };
    folder.write("tasks.jsonl", &(line(1, 4) + &line(2, 5) + &line(2, 4)));
    let gsm8k = ["--map", "prompt=question", "--answer-regex", "#### (.*)"];
    // How the first line was read is seen before it is asked about.
    let dry = ["batch", "tasks.jsonl", "--output", "out", "--dry-run"];
    let read = said(&folder, &[&dry[..], &MOCK, &gsm8k].concat(), 0).stdout;
    assert!(read.starts_with("first task 1: “How many?”, answer “4”\n"), "{read}");
    let done = figures(&folder, &[&MOCK[..], &gsm8k].concat(), 0);
    assert_eq!((&done["ended"]["right"], &done["ended"]["wrong"]), (&json!(2), &json!(1)), "{done}");
    let groups = json_of(&folder, &["results", "out", "--by", "meta.level"]);
    let right = |at: usize| groups[at]["right"]["count"].clone();
    assert_eq!(
        (&groups[0]["of"], right(0), right(1)),
        (&json!({"level": "1"}), json!(1), json!(1)),
        "{groups}"
    );
    let why = said(&folder, &["results", "out", "--by", "meta.lvl"], 2).stderr;
    assert!(why.contains("no task has meta.lvl; there is meta.level"), "{why}");
    said(&folder, &["verify", "out"], 0);
    // A label is on record: a run cannot move into another group afterwards.
    let rows = std::fs::read_to_string(folder.path().join("out/results-0.jsonl")).unwrap();
    folder.write("out/results-0.jsonl", &rows.replacen("\"level\":\"1\"", "\"level\":\"2\"", 1));
    assert!(said(&folder, &["verify", "out"], 7).stderr.contains("`meta`"));
    let why = said(&folder, &["batch", "tasks.jsonl", "--output", "o", "--map", "promt=question"], 2).stderr;
    assert!(why.contains("a task has no `promt`") && why.contains("prompt"), "{why}");
}

#[test]
fn answer_in_sentence_is_graded_as_requested() {
    let folder = Folder::new();
    let line = |id: u32, grader: &str, answer: &str| {
        json!({"id": id, "prompt": "How many?", "answer": answer, "grader": grader}).to_string() + "\n"
    };
    let all =
        [(1, "number", "4"), (2, "contains", "answer is"), (3, "regex", "is [0-9]\\."), (4, "exact", "4")];
    folder.write("tasks.jsonl", &all.map(|(id, grader, answer)| line(id, grader, answer)).concat());
    let words = ["--mock", "--answer", "The answer is 4.", "--roleset", "writer_physicist"];
    let done = figures(&folder, &words, 0);
    assert_eq!((&done["ended"]["right"], &done["ended"]["wrong"]), (&json!(3), &json!(1)), "{done}");
    // What a line does not say, the command says; runs that have ended are graded anew, and nothing is asked.
    let text = std::fs::read_to_string(folder.path().join("tasks.jsonl")).unwrap();
    folder.write("tasks.jsonl", &text.replace(",\"grader\":\"exact\"", ""));
    let again = figures(&folder, &[&words[..], &["--grader", "number"]].concat(), 0);
    let grading = (&again["ended"]["right"], &again["calls"], &again["rescored"]);
    assert_eq!(grading, (&json!(4), &json!(0), &json!(1)), "{again}");
    said(&folder, &["verify", "out"], 0);
}

#[test]
fn arms_are_compared_task_by_task() {
    let folder = Folder::new();
    tasks(&folder, 6);
    figures(&folder, &MOCK, 0);
    let arm = [
        "--mock",
        "--answer",
        "5",
        "--roleset",
        "solver_checker",
        "--arm",
        "bold",
        "--set",
        "params.adopt=text",
    ];
    figures(&folder, &arm, 0);
    said(&folder, &["verify", "out"], 0);
    let opened = lines(&folder, "journal-0.jsonl");
    let setup = |arm: &str| {
        let events = opened.iter().map(|record| &record["event"]);
        let mut of_arm = events.filter(|event| event["cell"]["arm"].as_str().unwrap_or_default() == arm);
        of_arm.find(|event| event["type"] == "opened").unwrap()["setup"]["params"]["adopt"].clone()
    };
    assert_eq!((setup("bold"), setup("")), (json!("text"), Value::Null));
    let stdout = said(&folder, &["results", "out", "--versus", "bold"], 0).stdout;
    assert!(
        stdout.contains("solver_checker is +100.0 points [+1.5, +100.0] from solver_checker,bold on 6 tasks"),
        "{stdout}"
    );
    assert!(stdout.contains("better on 6, worse on 0, sign test p = 0.031"), "{stdout}");
    // A whole name comes first: the group without an arm is meant, and not every group of that roleset.
    let other = said(&folder, &["results", "out", "--versus", "solver_checker"], 0).stdout;
    assert!(other.contains("solver_checker,bold is -100.0 points"), "{other}");
    for (by, versus) in [("roleset,task", "solver_checker"), ("arm", "bald")] {
        let why = said(&folder, &["results", "out", "--by", by, "--versus", versus], 2).stderr;
        assert!(why.contains("does not name exactly one group"), "{why}");
    }
    let rows = json_of(&folder, &["results", "out", "out", "--by", "arm"]);
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["of"]["folder"]), (2, &json!("out")), "{rows}");
}

/// Runs of several folders lead to their own transcripts although their ids are the same.
#[test]
fn each_run_links_to_its_own_transcript() {
    let folder = Folder::new();
    tasks(&folder, 1);
    figures(&folder, &MOCK, 0);
    let five = [
        "batch",
        "tasks.jsonl",
        "--output",
        "other",
        "--mock",
        "--answer",
        "5",
        "--roleset",
        "solver_checker",
    ];
    said(&folder, &five, 0);
    let page =
        said(&folder, &["results", "out", "other", "--format", "html", "--with-transcripts"], 0).stdout;
    // The id of a run follows from its names, so that it is the same in both folders.
    let of_folder = |name: &str| {
        let link =
            page.split(&format!("consensus show {name} ")).next().unwrap().rsplit("href=\"#").next().unwrap();
        let article = format!("id=\"{}\">", link.split('"').next().unwrap());
        page.split(&article).nth(1).unwrap().split("</article>").next().unwrap().to_owned()
    };
    for (name, answer) in [("out", "Answer: 4"), ("other", "Answer: 5")] {
        assert!(of_folder(name).contains(answer), "{name}: {}", of_folder(name));
    }
}

#[test]
fn a_folder_says_what_it_is_made_of() {
    let folder = Folder::new();
    tasks(&folder, 2);
    figures(&folder, &MOCK, 0);
    let manifest: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("out/batch.json")).unwrap())
            .unwrap();
    let command = &manifest["commands"][0];
    assert!(command["program"].as_str().unwrap().starts_with("consensus 0."), "{manifest}");
    assert!(command["words"].as_array().unwrap().contains(&json!("--roleset")), "{manifest}");
    let column = &manifest["columns"][0];
    assert_eq!(
        (&column["roleset"], &column["source"]),
        (&json!("solver_checker"), &json!("solver_checker.json (built in)"))
    );
    assert_eq!(
        (&manifest["data"][0]["name"], &manifest["v"]),
        (&json!("tasks.jsonl"), &json!(1)),
        "{manifest}"
    );
    // The same command again says nothing new.
    figures(&folder, &MOCK, 0);
    let again: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("out/batch.json")).unwrap())
            .unwrap();
    assert_eq!(manifest, again);
}

#[test]
fn each_call_becomes_a_row() {
    let folder = Folder::new();
    tasks(&folder, 2);
    figures(&folder, &MOCK, 0);
    let rows = said(&folder, &["results", "out", "--format", "calls"], 0).stdout;
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 8, "two agents answer and declare, for two tasks");
    assert!(rows.iter().all(|row| row["prompt_tokens"].as_u64() > Some(0)), "{rows:?}");
    assert_eq!((&rows[0]["agent"], &rows[0]["call"]), (&json!("Solver"), &json!("r1.a0.d0.sample.0")));
    let sum: u64 = rows.iter().map(|row| row["completion_tokens"].as_u64().unwrap()).sum();
    let by_phase: u64 = lines(&folder, "results-0.jsonl")
        .iter()
        .flat_map(|row| ["blind", "talk"].map(|phase| row["phases"][phase]["completion"].as_u64().unwrap()))
        .sum();
    assert_eq!(sum, by_phase, "results tell tokens by phase");
}

#[test]
fn dry_run_estimates_cost_before_spending() {
    let folder = Folder::new();
    tasks(&folder, 3);
    let mut command =
        batch(&folder, &["--roleset", "solver_checker", "--model", "openai:gpt-4o-mini", "--dry-run"]);
    let plan: Value = serde_json::from_str(&Finished::of(&mut command).exits(0).stdout).unwrap();
    let column = &plan["columns"][0];
    assert_eq!((&column["runs"], &column["at_once"]["calls"]), (&json!(3), &json!(12)), "{plan}");
    // Eleven answers at the most, some asked for in a form too, and two declarations with their repairs.
    assert_eq!(column["most"]["calls"], json!(3 * (2 * 11 + 2 * 3)), "{plan}");
    let cost = |name: &str| column[name].as_u64().unwrap();
    assert!(
        0 < cost("cost_micro_usd_at_once") && cost("cost_micro_usd_at_once") < cost("cost_micro_usd_max")
    );
    assert!(!folder.path().join("out").exists(), "nothing is made");
    // A limit of each run bounds all of them.
    let limits = ["--max-tokens-total", "900", "--max-cost", "0.0005", "--dry-run"];
    let priced = ["--roleset", "solver_checker", "--model", "openai:gpt-4o-mini"];
    let mut command = batch(&folder, &[&priced[..], &limits].concat());
    let finished = Finished::of(&mut command).exits(0);
    assert!(finished.stderr.contains("need more than the limit of a run"), "{}", finished.stderr);
    let plan: Value = serde_json::from_str(&finished.stdout).unwrap();
    let limited = &plan["columns"][0];
    assert_eq!(
        (&limited["cost_micro_usd_max"], &limited["most"]["prompt_tokens"]),
        (&json!(1500), &json!(2700))
    );
    // Other settings are refused here as they would be there.
    figures(&folder, &MOCK, 0);
    let other = [&MOCK[..], &["--dry-run", "--max-rounds", "5"]].concat();
    assert!(Finished::of(&mut batch(&folder, &other)).exits(2).stderr.contains("with other settings"));
    // What has ended is not paid for again.
    figures(&folder, &MOCK, 0);
    let mut command = batch(&folder, &[&MOCK[..], &["--dry-run"]].concat());
    let plan: Value = serde_json::from_str(&Finished::of(&mut command).exits(0).stdout).unwrap();
    assert_eq!((&plan["columns"][0]["ended"], &plan["columns"][0]["most"]["calls"]), (&json!(3), &json!(0)));
}

/// A batch is one file that others can verify, and one that does not verify is not exported.
#[test]
fn exported_bundle_can_be_verified() {
    let folder = Folder::new();
    tasks(&folder, 2);
    figures(&folder, &MOCK, 0);
    folder.write("out/redactions/x.json", "{}");
    folder.write("out/server-0.log", "a secret path");
    said(&folder, &["export", "out", "--bundle", "out.tar.gz"], 0);
    said(&folder, &["export", "out", "--bundle", "again.tar.gz"], 0);
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(bytes("out.tar.gz"), bytes("again.tar.gz"), "the same files give the same bytes");
    let unpack = ["xzf", "../out.tar.gz"];
    std::fs::create_dir(folder.path().join("there")).unwrap();
    let there = folder.path().join("there");
    assert!(std::process::Command::new("tar").args(unpack).current_dir(&there).status().unwrap().success());
    said(&folder, &["verify", "there/out"], 0);
    assert!(!there.join("out/redactions").exists() && !there.join("out/server-0.log").exists());
    let why = said(&folder, &["export", "out", "--bundle", "out.tar.gz"], 2).stderr;
    assert!(why.contains("cannot write `out.tar.gz`"), "{why}");
    // What does not verify is not handed on.
    let rows = String::from_utf8(bytes("out/results-0.jsonl")).unwrap();
    folder.write("out/results-0.jsonl", &rows.replacen("\"rounds\":2", "\"rounds\":3", 1));
    said(&folder, &["export", "out", "--bundle", "bent.tar.gz"], 7);
    assert!(!folder.path().join("bent.tar.gz").exists());
}
