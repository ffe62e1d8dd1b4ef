//! Many runs: what is finished stays so, whatever happens to the process, and nothing is asked for again.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::batch::{MOCK, batch, figures, lines, replies, run_of, tasks};
use crate::support::{Act, Finished, Folder, SENSIBLE, Server, consensus, model};

/// What a row says that does not depend on when it was made.
fn fixed(row: &Value) -> Value {
    let fields = ["task", "roleset", "model", "seed", "outcome", "text", "right", "rounds", "run", "usage"];
    fields.iter().map(|name| ((*name).to_owned(), row[*name].clone())).collect()
}

/// The same command again makes no call, and more seeds add only new runs.
#[test]
fn every_cell_runs_exactly_once() {
    let folder = Folder::new();
    tasks(&folder, 5);
    let words = ["--mock", "--answer", "4", "--roleset", "solver_checker,writer_physicist", "--seeds", "3"];
    let done = figures(&folder, &words, 0);
    assert_eq!((&done["ended"]["agreed"], &done["ended"]["right"]), (&json!(30), &json!(30)), "{done}");
    assert!(done["calls"].as_u64().unwrap() >= 30 * 2);
    let rows = lines(&folder, "results-0.jsonl");
    let cells: BTreeSet<String> =
        rows.iter().map(|row| format!("{} {} {}", row["task"], row["roleset"], row["seed"])).collect();
    assert_eq!((rows.len(), cells.len()), (30, 30));
    let again = figures(&folder, &words, 0);
    assert_eq!((&again["calls"], &again["ended"]), (&json!(0), &done["ended"]), "{again}");
    assert_eq!(lines(&folder, "results-0.jsonl"), rows);
    // More seeds are more runs; those that are there stay.
    let more = ["--mock", "--answer", "4", "--roleset", "solver_checker,writer_physicist", "--seeds", "4"];
    assert_eq!(figures(&folder, &more, 0)["ended"]["agreed"], 40);
    assert_eq!(lines(&folder, "results-0.jsonl")[..30], rows);
}

/// All shards together give the results of one whole batch, and their counts are added up.
#[test]
fn shards_cover_all_cells_once() {
    let (whole, parts) = (Folder::new(), Folder::new());
    tasks(&whole, 40);
    tasks(&parts, 40);
    figures(&whole, &MOCK, 0);
    let mut expected: Vec<Value> = lines(&whole, "results-0.jsonl").iter().map(fixed).collect();
    let mut found = Vec::new();
    for shard in 0..4 {
        let mut words = MOCK.to_vec();
        // Slurm says which one it is, by whatever numbers its array has.
        words.extend(["--shard", "auto"]);
        let mut command = batch(&parts, &words);
        command.env("SLURM_ARRAY_TASK_ID", (10 + shard * 5).to_string());
        command.envs([
            ("SLURM_ARRAY_TASK_MIN", "10"),
            ("SLURM_ARRAY_TASK_MAX", "25"),
            ("SLURM_ARRAY_TASK_COUNT", "4"),
        ]);
        Finished::of(&mut command).exits(0);
        let rows = lines(&parts, &format!("results-{shard}.jsonl"));
        assert!(rows.len() > 2, "none is left out: {}", rows.len());
        found.extend(rows.iter().map(fixed));
    }
    let order = |row: &Value| run_of(row);
    expected.sort_by_key(order);
    found.sort_by_key(order);
    assert_eq!(found, expected);
    let status =
        Finished::of(consensus(&parts).args(["batch", "status", "out", "--format", "json"])).exits(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(
        (&status["ended"]["agreed"], &status["shards"][3]["progress"]["state"]),
        (&json!(40), &json!("ended"))
    );
    // Another number of shards would run everything again.
    let mut words = MOCK.to_vec();
    words.extend(["--shard", "0/3"]);
    let refused = Finished::of(&mut batch(&parts, &words)).exits(2);
    assert!(refused.stderr.contains("was begun in 4 shards"), "{}", refused.stderr);
}

/// A batch of a roleset with several rounds, killed wherever it is.
fn until_killed(child: &mut Child, after: Duration) {
    // A moment, and no sign that anything has happened.
    std::thread::sleep(after);
    let _ = child.kill();
    child.wait().unwrap();
}

/// A batch that is killed again and again ends with one result for each task.
#[test]
fn killed_batch_repeats_no_result() {
    let server = Server::start(model(SENSIBLE));
    let url = server.url();
    let words =
        ["--roleset", "writer_physicist", "--model", "tiny-model", "--base-url", &url, "--runs-at-once", "8"];
    let (whole, folder) = (Folder::new(), Folder::new());
    tasks(&whole, 60);
    tasks(&folder, 60);
    let undisturbed = figures(&whole, &words, 0);
    let asked = server.chats().len();
    let mut moments = fastrand::Rng::with_seed(7);
    let mut kills = 0;
    while kills < 20 {
        let mut child = batch(&folder, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until_killed(&mut child, Duration::from_millis(moments.u64(5..120)));
        kills += 1;
    }
    let done = figures(&folder, &words, 0);
    assert_eq!(done["ended"], undisturbed["ended"], "{done}");
    let mut rows: Vec<Value> = lines(&folder, "results-0.jsonl").iter().map(fixed).collect();
    let mut expected: Vec<Value> = lines(&whole, "results-0.jsonl").iter().map(fixed).collect();
    rows.sort_by_key(run_of);
    expected.sort_by_key(run_of);
    assert_eq!(rows, expected, "one result a task, the same as if nothing had happened");
    assert_eq!(replies(&folder, "journal-0.jsonl"), replies(&whole, "journal-0.jsonl"));
    // Only what was in the air when it was killed was asked for again.
    let more = server.chats().len() - asked - asked;
    assert!(more <= kills * 16, "{more} of {asked} calls were made again");
}

/// A failed run that is tried again continues where it was.
#[test]
fn failed_runs_are_retried_on_request() {
    let folder = Folder::new();
    tasks(&folder, 6);
    // Its second call is refused for good.
    folder.write(
        "broken.jsonl",
        "{\"agent\": \"Checker\", \"status\": 401}\n{\"policy\": \"honest\", \"answer\": \"4\"}\n",
    );
    let broken = ["--mock-script", "broken.jsonl", "--roleset", "solver_checker"];
    let done = figures(&folder, &broken, 6);
    assert_eq!(done["ended"]["failed"], 6, "{done}");
    assert_eq!(figures(&folder, &MOCK, 6)["calls"], 0, "they have ended");
    // Nothing is known of what was cut off.
    let finished = Finished::of(consensus(&folder).args(["results", "out", "--format", "json"])).exits(0);
    let groups: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&groups[0]["agreed"]["of"], &groups[0]["right"]["of"]), (&json!(0), &json!(0)), "{groups}");
    assert!(finished.stderr.contains("6 runs failed or reached a limit"), "{}", finished.stderr);
    let again = figures(&folder, &[&MOCK[..], &["--retry", "failed"]].concat(), 0);
    assert_eq!((&again["ended"]["agreed"], &again["ended"]["failed"]), (&json!(6), &json!(0)), "{again}");
    replies(&folder, "journal-0.jsonl");
    // A reader of the results takes the last line of a run.
    let status =
        Finished::of(consensus(&folder).args(["batch", "status", "out", "--format", "json"])).exits(0);
    assert_eq!(serde_json::from_str::<Value>(&status.stdout).unwrap()["ended"]["agreed"], 6);
}

/// A batch that reaches its deadline puts its runs down and ends them later.
#[test]
fn stopped_batch_repeats_no_call() {
    let folder = Folder::new();
    tasks(&folder, 30);
    folder.write("slow.jsonl", "{\"delay_ms\": 100, \"policy\": \"honest\", \"answer\": \"4\"}\n");
    let slow = ["--mock-script", "slow.jsonl", "--roleset", "solver_checker", "--runs-at-once", "4"];
    let stopped = figures(&folder, &[&slow[..], &["--deadline", "500ms"]].concat(), 5);
    assert!(stopped["ended"]["agreed"].as_u64().unwrap() < 30, "{stopped}");
    let status = Finished::of(consensus(&folder).args(["batch", "status", "out"])).exits(0);
    assert!(status.stdout.contains("stopped"), "{}", status.stdout);
    let done = figures(&folder, &MOCK, 0);
    assert_eq!(done["ended"]["agreed"], 30, "{done}");
    assert!(replies(&folder, "journal-0.jsonl").values().all(|calls| *calls == 4));
}

/// Calls that wait their turn when a batch is stopped are no fault of the server.
#[test]
fn stopped_waiting_calls_fail_no_run() {
    let folder = Folder::new();
    tasks(&folder, 30);
    let say = model(SENSIBLE);
    let server = Server::start(move |request| {
        let mut acts = say(request);
        acts.insert(0, Act::Pause(Duration::from_millis(400)));
        acts
    });
    let url = server.url();
    let slow = ["--roleset", "solver_checker", "--model", "tiny-model", "--base-url", &url];
    let narrow = ["--calls-at-once", "2", "--deadline", "600ms"];
    let stopped = figures(&folder, &[&slow[..], &narrow].concat(), 5);
    assert_eq!(stopped["ended"]["failed"], 0, "{stopped}");
}

#[test]
fn tasks_may_be_piped_or_have_documents() {
    let folder = Folder::new();
    folder.write("set/notes.txt", "Two and two.");
    folder.write(
        "set/tasks.jsonl",
        "{\"id\": 1, \"prompt\": \"Sum?\", \"documents\": [\"notes.txt\", {\"name\": \"b\", \"text\": \"more\"}]}",
    );
    let mut command = consensus(&folder);
    command.args(["batch", "set/tasks.jsonl", "--output", "out"]).args(MOCK);
    Finished::of(&mut command).exits(0);
    let opened = &lines(&folder, "journal-0.jsonl")[0]["event"]["setup"]["task"]["documents"];
    assert_eq!((&opened[0]["text"], &opened[1]["text"]), (&json!("Two and two."), &json!("more")));

    let piped = folder.write("piped.jsonl", "{\"id\": 2, \"prompt\": \"Sum?\"}\n");
    let mut command = consensus(&folder);
    command.args(["batch", "-", "--output", "out"]).args(MOCK).stdin(std::fs::File::open(piped).unwrap());
    Finished::of(&mut command).exits(0);
    assert_eq!(lines(&folder, "results-0.jsonl").len(), 2);
}

/// Lost results are made again from the journal, and results stay whatever becomes of the tasks.
#[test]
fn results_follow_from_journal() {
    let folder = Folder::new();
    tasks(&folder, 5);
    figures(&folder, &MOCK, 0);
    let rows = lines(&folder, "results-0.jsonl");
    std::fs::remove_file(folder.path().join("out/results-0.jsonl")).unwrap();
    let again = figures(&folder, &MOCK, 0);
    assert_eq!((&again["calls"], &again["before"], &again["changed"]), (&json!(0), &json!(5), &json!(0)));
    let sorted = |mut rows: Vec<Value>| {
        rows.sort_by_key(run_of);
        rows
    };
    assert_eq!(sorted(lines(&folder, "results-0.jsonl")), sorted(rows.clone()));
    // An answer that was wrong is mended without asking anybody.
    let text = std::fs::read_to_string(folder.path().join("tasks.jsonl")).unwrap();
    folder.write("tasks.jsonl", &text.replacen("\"answer\":4", "\"answer\":5", 1));
    let rescored = figures(&folder, &MOCK, 0);
    assert_eq!((&rescored["ended"]["right"], &rescored["calls"]), (&json!(4), &json!(0)), "{rescored}");
    let csv = Finished::of(consensus(&folder).args(["results", "out", "--format", "csv"])).exits(0).stdout;
    assert_eq!(csv.matches(",false,false,").count(), 1, "{csv}");
    folder.write("tasks.jsonl", &text);
    assert_eq!(figures(&folder, &MOCK, 0)["ended"]["right"], 5);
    std::fs::remove_file(folder.path().join("out/results-0.jsonl")).unwrap();
    figures(&folder, &MOCK, 0);
    // Another prompt under the same id, and other parameters, are said to be so.
    folder.write("tasks.jsonl", &text.replace("How much is 3", "What is 3"));
    assert_eq!(figures(&folder, &MOCK, 0)["changed"], 1);
    // Other settings under the same name are refused: their runs would be counted as one thing.
    let seven = [&MOCK[..], &["--max-rounds", "7"]].concat();
    let refused = Finished::of(&mut batch(&folder, &seven)).exits(2).stderr;
    assert!(refused.contains("with other settings") && refused.contains("--arm NAME"), "{refused}");
    let other = Finished::of(&mut batch(&folder, &[&seven[..], &["--keep-old"]].concat())).exits(0);
    assert!(other.stderr.contains("5 runs kept unchanged"), "{}", other.stderr);
    assert_eq!(sorted(lines(&folder, "results-0.jsonl")), sorted(rows));
}

#[test]
fn results_show_intervals_and_rows() {
    let folder = Folder::new();
    let mut tasks = String::new();
    for id in 1..=10 {
        let answer = if id > 2 { 4 } else { 5 };
        let task = json!({"id": id, "prompt": "Sum?", "answer": answer, "canonical": "number"});
        tasks += &(task.to_string() + "\n");
    }
    folder.write("tasks.jsonl", &tasks);
    figures(&folder, &MOCK, 0);
    let stdout_of = |words: &[&str]| {
        Finished::of(consensus(&folder).args(["results", "out"]).args(words)).exits(0).stdout
    };
    let groups: Value = serde_json::from_str(&stdout_of(&["--format", "json"])).unwrap();
    let group = &groups[0];
    assert_eq!((&group["of"]["roleset"], &group["agreed"]["count"]), (&json!("solver_checker"), &json!(10)));
    assert_eq!((&group["right"]["count"], &group["right"]["of"]), (&json!(8), &json!(10)), "{group}");
    assert!((group["right"]["low"].as_f64().unwrap() - 0.490).abs() < 1e-3, "{group}");
    let table = stdout_of(&[]);
    assert!(table.contains("80 % [49, 94]") && table.lines().count() == 3, "{table}");
    let columns = |line: &str| line.split("  ").filter(|cell| !cell.trim().is_empty()).count();
    let counts: Vec<usize> = table.lines().map(columns).collect();
    assert!(counts[0] == 15 && counts[0] == counts[1], "each figure has a name: {table}");
    assert!(table.contains("tokens a run of solver_checker: blind "), "{table}");
    let page = stdout_of(&["--format", "html"]);
    assert!(page.contains("80 % [49, 94]") && !page.contains("<script"), "{page}");
    assert!(page.contains("<code>consensus batch ") && page.contains("SHA-256 of tasks.jsonl"));
    assert!(!page.contains("id=\"run-"), "no transcript is on it that was not asked for");
    let whole = stdout_of(&["--format", "html", "--with-transcripts"]);
    assert_eq!(whole.matches("<article class=\"transcript\" id=\"run-").count(), 10, "{whole}");
    assert!(whole.contains("<blockquote>Sum?</blockquote>"), "{whole}");
    Finished::of(consensus(&folder).args(["results", "out", "--with-transcripts"])).exits(2);
    assert_eq!(stdout_of(&["--by", "roleset,seed"]).lines().count(), 3);
    let csv = stdout_of(&["--format", "csv"]);
    assert!(csv.starts_with("task,roleset,model,seed,outcome,how,reason,text,right,"), "{csv}");
    assert_eq!((csv.lines().count(), stdout_of(&["--format", "jsonl"]).lines().count()), (11, 10));
    let row: Value = serde_json::from_str(stdout_of(&["--format", "jsonl"]).lines().next().unwrap()).unwrap();
    assert_eq!((&row["outcome"], &row["text"]), (&json!("agreed"), &json!("4")));
    Finished::of(consensus(&folder).args(["results", "nowhere"])).exits(2);
}

/// A batch is verified from its journals, and results whose evidence is gone are refused.
#[test]
fn bent_result_fails_verification() {
    let folder = Folder::new();
    tasks(&folder, 6);
    for shard in ["0/2", "1/2"] {
        figures(&folder, &[&MOCK[..], &["--shard", shard]].concat(), 0);
    }
    let verify = || {
        let mut command = consensus(&folder);
        command.args(["verify", "out"]).output().unwrap()
    };
    let said = verify();
    let stdout = String::from_utf8_lossy(&said.stdout);
    assert!(stdout.starts_with("verified: all 6 results match their journals\n  not covered  "), "{stdout}");
    let results = folder.path().join("out/results-1.jsonl");
    let whole = std::fs::read_to_string(&results).unwrap();
    for (from, to) in
        [("\"text\":\"4\"", "\"text\":\"5\""), ("\"calls\":4", "\"calls\":3"), ("\"run\":\"", "\"run\":\"0")]
    {
        assert!(whole.contains(from));
        std::fs::write(&results, whole.replacen(from, to, 1)).unwrap();
        let said = verify();
        let stderr = String::from_utf8_lossy(&said.stderr);
        assert!(
            said.status.code() == Some(7) && stderr.contains("results-1.jsonl` line "),
            "{from}: {stderr}"
        );
    }
    // A line that is gone is made anew.
    std::fs::write(&results, whole.split_inclusive('\n').skip(1).collect::<String>()).unwrap();
    let said = verify();
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert!(
        said.status.code() == Some(7) && stderr.contains("1 run ended without a line of results"),
        "{stderr}"
    );
    std::fs::write(&results, &whole).unwrap();
    let journal = folder.path().join("out/journal-0.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    // Results whose evidence is gone, in part or altogether.
    let part: String = text.split_inclusive('\n').take(text.lines().count() - 1).collect();
    std::fs::write(&journal, part).unwrap();
    assert_eq!(verify().status.code(), Some(7), "the end of a run is gone");
    std::fs::remove_file(&journal).unwrap();
    assert_eq!(verify().status.code(), Some(7), "the journal is gone");
    std::fs::write(&journal, text.replacen("\"4\"", "\"5\"", 1)).unwrap();
    assert_eq!(verify().status.code(), Some(7));
}
